"""What muster still has to learn of torchrun. To be emptied.

What is listed here isn't compared; parity_test.py: Gaps looks that it still differs, so that what was learnt leaves
the list.
"""

# Variables of all workers, in all cases.
VARIABLES = {
    "TORCHELASTIC_USE_AGENT_STORE": "the agent doesn't serve PyTorch's store yet",
    "MASTER_PORT": "in the static layout the given port is the rendezvous' alone until the agent serves the store there",
}


def all_of(reason, *facts):
    return {fact: reason for fact in facts}


# {case: {fact: what is missing}}
GAPS = {
    "dollar_local_rank": all_of("${local_rank} in the arguments isn't replaced", "argv"),
    "run_path": all_of("no --run-path", "exit", "ranks", "stdout", "argv"),
    "run_path_with_two_workers": all_of("no --run-path", "exit", "ranks", "stdout", "environment"),
    "input_pipe_one_worker": all_of("a single worker doesn't get the launcher's standard input", "stdout", "input"),
    "the_launchers_own_error_file": all_of("isn't written without --log-dir", "error_file"),
    "the_launchers_own_error_file_of_two": all_of("isn't written without --log-dir", "error_file"),
    "record_writes_what_is_shown": all_of("the own error file isn't written without --log-dir", "error_file"),
    "nested_error_files": all_of("the own error file isn't written without --log-dir", "error_file", "summary"),
}
