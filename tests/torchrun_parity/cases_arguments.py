"""The table, part 1: what follows the options, and where it runs."""
from parity_case import ARGV, ENVIRONMENT, EXIT, FOLDER, INPUT, NOTES, RANKS, STDOUT, Case, Other

# torchrun fills its worker's words in a template, in which $$ is one dollar and ${local_rank} the rank.
NO_TEMPLATE = "arguments reach the program byte for byte: a shell's $$ must not become $"
# Python's argparse goes on looking for options, and eats the first --.
NOT_LOOKED_AT = "what follows the program is the program's: it is never looked at"
SHORTENED = ("--r=16", "--log", "5", "--mo", "0.9")


def after_program(name, *words, others=(), **more):
    return Case(name, facts=(ARGV,), command=("train.py", *words), others=others, **more)


ARGUMENTS = (
    after_program("no_arguments"),
    after_program("arguments_that_look_like_ours", "--nnodes", "3", "--nproc-per-node=8", "--standalone", "-m", "-h",
                  "--help", "--version", "--max-restarts=x", "-r", "3", "-t", "3"),
    after_program("shortened_options_after_the_program", *SHORTENED,
                  others=(Other(EXIT, ["ok"], NOT_LOOKED_AT), Other(RANKS, ["0.0"], NOT_LOOKED_AT),
                          Other(STDOUT, {"0": ["here"]}, NOT_LOOKED_AT),
                          Other(ARGV, {"0.0": ["train.py", *SHORTENED]}, NOT_LOOKED_AT))),
    after_program("a_double_dash_after_the_program", "a", "--", "--b"),
    after_program("a_double_dash_right_after_the_program", "--", "--b",
                  others=(Other(ARGV, {"0.0": ["train.py", "--", "--b"]}, NOT_LOOKED_AT),)),
    after_program("spaces_and_quotes", "two words", " ", "it's", 'say "hi"', "back\\slash", "tab\there"),
    after_program("new_lines", "one\ntwo", "\n"),
    after_program("unicode", "ä€", "日本語", "🙂"),
    after_program("empty_words", "", "a", ""),
    after_program("shell_words_are_words", "$HOME", "*", "`id`", "; ls", "&& false", "> file", "~", "{a,b}"),
    after_program("equals_and_commas", "a=b", "--x=y=z", "=", ",", "k=v,k=v"),
    after_program("numbers_and_dashes", "-1", "-", "---", "-1e5", "0x10"),
    after_program("dollars_double", "pid is $$", "$${local_rank}",
                  others=(Other(ARGV, {"0.0": ["train.py", "pid is $$", "$${local_rank}"]}, NO_TEMPLATE),)),
    after_program("dollar_local_rank", "--rank=${local_rank}", options=("--nproc-per-node=2",)),
    Case("many_arguments", command=("train.py", *("word%d" % i for i in range(2000))), facts=(NOTES,),
         program="note(count=len(sys.argv)); say(sys.argv[-1])"),
    Case("a_long_argument", command=("train.py", "x" * 100000), facts=(NOTES,),
         program="note(length=len(sys.argv[1]))"),
    after_program("rank_in_the_script", "a", options=("--nproc-per-node=3",),
                  program="say('rank %d of %d got %s' % (RANK, WORLD, sys.argv[1:]))"),
)

PROBE = "from probe import *\nsay(__name__)\n"
SHELL = "#!/bin/sh\nexec /usr/bin/python3 -c 'from probe import *; say(\"from a shell\")' \"$@\"\n"


def program_of(name, options, *command, **more):
    return Case(name, options=options, command=command, facts=(ARGV, FOLDER), **more)


PROGRAMS = (
    program_of("a_script", (), "train.py", "a"),
    program_of("a_script_by_its_whole_path", (), "{work}/train.py"),
    program_of("a_script_in_a_folder", (), "sub/job.py", files=(("sub/job.py", PROBE),)),
    program_of("a_script_from_below", (), "../train.py", start_in="deep"),
    program_of("a_script_with_spaces_in_its_path", (), "two words/my job.py",
               files=(("two words/my job.py", PROBE),)),
    program_of("a_script_with_unicode_in_its_path", (), "ä/日本.py", files=(("ä/日本.py", PROBE),)),
    program_of("a_script_that_imports_its_neighbour", (), "sub/job.py",
               files=(("sub/job.py", PROBE + "import neighbour\nsay(neighbour.VALUE)\n"),
                      ("sub/neighbour.py", "VALUE = 5\n"))),
    program_of("a_script_without_an_ending", (), "job", files=(("job", PROBE),)),
    program_of("a_folder_with_main", (), "app", files=(("app/__main__.py", PROBE),)),
    program_of("module", ("-m",), "pkg.train", "a", "-b", files=(("pkg/train.py", PROBE),)),
    program_of("module_long_spelling", ("--module",), "pkg.train", files=(("pkg/train.py", PROBE),)),
    program_of("module_package_with_main", ("-m",), "pkg", "x",
               files=(("pkg/__init__.py", ""), ("pkg/__main__.py", PROBE))),
    program_of("module_that_imports_relatively", ("-m",), "pkg.train",
               files=(("pkg/__init__.py", ""), ("pkg/other.py", "VALUE = 6\n"),
                      ("pkg/train.py", PROBE + "from . import other\nsay(other.VALUE)\n"))),
    program_of("module_in_a_deep_folder", ("-m",), "pkg.train", start_in="d e",
               files=(("d e/pkg/train.py", PROBE),)),
    program_of("module_by_environment", (), "pkg.train", environment=(("PET_MODULE", "1"),),
               files=(("pkg/train.py", PROBE),)),
    program_of("no_python", ("--no-python",), "./job.sh", "a", "-b", files=(("job.sh", SHELL),)),
    program_of("no_python_on_the_path", ("--no-python",), "env", "-u", "NOTHING", "/usr/bin/python3", "train.py"),
    program_of("no_python_by_its_whole_path", ("--no-python",), "{work}/job.sh", files=(("job.sh", SHELL),)),
    program_of("no_python_by_environment", (), "/bin/sh", "job.sh", "q",
               environment=(("PET_NO_PYTHON", "1"),), files=(("job.sh", SHELL),)),
    program_of("a_false_flag_in_the_environment", (), "train.py", environment=(("PET_NO_PYTHON", "0"),)),
    Case("no_python_leaves_output_buffered", options=("--no-python",), facts=(FOLDER,),
         command=("/usr/bin/python3", "train.py")),
    Case("python_exec", environment=(("PYTHON_EXEC", "{work}/other"),), facts=(ARGV,),
         program="say(os.environ['OTHER'])",
         files=(("other", "#!/bin/sh\nOTHER=\"$1\" exec /usr/bin/python3 \"$@\"\n"),)),
    Case("python_exec_and_no_python", options=("--no-python",), environment=(("PYTHON_EXEC", "/no/such"),),
         command=("/usr/bin/python3", "train.py"), facts=(ARGV,)),
    Case("run_path", options=("--run-path",), command=("{work}/train.py", "a", "-b"), facts=(ARGV,)),
    Case("run_path_with_two_workers", options=("--run-path", "--nproc-per-node=2"), facts=(ENVIRONMENT,),
         command=("{work}/train.py",), program="say(__name__)"),
    Case("pythonunbuffered_is_not_needed", program="sys.stdout.write('0|at once\\n'); os._exit(0)"),
    Case("the_workers_lead_sessions", options=("--nproc-per-node=2",), facts=(NOTES,),
         program="note(own_session=os.getsid(0) == os.getpid(), own_group=os.getpgid(0) == os.getpid())",
         others=(Other(NOTES, {"0.0": {"own_group": True, "own_session": True},
                               "0.1": {"own_group": True, "own_session": True}},
                       "each worker leads a session, as under the newest torchrun, so that all it started ends "
                       "with it; 1.13 leaves them in the launcher's"),)),
)

INPUTS = (
    Case("input_null", facts=(INPUT,)),
    Case("input_pipe_one_worker", facts=(INPUT,), stdin=b"hello\n", program="say(sys.stdin.read())"),
    Case("input_pipe_two_workers", facts=(INPUT,), stdin=b"", options=("--nproc-per-node=2",),
         others=(Other(INPUT, {"0.0": "null", "0.1": "null"},
                       "several workers that read one input steal each other's lines, and the next command's"),)),
)

CASES = ARGUMENTS + PROGRAMS + INPUTS
