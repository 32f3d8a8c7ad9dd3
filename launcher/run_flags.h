// The flags of `muster run`, in the order of its help page, and the groups they are shown in. A
// table; no behaviour.
#ifndef MUSTER_LAUNCHER_RUN_FLAGS_H_
#define MUSTER_LAUNCHER_RUN_FLAGS_H_

#include "launcher/command_line.h"

namespace muster::launcher {

inline constexpr char kNodesFlags[] = "Nodes and workers";
inline constexpr char kMeetFlags[] = "Where the nodes meet";
inline constexpr char kSshFlags[] = "Other hosts, over ssh (docs/ssh.md)";
inline constexpr char kProgramFlags[] = "Program";
inline constexpr char kFaultsFlags[] = "Faults";
inline constexpr char kOutputFlags[] = "Output";
inline constexpr char kOtherFlags[] = "Other";

inline constexpr Origin kTorchrun = Origin::kTorchrun;
inline constexpr Origin kMpirun = Origin::kMpirun;

inline constexpr FlagSpec kRunFlags[] = {
    {"standalone", "", kNodesFlags, "One node; nothing to set up, and no other job is in the way",
     0, kTorchrun},
    {"nnodes", "N|MIN:MAX", kNodesFlags, "Nodes of the job (default 1:1)", 0, kTorchrun},
    {"nproc-per-node", "N|cpu|gpu|auto", kNodesFlags, "Workers on this node (default 1)", 0,
     kTorchrun},
    {"node-rank", "N", kNodesFlags,
     "This node's place among the nodes; in the static layout 0 hosts the rendezvous", 0,
     kTorchrun},
    {"topology-key", "KEY", kNodesFlags,
     "Where this node is, as rack2-node7: new nodes are ranked by it, as people count"},
    {"role", "NAME", kNodesFlags, "ROLE_NAME of the workers and the prefix of their output", 0,
     kTorchrun},
    {"omp-threads", "N|auto", kNodesFlags,
     "OMP_NUM_THREADS of each worker; auto: this node's processors divided by its workers (default "
     "as torchrun: 1 if it isn't set and there is more than one worker)"},
    {"numa-binding", "MODE", kNodesFlags,
     "Processors of each worker: those of its GPU's NUMA node (node), of the node's socket "
     "(socket), "
     "a share of the node's cores (exclusive), one shared cache (core-complex)",
     0, kTorchrun},
    {"bind-to", "none|core|socket|numa", kNodesFlags,
     "Processors of each worker, as with mpirun: one core each, in their order; or as "
     "--numa-binding=socket and node do",
     0, kMpirun},
    {"virtual-local-rank", "", kNodesFlags,
     "LOCAL_RANK=0 for all workers, and each sees its own GPU alone", 0, kTorchrun},
    {"master-addr", "HOST", kMeetFlags, "Address of node rank 0 (static layout; default 127.0.0.1)",
     0, kTorchrun},
    {"master-port", "PORT", kMeetFlags, "Port of the rendezvous (static layout; default 29500)", 0,
     kTorchrun},
    {"master-store", "agent|worker", kMeetFlags,
     "Who serves PyTorch's store at MASTER_ADDR:MASTER_PORT: muster (default), or rank 0 itself"},
    {"rdzv-backend", "static|c10d", kMeetFlags, "static: ranks by hand; c10d: elastic", 0,
     kTorchrun},
    {"rdzv-endpoint", "HOST[:PORT]", kMeetFlags,
     "Where the elastic rendezvous is; the node with that address hosts it (default port 29400)", 0,
     kTorchrun},
    {"rdzv-id", "ID", kMeetFlags, "Run id: tells jobs apart at one rendezvous (default none)", 0,
     kTorchrun},
    {"rdzv-conf", "K=V,...", kMeetFlags,
     "join_timeout=600, last_call_timeout=30, lease=3 (600 for a node alone; seconds), "
     "is_host=1|0, is_new=0|1 "
     "(1: this run id was never used, so nobody is waited for that might still have it)",
     0, kTorchrun},
    {"local-addr", "HOST", kMeetFlags, "Address at which other nodes reach this one", 0, kTorchrun},
    {"hosts", "HOST[:N],...", kSshFlags,
     "Start on these hosts, N workers on each (without N: --nproc-per-node); also --host", 'H',
     kMpirun, "host"},
    {"hostfile", "FILE", kSshFlags,
     "The same from lines \"HOST slots=N\" or \"HOST:N\"; also -machinefile", 0, kMpirun,
     "machinefile"},
    {"workers", "N", kSshFlags, "Workers in all, filling the hosts in their order; also -np", 'n',
     kMpirun, "np"},
    {"env", "NAME[=V]", kSshFlags,
     "Set this variable there, or pass it on; may be given often (PATH, PET_* and MUSTER_* are "
     "passed on anyway)",
     'x', kMpirun},
    {"wdir", "DIR", kSshFlags, "Folder to run in there (default: the same as here)", 0, kMpirun,
     "wd"},
    {"remote-muster", "PATH", kSshFlags,
     "muster's executable there (default: the same path as here)"},
    {"ssh-command", "WORDS", kSshFlags, "ssh with options of its own (default ssh)"},
    {"module", "", kProgramFlags, "The program is a Python module: python3 -u -m MODULE", 'm',
     kTorchrun},
    {"no-python", "", kProgramFlags, "The program is run directly, not by Python", 0, kTorchrun},
    {"run-path", "", kProgramFlags, "The program is a Python script, whatever --no-python says", 0,
     kTorchrun},
    {"stdin", "none|RANK|all", kProgramFlags,
     "Who reads standard input (default: the worker of a job of one, else nobody)"},
    {"preload", "MODULE,...", kProgramFlags,
     "Import these once, and fork the workers of every round from there"},
    {"local-rank-in-args", "", kProgramFlags,
     "${local_rank} in the program's arguments stands for each worker's, as with torchrun "
     "(default: "
     "arguments are never looked at)"},
    {"allow-other-programs", "", kProgramFlags,
     "Nodes may run other programs or arguments than the first one"},
    {"start-method", "NAME", kProgramFlags, "Accepted for torchrun's sake; without effect", 0,
     kTorchrun},
    {"max-restarts", "N", kFaultsFlags,
     "Worker failures after which all workers start again (default 0)", 0, kTorchrun},
    {"max-restarts-per-hour", "N", kFaultsFlags,
     "So many of them within any hour, then the job ends (default 0: no such limit)"},
    {"min-uptime", "SECONDS", kFaultsFlags,
     "A program that lived this long can run at all (default 1)"},
    {"max-early-failures", "N", kFaultsFlags,
     "Rounds in a row, from the first, that may fail before --min-uptime; then the job ends "
     "(default 10; 0: any number)"},
    {"max-stuck-restarts", "N", kFaultsFlags,
     "Restarts in a row that may fail at the same step, as the SDK reports it; then the job ends "
     "(default 3; 0: any number)"},
    {"max-node-failures", "N", kFaultsFlags,
     "After N losses of a node without a checkpoint or a minute of uptime between them the others "
     "go on without it, if they are enough (default 0: never)"},
    {"shutdown-timeout", "SECONDS", kFaultsFlags,
     "From SIGTERM to SIGKILL, a last checkpoint included (default 30)", 0, kTorchrun},
    {"signals-to-handle", "NAME,...", kFaultsFlags,
     "Signals that end the job in order and are passed on to the workers (default "
     "SIGTERM,SIGINT,SIGHUP,SIGQUIT); SIGUSR1 and SIGUSR2 are only passed on unless named here",
     0, kTorchrun},
    {"preemption-file", "PATH", kFaultsFlags,
     "When this file appears, as if SIGTERM had come: save, leave, end with 75"},
    {"preemption-signal", "USR1|USR2", kFaultsFlags,
     "This signal announces a preemption, as SIGTERM does; workers don't get it"},
    {"scale-up", "auto|immediate|checkpoint", kFaultsFlags,
     "When a new node is taken in (default auto: at a checkpoint if the job makes any)"},
    {"lost-peer-grace", "SECONDS", kFaultsFlags,
     "From SIGTERM to SIGKILL after another node was lost (default 0: SIGKILL at once)"},
    {"reconnect-timeout", "SECONDS", kFaultsFlags,
     "How long to try to reach a lost rendezvous (default 60)"},
    {"lost-contact", "auto|go-on|stop", kFaultsFlags,
     "Workers without contact to the rendezvous: until the lease ends, and beyond it while nobody "
     "listens there or if all use the SDK (auto, default); until the reconnect timeout whatever "
     "happens, even beside a newer world (go-on); until the lease ends (stop)"},
    {"hang-timeout", "SECONDS", kFaultsFlags,
     "Kill, as failed, a worker that completed no step for this long after one, or whose process "
     "is stopped; workers report steps through the SDK, and one that never did never hangs "
     "(default "
     "0: off)"},
    {"stack-signal", "NAME|none", kFaultsFlags,
     "Sent to a hung worker that catches it before it is killed, so that it prints its stacks "
     "(default SIGUSR1)"},
    {"monitor-interval", "SECONDS", kFaultsFlags,
     "Accepted for torchrun's sake; without effect, as nothing is polled", 0, kTorchrun},
    {"log-dir", "DIR", kOutputFlags,
     "Folder for the files of --redirects and --tee and for error files; kept", 0, kTorchrun},
    {"redirects", "0..3|RANK:V,...", kOutputFlags,
     "To files, not the console: 1 stdout, 2 stderr, 3 both", 'r', kTorchrun},
    {"tee", "0..3|RANK:V,...", kOutputFlags, "To files and the console; values as for --redirects",
     't', kTorchrun},
    {"log-line-prefix-template", "TEXT", kOutputFlags,
     "What stands before each line on the console, with ${role_name}, ${local_rank}, ${rank} and "
     "${hostname} (default [${role_name}${local_rank}]:)",
     0, kTorchrun},
    {"local-ranks-filter", "RANK,...", kOutputFlags,
     "The console shows these local ranks alone (default all); files keep all", 0, kTorchrun},
    {"duplicate-stdout-filters", "TEXT,...", kOutputFlags,
     "Lines of --tee's stdout that hold one of these texts go to filtered_stdout.log as well; two "
     "commas stand for one",
     0, kTorchrun},
    {"duplicate-stderr-filters", "TEXT,...", kOutputFlags,
     "The same for stderr and filtered_stderr.log", 0, kTorchrun},
    {"log-max-bytes", "SIZE", kOutputFlags,
     "A log file of this size (100M, 2G) becomes FILE.1, in the place of an older one, and a new "
     "one begins (default: no limit)"},
    {"logs-specs", "NAME", kOutputFlags, "Anything but default is refused: it names a Python class",
     0, kTorchrun},
    {"event-log-handler", "NAME", kOutputFlags, "Accepted for torchrun's sake; without effect", 0,
     kTorchrun},
    {"result-file", "PATH", kOutputFlags,
     "How the job ended, as JSON, written at its end on every node"},
    {"prefix", "auto|always|never", kOutputFlags,
     "Name the worker before each line of its output; auto: where there are several, and of --tee"},
    {"help", "", kOtherFlags, "Print this page", 'h', kTorchrun},
    {"version", "", kOtherFlags, "Print the version"},
};

}  // namespace muster::launcher

#endif  // MUSTER_LAUNCHER_RUN_FLAGS_H_
