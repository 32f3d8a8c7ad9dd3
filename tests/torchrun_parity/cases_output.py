"""The table, part 4: where output goes."""
from facts import shortened
from parity_case import LOGS, PREFIX, STDERR, STDOUT, Case, Other

TWO = ("--nproc-per-node=2",)
BYTES = "output is bytes; torchrun decodes what it tees, and shows nothing more of a worker that wrote something else"
WHOLE = "lines are whole; torchrun's threads write into each other's"
SPEAK = "say('out'); complain('err'); say('again')"


def output(name, options, program=SPEAK, facts=(LOGS, PREFIX, STDERR), **more):
    return Case(name, options=(*TWO, "--log-dir={logs}", *options), program=program, facts=facts, **more)


VALUES = tuple(
    output("%s_%s" % (flag, value.replace(":", "is").replace(",", "_")), ("--%s=%s" % (flag, value),))
    for flag in ("redirects", "tee") for value in ("0", "1", "2", "3", "0:1", "1:2", "0:3,1:1", "0:1,1:2", "0:0,1:3"))

SHAPES = (
    output("short_redirects", ("-r", "1")),
    output("short_tee", ("-t", "3")),
    output("redirects_and_tee", ("-r", "2", "-t", "1")),
    output("redirects_over_tee", ("-r", "3", "-t", "3")),
    output("redirects_of_a_rank_that_is_not_there", ("--redirects=5:3",)),
    output("by_environment", (), environment=(("PET_TEE", "1"), ("PET_REDIRECTS", "2"))),
    output("log_dir_by_environment", ("--tee=3",), environment=(("PET_LOG_DIR", "{logs}"),)),
    output("log_dir_of_a_named_job", ("--tee=3", "--rdzv-id=my_job", "--master-port={port}")),
    output("log_dir_of_a_standalone_job", ("--tee=3", "--standalone")),
    output("log_dir_below_another", ("--tee=1", "--log-dir={logs}/a/b")),
    output("role_in_the_prefix", ("--tee=3", "--role=judge")),
    output("no_new_line_at_the_end", ("--redirects=1",), "sys.stdout.write('%d|no end' % RANK)"),
    output("no_new_line_at_the_end_tee", ("--tee=1", "--nproc-per-node=1"), "sys.stdout.write('%d|no end' % RANK)"),
    output("empty_output", ("--tee=3",), ""),
    output("empty_lines", ("--redirects=1",), "print(); print(); say('x')"),
    output("bytes_that_are_no_text", ("--redirects=1",),
           "os.write(1, b'%d|\\xff\\xfe\\x00end\\n' % RANK)"),
    output("bytes_that_are_no_text_tee", ("--tee=1",),
           "os.write(1, b'%d|\\xff\\xfe\\n' % RANK); say('after')",
           others=(Other(STDOUT, {r: ["\\xff\\xfe", "after"] for r in "01"}, BYTES),
                   Other(PREFIX, {r: ["[default%s]:" % r] for r in "01"}, BYTES))),
    output("carriage_returns", ("--redirects=1",), "os.write(1, b'%d|a\\rb\\n' % RANK)"),
    output("long_lines", ("--tee=1",), "say('x' * 200000)"),
    output("many_lines_in_order", ("--tee=1", "--nproc-per-node=1"), "[say('line %d' % i) for i in range(2000)]", ()),
    output("many_lines_of_two", ("--tee=1",), "[say('line %d' % i) for i in range(2000)]", (PREFIX,),
           unsteady=(STDOUT, PREFIX),
           others=(Other(STDOUT, {r: shortened(["line %d" % i for i in range(2000)]) for r in "01"}, WHOLE),
                   Other(PREFIX, {r: ["[default%s]:" % r] for r in "01"}, WHOLE))),
    output("output_of_children", ("--tee=3",), "import subprocess; subprocess.run(['sh', '-c', "
           "'echo \"$RANK|child\"; echo \"$RANK|child err\" >&2'])"),
    output("stderr_alone", ("--tee=2",), "complain('only here')"),
)

PLAIN = (
    Case("one_worker_has_no_prefix", program=SPEAK, facts=(PREFIX, STDERR)),
    Case("two_workers_are_named", options=TWO, program=SPEAK, facts=(PREFIX, STDERR)),
    Case("order_within_a_rank", program="[say(i) for i in range(500)]"),
)

TEMPLATE = "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE"
NEWER = (
    output("local_ranks_filter", ("--tee=3", "--local-ranks-filter=1"), since=(2, 2)),
    output("local_ranks_filter_of_two", ("--tee=3", "--nproc-per-node=3", "--local-ranks-filter=0,2"), since=(2, 2)),
    output("local_ranks_filter_and_redirects", ("--redirects=3", "--local-ranks-filter=0"), since=(2, 2)),
    output("local_ranks_filter_without_files", ("--local-ranks-filter=0",), since=(2, 2)),
    output("local_ranks_filter_by_environment", ("--tee=3",), environment=(("PET_LOCAL_RANKS_FILTER", "0"),),
           since=(2, 2)),
    output("log_dir_null", ("--log-dir=/dev/null",), since=(2, 3)),
    output("prefix_template", ("--tee=3", "--role=r"),
           environment=((TEMPLATE, "<${role_name} ${local_rank}/${rank}> "),), facts=(LOGS,), since=(2, 3),
           program="print('x')"),
    output("duplicate_stdout_filters", ("--tee=3", "--duplicate-stdout-filters=again"), since=(2, 9)),
    output("duplicate_stderr_filters", ("--tee=3", "--duplicate-stderr-filters=err"), since=(2, 9)),
    output("duplicate_both", ("--tee=3", "--duplicate-stdout-filters=out,again", "--duplicate-stderr-filters=none"),
           since=(2, 9)),
    output("duplicate_without_tee", ("--redirects=3", "--duplicate-stdout-filters=out"), since=(2, 9)),
)

CASES = VALUES + SHAPES + PLAIN + NEWER
