// What an agent leaves beside the logs in its run's folder, for `muster logs`: which ranks its
// workers had in each attempt, which worlds those were part of, and whether more will come. The
// agent holds a lock on the file as long as it lives, so one that was killed is known, too.
// The end is noted when all that will be in the logs is there.
//
//   format 1
//   node <name>
//   boot <the kernel's boot id>
//   locked
//   attempt <n> <first rank> <workers> <world size> <nodes> <world>
//   ended <exit code> job|node
//
// Lines are only ever added; unknown ones are skipped.
#ifndef MUSTER_AGENT_RUN_RECORD_H_
#define MUSTER_AGENT_RUN_RECORD_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/job_types.h"
#include "base/rendezvous_messages.h"

namespace muster::agent {

inline constexpr char kRunRecordName[] = ".muster_run";

// Values; no behaviour beyond looking things up.
struct RunRecord {
  struct Attempt {
    int number = 0;
    int first_rank = 0;
    int worker_count = 0;
    int world_size = 0;
    int node_count = 0;
    // Half of the world's id: tells worlds apart, and isn't enough to speak for one.
    std::string world = {};

    friend bool operator==(const Attempt&, const Attempt&) = default;
  };
  struct End {
    int exit_code = 0;
    // The whole job's, so that other nodes end too; else only this node is known to have ended.
    bool is_of_job = false;

    friend bool operator==(const End&, const End&) = default;
  };

  std::string node;
  std::string boot_id;
  // The agent got the lock; file systems may refuse it.
  bool is_locked = false;
  std::vector<Attempt> attempts;
  std::optional<End> end;

  // The newest of this number, or null: a rendezvous without memory counts from 0 again.
  const Attempt* Find(int number) const;
};

// Of one place in a round.
RunRecord::Attempt AttemptOf(const StartRound& place, int worker_count);
RunRecord::End EndOf(const Verdict& verdict);

// Pure. What is after the last newline is still being written.
RunRecord ParseRunRecord(std::string_view text);
// None: there is no record in this folder, or it can't be read.
std::optional<RunRecord> ReadRunRecord(const std::string& run_folder);
// Nobody holds the lock any more. False where that can't be found out.
bool IsRunRecordLetGo(const std::string& run_folder);
// Of this machine's kernel since it started; empty if unknown.
std::string BootId();

// Writes it. Failures are not reported: the job goes on, and `muster logs` knows less. Each note is
// one append; thread-safe. Blocks as the disk does.
class RunRecordWriter {
 public:
  // Begins the record of a folder that is this agent's own, and takes the lock.
  RunRecordWriter(const std::string& run_folder, const std::string& node);
  // Lets go of the lock.
  ~RunRecordWriter();
  RunRecordWriter(const RunRecordWriter&) = delete;
  RunRecordWriter& operator=(const RunRecordWriter&) = delete;

  void Note(const RunRecord::Attempt& attempt);
  void Note(const RunRecord::End& end);

 private:
  void Append(const std::string& lines);

  int fd_ = -1;
};

}  // namespace muster::agent

#endif  // MUSTER_AGENT_RUN_RECORD_H_
