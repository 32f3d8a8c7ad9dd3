#include "rendezvous/core/verdict.h"

#include <algorithm>

#include "base/signal_name.h"

namespace muster::rendezvous {
namespace {

bool IsSeenToHang(const WorkerFailure& failure) { return failure.hung && !failure.only_waited; }

}  // namespace

void FailureList::Add(Instant now, const WorkerFailure& failure) {
  const Duration age = std::max(failure.age, Duration(0));
  Entry entry{now - age, ++arrivals_, failure};
  for (const Entry& kept : kept_) {
    if (kept.failure.rank == failure.rank) return;
  }
  auto later = std::find_if(kept_.begin(), kept_.end(), [&](const Entry& kept) {
    if (IsSeenToHang(failure) && kept.failure.only_waited) return true;
    if (failure.only_waited && IsSeenToHang(kept.failure)) return false;
    return entry.happened < kept.happened;
  });
  kept_.insert(later, std::move(entry));
  if (kept_.size() > kMaxKept) kept_.pop_back();
}

const WorkerFailure* FailureList::Hopeless() const {
  for (const Entry& entry : kept_) {
    if (entry.failure.IsHopeless()) return &entry.failure;
  }
  return nullptr;
}

std::vector<WorkerFailure> FailureList::InOrder(Instant now) const {
  std::vector<WorkerFailure> failures;
  failures.reserve(kept_.size());
  for (const Entry& entry : kept_) {
    failures.push_back(entry.failure);
    failures.back().age = now - entry.happened;
  }
  return failures;
}

void AddReason(std::string& reasons, const std::string& text) {
  constexpr size_t kMostBytes = 1000;
  const bool is_known = reasons.find(text) != std::string::npos;
  if (is_known || reasons.size() + text.size() > kMostBytes) return;
  reasons += (reasons.empty() ? "" : "; ") + text;
}

std::string DescribeFailure(const WorkerFailure& failure) {
  std::string text = "worker rank " + std::to_string(failure.rank.value) + " (local rank " +
                     std::to_string(failure.local_rank.value);
  if (failure.pid > 0) text += ", pid " + std::to_string(failure.pid);
  text += ") on node " + failure.node_name;
  if (failure.failed_to_start) {
    text += " could not start";
    if (failure.exit.code == 126) text += ": the program is not executable";
    if (failure.exit.code == 127) text += ": the program was not found";
    if (!failure.message.empty()) text += " (" + failure.message + ")";
  } else if (failure.only_waited) {
    text += " only waited for other ranks and was killed, since no rank was found that hangs";
  } else if (failure.hung) {
    text += " hung and was killed";
  } else if (failure.out_of_memory) {
    text += " was killed by the kernel for want of memory (signal 9)";
  } else if (failure.exit.signal != 0) {
    text += " was killed by signal " + std::to_string(failure.exit.signal) + " (" +
            SignalName(failure.exit.signal) + ")";
  } else {
    text += " exited with code " + std::to_string(failure.exit.code);
  }
  return text;
}

Verdict FailedByWorker(Instant now, const FailureList& failures, int restarts_charged,
                       const std::string& why_not_restarted) {
  Verdict verdict;
  verdict.failures = failures.InOrder(now);
  verdict.restarts_charged = restarts_charged;
  const WorkerFailure* hopeless = failures.Hopeless();
  const WorkerFailure& root = hopeless != nullptr ? *hopeless : failures.root();
  if (hopeless != nullptr) {
    // The one to blame comes first, whatever else failed before it.
    auto place = std::find_if(verdict.failures.begin(), verdict.failures.end(),
                              [](const WorkerFailure& f) { return f.IsHopeless(); });
    std::rotate(verdict.failures.begin(), place, place + 1);
  }
  // A failure with exit code 0 (a reader of the error file may call it one) must not end as
  // success.
  verdict.exit_code = root.exit.ShellCode() == 0 ? 1 : root.exit.ShellCode();
  verdict.reason = DescribeFailure(root);
  if (hopeless != nullptr) {
    verdict.reason += "; give the path of an executable program, the same on every node";
  } else {
    verdict.reason += "; " + why_not_restarted;
  }
  return verdict;
}

}  // namespace muster::rendezvous
