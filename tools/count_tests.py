#!/usr/bin/python3
"""Counts the test cases of one `bazel test`: prints "passed failed skipped" on one line.

  count_tests.py STEP BAZEL_EXIT_CODE BUILD_EVENTS.json

Cases come from each target's test.xml. What leaves no case behind (a target that doesn't build, a
test that dies before it writes its result) counts as one failure. The reasons of skipped cases and
the names of failed ones go to stderr.
"""
import json
import sys
import urllib.parse
import xml.etree.ElementTree as ET


def results(events_path):
    """Yields (label, status, path of test.xml or None); a retried or sharded test yields several."""
    with open(events_path) as events:
        for line in events:
            event = json.loads(line)
            if "testResult" in event.get("id", {}):
                result = event.get("testResult", {})
                xml = next((o.get("uri", "") for o in result.get("testActionOutput", [])
                            if o.get("name") == "test.xml"), "")
                path = urllib.parse.unquote(xml[len("file://"):]) if xml.startswith("file://") else None
                yield event["id"]["testResult"]["label"], result.get("status"), path
            elif "targetCompleted" in event.get("id", {}):
                if event.get("completed") is not None and not event["completed"].get("success"):
                    yield event["id"]["targetCompleted"]["label"], "NO_BUILD", None


def cases(path):
    """(passed, failed names, skipped reasons) of one test.xml."""
    passed, failed, skipped = 0, [], []
    for case in ET.parse(path).getroot().iter("testcase"):
        name = "%s.%s" % (case.get("classname", ""), case.get("name", ""))
        if case.find("failure") is not None or case.find("error") is not None:
            failed.append(name)
        elif case.find("skipped") is not None or case.get("result") == "skipped":
            node = case.find("skipped")
            reason = (node.get("message") or node.text or "") if node is not None else ""
            skipped.append("%s: %s" % (name, " ".join(reason.split())))
        elif case.get("status") == "notrun":
            skipped.append(name + ": disabled")
        else:
            passed += 1
    return passed, failed, skipped


def main():
    step, exit_code, events_path = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    passed = failed = skipped = 0
    try:
        found = list(results(events_path))
    except (OSError, ValueError) as error:
        print("count_tests: no build events of step %s: %s" % (step, error), file=sys.stderr)
        found = []
    for label, status, path in found:
        case_passed, case_failed, case_skipped = 0, [], []
        if path:
            try:
                case_passed, case_failed, case_skipped = cases(path)
            except (OSError, ET.ParseError):
                pass  # it died while writing: the status below counts
        if status not in ("PASSED", "FLAKY") and not case_failed:
            case_failed = ["the test itself (%s)" % status]
        passed += case_passed
        failed += len(case_failed)
        skipped += len(case_skipped)
        for name in case_failed:
            print("failed: [%s] %s %s" % (step, label, name), file=sys.stderr)
        for text in case_skipped:
            print("skipped: [%s] %s %s" % (step, label, text), file=sys.stderr)
    # 4: the build is fine but there was no test to run, which is a fault of the step as well.
    if exit_code != 0 and failed == 0:
        print("failed: [%s] bazel ended with %d" % (step, exit_code), file=sys.stderr)
        failed += 1
    print(passed, failed, skipped)


if __name__ == "__main__":
    main()
