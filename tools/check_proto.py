#!/usr/bin/python3
"""Whether proto/ still understands what an earlier revision sends: numbers keep their meaning.

  check_proto.py REV      prints each breach as TYPE.NAME: what, and ends with 1 if there is one

Adding is free. A field or value that goes leaves its number under `reserved`; a type, a name, a oneof or a
call that is there stays as it is. What has been only on a branch was never sent: compare with main.
"""
import os
import re
import subprocess
import sys
import tempfile


def descriptors(folder):
    """proto/*.proto under `folder`, as protoc prints a FileDescriptorSet."""
    sources = sorted(f for f in os.listdir(os.path.join(folder, "proto")) if f.endswith(".proto"))
    binary = subprocess.run(["protoc", "-I" + folder, "--descriptor_set_out=/dev/stdout"] +
                            ["proto/" + f for f in sources],
                            check=True, stdout=subprocess.PIPE).stdout
    return subprocess.run(["protoc", "-I/usr/include", "--decode=google.protobuf.FileDescriptorSet",
                           "google/protobuf/descriptor.proto"],
                          check=True, input=binary, stdout=subprocess.PIPE).stdout.decode()


def tree(text):
    """Protobuf's text format as nested dicts of lists."""
    root = {}
    open_nodes = [root]
    for line in text.splitlines():
        line = line.strip()
        if line == "}":
            open_nodes.pop()
        elif line.endswith(" {"):
            open_nodes[-1].setdefault(line[:-2], []).append(node := {})
            open_nodes.append(node)
        else:
            key, value = line.split(": ", 1)
            open_nodes[-1].setdefault(key, []).append(value.strip('"'))
    return root


def facts(text):
    """What must stay: {(TYPE, "number N" or NAME): description}, and the numbers that are reserved."""
    kept, reserved = {}, set()

    def first(node, key, absent=""):
        return node.get(key, [absent])[0]

    def numbers(kind, scope, node, entries):
        kept[scope, kind] = kind
        oneofs = [first(o, "name") for o in node.get("oneof_decl", [])]
        for entry in node.get(entries, []):
            words = [first(entry, "name"), first(entry, "label"), first(entry, "type"), first(entry, "type_name")]
            if "oneof_index" in entry:
                words.append("in " + oneofs[int(first(entry, "oneof_index"))])
            kept[scope, "number " + first(entry, "number", "0")] = " ".join(w for w in words if w)
        for span in node.get("reserved_range", []):
            # Of a message the end is exclusive, of an enum it isn't.
            end = int(first(span, "end")) + (kind == "enum")
            reserved.update((scope, "number %d" % n) for n in range(int(first(span, "start", "0")), min(end, 1 << 16)))
        for inner in node.get("nested_type", []):
            numbers("message", scope + "." + first(inner, "name"), inner, "field")
        for inner in node.get("enum_type", []):
            numbers("enum", scope + "." + first(inner, "name"), inner, "value")

    for file in tree(text).get("file", []):
        package = first(file, "package")
        for node in file.get("message_type", []):
            numbers("message", package + "." + first(node, "name"), node, "field")
        for node in file.get("enum_type", []):
            numbers("enum", package + "." + first(node, "name"), node, "value")
        for service in file.get("service", []):
            for call in service.get("method", []):
                words = ["stream" if first(call, "client_streaming") == "true" else "", first(call, "input_type"), "->",
                         "stream" if first(call, "server_streaming") == "true" else "", first(call, "output_type")]
                kept[package + "." + first(service, "name"), first(call, "name")] = " ".join(w for w in words if w)
    return kept, reserved


def breaches(before, after):
    """Lines that say what of `before` (a text of descriptors) isn't in `after`."""
    was, had_reserved = facts(before)
    now, has_reserved = facts(after)
    for (scope, name), what in was.items():
        if (scope, name) in now:
            if now[scope, name] != what:
                yield "%s.%s: was '%s', is '%s'" % (scope, name, what, now[scope, name])
        elif re.match(r"number ", name) and (scope, name) not in has_reserved and \
                any(s == scope for s, _ in now):
            yield "%s.%s: '%s' has gone, and its number isn't reserved" % (scope, name, what)
        elif not re.match(r"number ", name):
            yield "%s.%s: has gone" % (scope, name)
    for scope, name in sorted(had_reserved & set(now)):
        yield "%s.%s: was reserved, and is used as '%s'" % (scope, name, now[scope, name])


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        print(__doc__)
        return 64
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    with tempfile.TemporaryDirectory() as folder:
        archive = subprocess.run(["git", "archive", sys.argv[1], "proto"], check=True, stdout=subprocess.PIPE).stdout
        subprocess.run(["tar", "-x", "-C", folder], check=True, input=archive)
        before = descriptors(folder)
    found = list(breaches(before, descriptors(".")))
    for line in found:
        print(line)
    print("check_proto: %d breaches since %s" % (len(found), sys.argv[1]))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
