#!/usr/bin/python3
"""What process_kit.main() tells Bazel of the cases of a test."""
import os
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ET

FOLDER = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, FOLDER)
import process_kit

SCRIPT = """
import sys, unittest
sys.path.insert(0, %r)
import process_kit

class Sample(unittest.TestCase):
    def test_good(self):
        pass
    def test_bad(self):
        self.fail("on purpose\x01")
    def test_part(self):
        for i in range(2):
            with self.subTest(i=i):
                self.assertEqual(i, 0)
    def test_left_out(self):
        self.skipTest("no such thing here")

@unittest.skip("the whole class")
class Absent(unittest.TestCase):
    def test_one(self):
        pass

class Broken(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        raise OSError("no folder")
    def test_never(self):
        pass

process_kit.main()
""" % FOLDER


class Xml(unittest.TestCase):
    def test_names_every_case_with_its_outcome(self):
        with tempfile.TemporaryDirectory() as folder:
            script = os.path.join(folder, "sample.py")
            with open(script, "w") as file:
                file.write(SCRIPT)
            path = os.path.join(folder, "test.xml")
            run = subprocess.run([sys.executable, script], stderr=subprocess.PIPE, check=False,
                                 env=dict(os.environ, XML_OUTPUT_FILE=path))
            self.assertEqual(run.returncode, 1, run.stderr)
            seen = {case.get("name"): [(child.tag, child.get("message")) for child in case]
                    for case in ET.parse(path).getroot().iter("testcase")}
        self.assertEqual(seen["test_good"], [])
        self.assertEqual(seen["test_left_out"], [("skipped", "no such thing here")])
        self.assertEqual(seen["test_one"], [("skipped", "the whole class")])
        for failed in ("test_bad", "test_part"):
            self.assertEqual([tag for tag, _ in seen[failed]], ["failure"], failed)
        self.assertEqual(len(seen), 6, seen)  # and the class that could not be set up


if __name__ == "__main__":
    process_kit.main()
