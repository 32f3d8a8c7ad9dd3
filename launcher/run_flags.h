// The flags of `muster run`, in the order of its help page, and the groups they are shown in. A
// table; no behaviour.
#ifndef MUSTER_LAUNCHER_RUN_FLAGS_H_
#define MUSTER_LAUNCHER_RUN_FLAGS_H_

#include "launcher/command_line.h"

namespace muster::launcher {

inline constexpr char kNodesFlags[] = "Nodes and workers";
inline constexpr char kMeetFlags[] = "Where the nodes meet";
inline constexpr char kProgramFlags[] = "Program";
inline constexpr char kFaultsFlags[] = "Faults";
inline constexpr char kOutputFlags[] = "Output";
inline constexpr char kOtherFlags[] = "Other";

inline constexpr FlagSpec kRunFlags[] = {
    {"standalone", "", kNodesFlags, "One node; nothing to set up, and no other job is in the way"},
    {"nnodes", "N|MIN:MAX", kNodesFlags, "Nodes of the job (default 1:1)"},
    {"nproc-per-node", "N|cpu|gpu|auto", kNodesFlags, "Workers on this node (default 1)"},
    {"node-rank", "N", kNodesFlags,
     "This node's place among the nodes; in the static layout 0 hosts the rendezvous"},
    {"topology-key", "KEY", kNodesFlags,
     "Where this node is, as rack2-node7: new nodes are ranked by it, as people count"},
    {"role", "NAME", kNodesFlags, "ROLE_NAME of the workers and the prefix of their output"},
    {"master-addr", "HOST", kMeetFlags,
     "Address of node rank 0 (static layout; default 127.0.0.1)"},
    {"master-port", "PORT", kMeetFlags, "Port of the rendezvous (static layout; default 29500)"},
    {"master-store", "agent|worker", kMeetFlags,
     "Who serves PyTorch's store at MASTER_ADDR:MASTER_PORT: muster (default), or rank 0 itself"},
    {"rdzv-backend", "static|c10d", kMeetFlags, "static: ranks by hand; c10d: elastic"},
    {"rdzv-endpoint", "HOST[:PORT]", kMeetFlags,
     "Where the elastic rendezvous is; the node with that address hosts it (default port 29400)"},
    {"rdzv-id", "ID", kMeetFlags, "Run id: tells jobs apart at one rendezvous (default none)"},
    {"rdzv-conf", "K=V,...", kMeetFlags,
     "join_timeout=600, last_call_timeout=30, lease=3 (seconds), is_host=1|0"},
    {"local-addr", "HOST", kMeetFlags, "Address at which other nodes reach this one"},
    {"module", "", kProgramFlags, "The program is a Python module: python3 -u -m MODULE", 'm'},
    {"no-python", "", kProgramFlags, "The program is run directly, not by Python"},
    {"preload", "MODULE,...", kProgramFlags,
     "Import these once, and fork the workers of every round from there"},
    {"allow-other-programs", "", kProgramFlags,
     "Nodes may run other programs or arguments than the first one"},
    {"start-method", "NAME", kProgramFlags, "Accepted for torchrun's sake; without effect"},
    {"max-restarts", "N", kFaultsFlags,
     "Worker failures after which all workers start again (default 0)"},
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
     "From SIGTERM to SIGKILL, a last checkpoint included (default 30)"},
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
     "Accepted for torchrun's sake; nothing is polled"},
    {"log-dir", "DIR", kOutputFlags,
     "Folder for the files of --redirects and --tee and for error files; kept"},
    {"redirects", "0..3|RANK:V,...", kOutputFlags,
     "To files, not the console: 1 stdout, 2 stderr, 3 both", 'r'},
    {"tee", "0..3|RANK:V,...", kOutputFlags, "To files and the console; values as for --redirects",
     't'},
    {"result-file", "PATH", kOutputFlags,
     "How the job ended, as JSON, written at its end on every node"},
    {"prefix", "auto|always|never", kOutputFlags, "Name the worker before each line of its output"},
    {"help", "", kOtherFlags, "Print this page", 'h'},
    {"version", "", kOtherFlags, "Print the version"},
};

}  // namespace muster::launcher

#endif  // MUSTER_LAUNCHER_RUN_FLAGS_H_
