// Names of the environment variables that muster sets for workers or reads, in one place;
// docs/environment.md describes each.
#ifndef MUSTER_BASE_ENV_H_
#define MUSTER_BASE_ENV_H_

namespace muster::env {

// Set for every worker, as torchrun does.
inline constexpr char kRank[] = "RANK";
inline constexpr char kLocalRank[] = "LOCAL_RANK";
inline constexpr char kWorldSize[] = "WORLD_SIZE";
inline constexpr char kLocalWorldSize[] = "LOCAL_WORLD_SIZE";
inline constexpr char kGroupRank[] = "GROUP_RANK";
inline constexpr char kGroupWorldSize[] = "GROUP_WORLD_SIZE";
inline constexpr char kRoleRank[] = "ROLE_RANK";
inline constexpr char kRoleName[] = "ROLE_NAME";
inline constexpr char kRoleWorldSize[] = "ROLE_WORLD_SIZE";
inline constexpr char kMasterAddr[] = "MASTER_ADDR";
inline constexpr char kMasterPort[] = "MASTER_PORT";
inline constexpr char kRestartCount[] = "TORCHELASTIC_RESTART_COUNT";
inline constexpr char kMaxRestarts[] = "TORCHELASTIC_MAX_RESTARTS";
inline constexpr char kRunId[] = "TORCHELASTIC_RUN_ID";
inline constexpr char kUseAgentStore[] = "TORCHELASTIC_USE_AGENT_STORE";
inline constexpr char kSignalsToHandle[] = "TORCHELASTIC_SIGNALS_TO_HANDLE";
inline constexpr char kErrorFile[] = "TORCHELASTIC_ERROR_FILE";
inline constexpr char kNcclAsyncErrorHandling[] = "TORCH_NCCL_ASYNC_ERROR_HANDLING";
inline constexpr char kOmpNumThreads[] = "OMP_NUM_THREADS";
// Only with --virtual-local-rank; read to see which GPUs there are.
inline constexpr char kVisibleGpus[] = "CUDA_VISIBLE_DEVICES";

// Set for every worker, ours.
// Abstract Unix socket of the worker's agent, without the leading NUL byte.
inline constexpr char kAgentSocket[] = "MUSTER_AGENT_SOCKET";
// Names one worker of one round of one agent: "<incarnation>/<round>/<local rank>". It opens the
// channel to the agent, and a sweep for left-over processes looks for it in /proc/<pid>/environ.
inline constexpr char kWorkerId[] = "MUSTER_WORKER_ID";
inline constexpr char kRound[] = "MUSTER_ROUND";
inline constexpr char kWorldId[] = "MUSTER_WORLD_ID";
inline constexpr char kRestartsCharged[] = "MUSTER_RESTARTS_CHARGED";
// Newest committed checkpoint of the job; absent when none was committed.
inline constexpr char kResumeStep[] = "MUSTER_RESUME_STEP";
inline constexpr char kResumeDir[] = "MUSTER_RESUME_DIR";

// Number of the signal on which the SDK shows the main thread's stack on stderr, unless the program
// has a function for it; absent: none. Set with --hang-timeout.
inline constexpr char kStackSignal[] = "MUSTER_STACK_SIGNAL";

// Width of the terminal on which this worker's stdout is shown; absent when it isn't shown on one.
// A worker writes into a pipe and can't see the terminal: this tells it that a progress bar makes
// sense.
inline constexpr char kConsoleColumns[] = "MUSTER_CONSOLE_COLUMNS";

// Set by `muster remote` for `muster run`, which takes it out of the environment again: what its
// sentences begin with, so that `muster run --hosts` can tell them from output.
inline constexpr char kRecordMark[] = "MUSTER_RECORD_MARK";

// Read by `muster run`.
inline constexpr char kPythonExec[] = "PYTHON_EXEC";
inline constexpr char kPrefixTemplate[] = "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE";
inline constexpr char kTopologyKey[] = "MUSTER_TOPOLOGY_KEY";
inline constexpr char kShutdownTimeout[] = "TORCH_ELASTIC_SHUTDOWN_TIMEOUT";
// "1": rank 0 hosts PyTorch's store, as --master-store=worker.
inline constexpr char kNoAgentStore[] = "TORCH_DISABLE_SHARE_RDZV_TCP_STORE";

}  // namespace muster::env

#endif  // MUSTER_BASE_ENV_H_
