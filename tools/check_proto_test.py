#!/usr/bin/python3
"""Each way to break proto/ is seen by check_proto.py, and what is allowed isn't."""
import os
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import check_proto

BEFORE = """
syntax = "proto3";
package p;
message Ask {
  int32 count = 1;
  oneof what { bytes name = 2; int64 number = 3; }
  reserved 9;
  message Part { bool is_last = 1; }
  Part part = 4;
}
enum Cause { NONE = 0; LOST = 1; }
service Desk { rpc Serve(Ask) returns (stream Ask); }
"""


def compiled(text):
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(os.path.join(folder, "proto"))
        with open(os.path.join(folder, "proto", "p.proto"), "w", encoding="utf-8") as f:
            f.write(text)
        return check_proto.descriptors(folder)


class CheckProto(unittest.TestCase):
    def breaches(self, *changes):
        text = BEFORE
        for old, new in changes:
            self.assertIn(old, text)
            text = text.replace(old, new)
        return list(check_proto.breaches(compiled(BEFORE), compiled(text)))

    def test_nothing_and_additions_are_allowed(self):
        self.assertEqual(self.breaches(), [])
        self.assertEqual(self.breaches(("int32 count = 1;", "int32 count = 1; bool is_new = 5;"),
                                       ("LOST = 1;", "LOST = 1; LEFT = 2;"),
                                       ("service Desk {", "message New {} service Desk { rpc Also(New) returns (New);")),
                         [])

    def test_what_goes_leaves_its_number_reserved(self):
        self.assertEqual(self.breaches(("int32 count = 1;", "reserved 1;"), ("LOST = 1;", "reserved 1;")), [])
        self.assertEqual(len(self.breaches(("int32 count = 1;", ""))), 1)
        self.assertEqual(len(self.breaches(("LOST = 1;", ""))), 1)
        self.assertEqual(len(self.breaches(("bool is_last = 1;", ""))), 1)

    def test_a_number_keeps_its_meaning(self):
        for change in (("int32 count", "int64 count"), ("int32 count", "int32 total"),
                       ("int32 count", "repeated int32 count"), ("LOST = 1", "LEFT = 1"),
                       ("bool is_last = 1;", "bytes is_last = 1;")):
            self.assertEqual(len(self.breaches(change)), 1, change)
        self.assertEqual(len(self.breaches(("int64 number = 3; }", "} int64 number = 3;"))), 1)

    def test_a_reserved_number_is_never_used_again(self):
        self.assertEqual(len(self.breaches(("reserved 9;", "int32 back = 9;"))), 1)

    def test_calls_and_types_stay(self):
        self.assertEqual(len(self.breaches(("returns (stream Ask)", "returns (Ask)"))), 1)
        self.assertEqual(len(self.breaches(("rpc Serve", "rpc Wait"))), 1)
        self.assertEqual(self.breaches(("message Part { bool is_last = 1; }\n  Part part = 4;", "reserved 4;")),
                         ["p.Ask.Part.message: has gone"])

    def test_usage(self):
        tool = os.path.join(os.path.dirname(os.path.abspath(__file__)), "check_proto.py")
        self.assertEqual(subprocess.run([tool], stdout=subprocess.DEVNULL, check=False).returncode, 64)
        self.assertNotEqual(subprocess.run([tool, "no-such-revision"], stderr=subprocess.DEVNULL,
                                           check=False).returncode, 0)


if __name__ == "__main__":
    unittest.main()
