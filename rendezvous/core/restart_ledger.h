// May the job start again after a worker's failure, and what has that cost so far? Keeps the budget
// of --max-restarts, and the signs that another try is of no use: too many within an hour, a
// program that never lived, and rounds that all end at the same step. Membership changes are free.
//
// The number of charges outlives a restart of the rendezvous, since agents tell it; the rest starts
// afresh then. A value; not thread-safe.
#ifndef MUSTER_RENDEZVOUS_CORE_RESTART_LEDGER_H_
#define MUSTER_RENDEZVOUS_CORE_RESTART_LEDGER_H_

#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "base/ids.h"
#include "base/instant.h"
#include "base/job_types.h"

namespace muster::rendezvous {

class RestartLedger {
 public:
  // What --max-restarts-per-hour counts over.
  static constexpr Duration kHour = std::chrono::hours(1);

  // How a round ended, as far as it tells whether another try is of use.
  struct RoundEnd {
    Instant at;
    // From its start until its stop began.
    Duration uptime{0};
    // It began before this life of the rendezvous, so it may have lived longer than `uptime`.
    bool is_recovered = false;
    // The highest step that its workers completed; -1: none was reported.
    int64_t last_step = -1;
    // The rank that failed first; -1 where none did.
    Rank culprit{-1};
  };

  struct Answer {
    bool may_restart = false;
    // If it may not: why, and what to do, as the end of a sentence.
    std::string reason;
  };

  int charged() const { return charged_; }
  // A worker's failure ended the round: takes one restart from the budget, or says why there is
  // none, and then nothing is taken.
  Answer Charge(const JobTerms& terms, const RoundEnd& end);
  // The round ended for another reason, which is free.
  void Pass(const JobTerms& terms, const RoundEnd& end);
  // A re-attaching agent knows of this many charges: the highest report counts.
  void LearnCharged(int charged);
  // A checkpoint of this step was committed.
  void Committed(int64_t step);

 private:
  // Rounds in a row that failed at one step.
  struct Stuck {
    int64_t step = 0;
    // After the first of them.
    int restarts = 0;
    // None if it was not the same in all.
    std::optional<Rank> culprit;
  };

  // A program that completed a step can run at all, however short it lived.
  void NoteUptime(const JobTerms& terms, const RoundEnd& end);
  void NoteStep(const RoundEnd& end);
  std::string WhyNot(const JobTerms& terms) const;

  int charged_ = 0;
  // When the charges of the last hour were made.
  std::deque<Instant> recent_;
  bool has_lived_ = false;
  // In a row, with nothing else between them.
  int early_failures_ = 0;
  std::optional<Stuck> stuck_;
  int64_t committed_step_ = -1;
};

}  // namespace muster::rendezvous

#endif  // MUSTER_RENDEZVOUS_CORE_RESTART_LEDGER_H_
