"""What muster still has to learn of torchrun. To be emptied.

What is listed here isn't compared; parity_test.py: Gaps looks that it still differs, so that what was learnt leaves
the list.
"""

# Variables of all workers, in all cases.
VARIABLES = {
    "TORCHELASTIC_USE_AGENT_STORE": "the agent doesn't serve PyTorch's store yet",
    "MASTER_PORT": "in the static layout the given port is the rendezvous' alone until the agent serves the store",
    "TORCHELASTIC_SIGNALS_TO_HANDLE": "isn't set",
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
    "no_new_line_at_the_end_tee": all_of("a single worker's tee'd lines have no prefix", "prefix"),
    "local_ranks_filter": all_of("no --local-ranks-filter", "exit", "ranks", "stdout", "logs", "prefix", "stderr"),
    "local_ranks_filter_of_two": all_of(
        "no --local-ranks-filter", "exit", "ranks", "stdout", "logs", "prefix", "stderr"),
    "local_ranks_filter_and_redirects": all_of("no --local-ranks-filter", "exit", "ranks", "logs"),
    "local_ranks_filter_without_files": all_of(
        "no --local-ranks-filter", "exit", "ranks", "stdout", "prefix", "stderr"),
    "local_ranks_filter_by_environment": all_of("no --local-ranks-filter", "stdout", "prefix", "stderr"),
    "duplicate_stdout_filters": all_of(
        "no --duplicate-*-filters", "exit", "ranks", "stdout", "logs", "prefix", "stderr"),
    "duplicate_stderr_filters": all_of(
        "no --duplicate-*-filters", "exit", "ranks", "stdout", "logs", "prefix", "stderr"),
    "duplicate_both": all_of(
        "no --duplicate-*-filters", "exit", "ranks", "stdout", "logs", "prefix", "stderr"),
    "duplicate_without_tee": all_of(
        "no --duplicate-*-filters", "exit", "ranks", "logs"),
    "event_log_handler": all_of("no --event-log-handler", "exit", "ranks", "stdout"),
    "event_log_handler_console": all_of("no --event-log-handler", "exit", "ranks", "stdout"),
    "logs_specs_default": all_of("no --logs-specs", "exit", "ranks", "stdout"),
    "signals_to_handle_usr1": all_of("no --signals-to-handle", "ranks", "notes"),
    "virtual_local_rank": all_of("no --virtual-local-rank", "exit", "ranks", "stdout", "environment"),
    "virtual_local_rank_of_given_devices": all_of("no --virtual-local-rank", "exit", "ranks", "stdout", "environment"),
}
