#include "launcher/log_choice.h"

#include <algorithm>

#include "launcher/text.h"

namespace muster::launcher {
namespace {

// Of a line that a person reads.
constexpr int kMostRanges = 20;
constexpr char kOnlyThese[] = "only streams of --redirects and --tee are written to files";

// How many workers the attempts in question had, on all nodes and on the largest of these.
struct Size {
  int world = 0;
  int node = 0;
};

Size SizeOf(const LogChoice& choice, const KnownLogs& known) {
  Size size;
  for (const RunFolder& folder : known.folders) {
    if (!folder.record) continue;
    for (const auto& attempt : folder.record->attempts) {
      if (choice.attempt && *choice.attempt != attempt.number) continue;
      size.world = std::max(size.world, attempt.world_size);
      size.node = std::max(size.node, attempt.worker_count);
    }
  }
  return size;
}

bool HasRecord(const KnownLogs& known) {
  return std::ranges::any_of(known.folders,
                             [](const RunFolder& f) { return f.record.has_value(); });
}

bool IsBeyond(const std::optional<int>& rank, int size) {
  return rank && size > 0 && *rank >= size;
}

}  // namespace

bool LogChoice::Takes(const WorkerLog& log) const {
  return (!rank || log.rank == rank) && (!local_rank || log.local_rank == *local_rank) &&
         (!attempt || log.attempt == *attempt);
}

std::string RangesOf(const std::set<int>& numbers) {
  std::string text;
  int count = 0;
  for (auto it = numbers.begin(); it != numbers.end(); ++count) {
    if (count == kMostRanges) return text + ", ...";
    const int first = *it;
    int last = first;
    while (++it != numbers.end() && *it == last + 1) ++last;
    text += Cat(text.empty() ? "" : ", ", first);
    if (last > first) text += Cat("-", last);
  }
  return text;
}

std::string WhyNoLogs(const LogChoice& choice, const KnownLogs& known) {
  const std::string folder = InQuotes(known.folder);
  const Size size = SizeOf(choice, known);
  if (IsBeyond(choice.rank, size.world)) {
    return Cat("--rank=", *choice.rank, ": the job has no rank ", *choice.rank,
               "; its ranks are 0 to ", size.world - 1);
  }
  if (IsBeyond(choice.local_rank, size.node)) {
    return Cat("--local-rank=", *choice.local_rank, ": no node of ", folder, " has local rank ",
               *choice.local_rank, "; there are local ranks 0 to ", size.node - 1);
  }
  if (known.logs.empty()) return Cat(folder, " holds no log files; ", kOnlyThese);
  std::set<int> attempts, ranks, local_ranks;
  for (const WorkerLog& log : known.logs) {
    attempts.insert(log.attempt);
    if (choice.attempt && log.attempt != *choice.attempt) continue;
    if (log.rank) ranks.insert(*log.rank);
    local_ranks.insert(log.local_rank);
  }
  if (choice.attempt && !attempts.contains(*choice.attempt)) {
    return Cat("--attempt=", *choice.attempt, ": no log files of attempt ", *choice.attempt, " in ",
               folder, "; there are those of attempts ", RangesOf(attempts));
  }
  if (choice.rank && ranks.empty()) {
    return Cat("--rank=", *choice.rank, ": ", folder,
               " doesn't say which ranks its workers had (another launcher made it, or an older "
               "muster); use --local-rank, there are local ranks ",
               RangesOf(local_ranks));
  }
  if (choice.rank) {
    return Cat("--rank=", *choice.rank, ": no log files of rank ", *choice.rank, " in ", folder,
               "; there are those of ranks ", RangesOf(ranks), " (each node has its own, and ",
               kOnlyThese, ")");
  }
  return Cat("--local-rank=", choice.local_rank.value_or(0), ": no log files of local rank ",
             choice.local_rank.value_or(0), " in ", folder, "; there are those of local ranks ",
             RangesOf(local_ranks), " (", kOnlyThese, ")");
}

bool IsHopeless(const LogChoice& choice, const KnownLogs& known) {
  if (choice.rank && !HasRecord(known)) return true;
  const Size size = SizeOf(choice, known);
  return IsBeyond(choice.rank, size.world) || IsBeyond(choice.local_rank, size.node);
}

}  // namespace muster::launcher
