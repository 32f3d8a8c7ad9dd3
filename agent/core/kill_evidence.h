// Whether a worker's end was the kernel's doing for want of memory: a diagnosis rests on evidence,
// or says that there is none. A function and its facts; pure.
#ifndef MUSTER_AGENT_CORE_KILL_EVIDENCE_H_
#define MUSTER_AGENT_CORE_KILL_EVIDENCE_H_

#include <cstdint>
#include <optional>
#include <string>

#include "base/job_types.h"

namespace muster::agent {

// What the kernel's log says of one process.
enum class LogWord {
  // It can't be read, or records were lost.
  kUnknown,
  // It was read without a gap since before the worker's start, and has no kill of this process.
  kNotThis,
  // It names this process: its cgroup's limit, or the machine's memory, was reached.
  kOfCgroup,
  kOfMachine,
};

struct KillFacts {
  WorkerExit exit;
  // `oom_kill` of the worker's cgroup before its start and after its end; nothing: not counted.
  std::optional<uint64_t> kills_before;
  std::optional<uint64_t> kills_now;
  // How many of those between are told of other workers already.
  uint64_t kills_told = 0;
  // The tightest limit above the worker, and the highest use under it; nothing: none, or unknown.
  std::optional<uint64_t> limit;
  std::optional<uint64_t> peak;
  LogWord log = LogWord::kUnknown;
};

struct KillEvidence {
  bool out_of_memory = false;
  // One of the counter's kills is told now.
  bool takes_a_kill = false;
  // WorkerFailure::evidence; may be empty.
  std::string text;
};

KillEvidence ExplainKill(const KillFacts& facts);

// "200.0 MiB", "1.5 GiB", "512 bytes".
std::string BytesText(uint64_t bytes);

}  // namespace muster::agent

#endif  // MUSTER_AGENT_CORE_KILL_EVIDENCE_H_
