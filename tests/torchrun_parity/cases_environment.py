"""The table, part 2: what workers find in their environment, under every way to say how many there are."""
import os

from parity_case import ENVIRONMENT, EXIT, RANKS, STDOUT, Case, Other

TWO = ("--nproc-per-node=2",)


def env(name, options, variables=(), others=(), **more):
    return Case(name, options=options, environment=variables, facts=(ENVIRONMENT,), others=others, **more)


LAYOUTS = (
    env("plain", ()),
    env("plain_two_workers", TWO),
    env("standalone", ("--standalone",)),
    env("standalone_three_workers", ("--standalone", "--nproc-per-node=3")),
    env("standalone_overrides_the_endpoint", ("--standalone", "--rdzv-endpoint=nowhere.invalid:1", "--rdzv-id=mine",
                                              "--rdzv-backend=static", *TWO)),
    env("nnodes_one", ("--nnodes=1", *TWO)),
    env("nnodes_one_to_one", ("--nnodes=1:1", *TWO)),
    env("static_with_a_port", ("--master-port={port}", *TWO)),
    env("static_with_address_and_port", ("--nnodes=1", "--node-rank=0", "--master-addr=127.0.0.1",
                                         "--master-port={port}", *TWO)),
    env("static_endpoint", ("--rdzv-backend=static", "--rdzv-endpoint=127.0.0.1:{port}", *TWO)),
    env("c10d_one_node", ("--rdzv-backend=c10d", "--rdzv-endpoint=127.0.0.1:{port}", *TWO)),
    env("c10d_with_an_id", ("--rdzv-backend=c10d", "--rdzv-endpoint=127.0.0.1:{port}", "--rdzv-id=my-job_1", *TWO)),
    env("c10d_port_zero", ("--nnodes=1", "--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0", "--rdzv-id=x", *TWO)),
    env("an_id_of_a_static_job", ("--rdzv-id=job7", "--master-port={port}", *TWO)),
    env("role", ("--role=trainer", *TWO)),
    env("max_restarts", ("--max-restarts=3",)),
    env("two_static_nodes", (), nodes=(
        ("--nnodes=2", "--node-rank=0", "--master-addr=127.0.0.1", "--master-port={port}", *TWO),
        ("--nnodes=2", "--node-rank=1", "--master-addr=127.0.0.1", "--master-port={port}", *TWO))),
    env("two_static_nodes_of_other_sizes", (), nodes=(
        ("--nnodes=2", "--node-rank=0", "--master-addr=127.0.0.1", "--master-port={port}", "--nproc-per-node=1"),
        ("--nnodes=2", "--node-rank=1", "--master-addr=127.0.0.1", "--master-port={port}", "--nproc-per-node=3"))),
    env("two_static_nodes_by_endpoint", (), nodes=(
        ("--nnodes=2", "--node-rank=0", "--rdzv-backend=static", "--rdzv-endpoint=127.0.0.1:{port}"),
        ("--nnodes=2", "--node-rank=1", "--rdzv-backend=static", "--rdzv-endpoint=127.0.0.1:{port}"))),
    env("three_static_nodes", (), nodes=tuple(
        ("--nnodes=3", "--node-rank=%d" % i, "--master-addr=127.0.0.1", "--master-port={port}") for i in range(3))),
    env("two_elastic_nodes", (), nodes=2 * ((
        "--nnodes=2", "--rdzv-backend=c10d", "--rdzv-endpoint=127.0.0.1:{port}", "--rdzv-id=job", *TWO),)),
    env("elastic_with_room", ("--nnodes=1:2", "--rdzv-backend=c10d", "--rdzv-endpoint=127.0.0.1:{port}",
                              "--rdzv-id=job", "--rdzv-conf=last_call_timeout=1", *TWO)),
    env("elastic_two_of_three", (), nodes=2 * ((
        "--nnodes=2:3", "--rdzv-backend=c10d", "--rdzv-endpoint=127.0.0.1:{port}", "--rdzv-id=job",
        "--rdzv-conf=last_call_timeout=2"),)),
)

VARIABLES = (
    env("omp_is_one_for_two", TWO),
    env("omp_is_left_out_for_one", ("--nproc-per-node=1",)),
    env("omp_is_kept", TWO, (("OMP_NUM_THREADS", "5"),)),
    env("omp_is_kept_when_empty", TWO, (("OMP_NUM_THREADS", ""),)),
    env("nccl_error_handling_is_kept", (), (("NCCL_ASYNC_ERROR_HANDLING", "0"),
                                            ("TORCH_NCCL_ASYNC_ERROR_HANDLING", "0"))),
    env("cuda_devices_are_kept", TWO, (("CUDA_VISIBLE_DEVICES", "3,1"),)),
    Case("any_value_passes", environment=(("A", "x; touch pwned"), ("B", "two\nlines"), ("C", "x=y=z"), ("D", ""),
                                          ("E", "64(x2)"), ("F", "日本"), ("BASH_FUNC_f%%", "() { echo hi; }")),
         program="for name in ('A', 'B', 'C', 'D', 'E', 'F', 'BASH_FUNC_f%%'):\n"
                 "    say(repr(os.environ[name]))\n"),
    Case("given_ranks_are_overwritten", environment=(("RANK", "7"), ("WORLD_SIZE", "9"), ("LOCAL_RANK", "5"),
                                                     ("MASTER_ADDR", "nowhere"), ("MASTER_PORT", "1")),
         facts=(ENVIRONMENT,)),
    Case("torchelastic_run_id_shows_the_launch", program="say('TORCHELASTIC_RUN_ID' in os.environ)"),
    Case("is_torchelastic_launched", needs_torch=True,
         program="import torch.distributed as d; say(d.is_torchelastic_launched())"),
)

PET = (
    env("pet_nnodes", TWO, (("PET_NNODES", "1:1"),)),
    env("pet_nproc_per_node", (), (("PET_NPROC_PER_NODE", "3"),)),
    env("pet_is_below_the_option", TWO, (("PET_NPROC_PER_NODE", "3"),)),
    env("pet_standalone", TWO, (("PET_STANDALONE", "1"),)),
    env("pet_standalone_zero", TWO, (("PET_STANDALONE", "0"),)),
    env("pet_role", (), (("PET_ROLE", "judge"),)),
    env("pet_max_restarts", (), (("PET_MAX_RESTARTS", "4"),)),
    env("pet_rdzv", (), (("PET_RDZV_BACKEND", "c10d"), ("PET_RDZV_ENDPOINT", "127.0.0.1:{port}"),
                         ("PET_RDZV_ID", "by-env"), ("PET_RDZV_CONF", "last_call_timeout=1"))),
    env("pet_master", TWO, (("PET_MASTER_ADDR", "127.0.0.1"), ("PET_MASTER_PORT", "{port}"),
                            ("PET_NODE_RANK", "0"))),
    env("pet_option_twice", ("--nproc-per-node=1", "--nproc-per-node=2")),
    env("pet_start_method", ("--start-method=fork",)),
    env("pet_monitor_interval", ("--monitor-interval=0.2",)),
)

COUNTS = (
    Case("nproc_cpu", options=("--nproc-per-node=cpu",), program="say(WORLD == len(os.sched_getaffinity(0)))"),
    Case("nproc_auto", options=("--nproc-per-node=auto",), program="say(WORLD == len(os.sched_getaffinity(0)))"),
    Case("nproc_gpu_without_a_gpu", options=("--nproc-per-node=gpu",), environment=(("CUDA_VISIBLE_DEVICES", ""),),
         code=64),
    Case("nproc_nonsense", options=("--nproc-per-node=many",), code=64),
    Case("nproc_zero", options=("--nproc-per-node=0",), code=64),
    Case("nnodes_turned_round", options=("--nnodes=3:2",), code=64),
    Case("nnodes_zero", options=("--nnodes=0",), code=64),
    Case("nnodes_nonsense", options=("--nnodes=1:2:3",), code=64),
    Case("max_restarts_negative", options=("--max-restarts=-1",), code=64),
    Case("max_restarts_nonsense", options=("--max-restarts=few",), code=64),
    Case("module_and_no_python", options=("-m", "--no-python"), command=("pkg",), code=64),
    Case("no_program", command=(), code=64),
    Case("unknown_option", options=("--no-such-option",), code=64),
    Case("unknown_backend", options=("--rdzv-backend=zeus",), code=64),
    Case("redirects_nonsense", options=("--redirects=4",), code=64),
    Case("tee_nonsense", options=("--tee=0:1,x:2",), code=64),
    Case("port_nonsense", options=("--master-port=http",), code=64),
    Case("start_method_nonsense", options=("--start-method=hope",), code=64),
    Case("rdzv_conf_nonsense", options=("--rdzv-conf=abc",), code=64),
    Case("shortened_option", options=("--nproc=2",), code=64,
         others=(Other(EXIT, ["failed"], "an option that is added later must not change what a script means"),
                 Other(RANKS, [], "as above"), Other(STDOUT, {}, "as above"))),
    Case("help", options=("--help",), program="", command=(), without=(STDOUT,)),
)

# The number of processors decides how many ranks there are in nproc_cpu; on one they'd be one.
if len(os.sched_getaffinity(0)) != 2:
    COUNTS = tuple(c for c in COUNTS if c.name not in ("nproc_cpu", "nproc_auto"))

CASES = LAYOUTS + VARIABLES + PET + COUNTS
