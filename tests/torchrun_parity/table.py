"""All lines of the parity table."""
import cases_arguments
import cases_ends
import cases_environment
import cases_newer
import cases_output

AREAS = {
    "Arguments": cases_arguments.CASES,
    "Environment": cases_environment.CASES,
    "Ends": cases_ends.CASES,
    "Output": cases_output.CASES,
    "Newer": cases_newer.CASES,
}
ALL = [case for cases in AREAS.values() for case in cases]
BY_NAME = {case.name: case for case in ALL}
assert len(BY_NAME) == len(ALL), "two cases have one name"
