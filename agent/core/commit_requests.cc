#include "agent/core/commit_requests.h"

#include <utility>

namespace muster::agent {
namespace {

// A checkpoint asks once for each local worker, and few are under way at a time.
constexpr size_t kMostKept = 4096;

}  // namespace

bool CommitRequests::Keep(Request request) {
  // A retry replaces what it repeats.
  std::erase_if(requests_, [&](const Request& r) { return r.message == request.message; });
  if (requests_.size() >= kMostKept) return false;
  requests_.push_back(std::move(request));
  return true;
}

bool CommitRequests::Add(const ShardReport& report) {
  return Keep({.rank = report.rank,
               .commit = report.commit,
               .is_answered = report.rank != Rank(0),
               .message = report});
}

bool CommitRequests::Add(const CommitDone& done) {
  return Keep({.rank = Rank(0), .commit = done.commit, .is_publish = true, .message = done});
}

std::vector<CommitRequests::Request> CommitRequests::Granted(const Commit& commit) {
  std::vector<Request> answered;
  for (Request& r : requests_) {
    if (r.is_publish || r.is_answered || r.commit != commit) continue;
    r.is_answered = true;
    answered.push_back(r);
  }
  return answered;
}

std::vector<CommitRequests::Request> CommitRequests::Noted(const Commit& commit) {
  std::vector<Request> answered;
  for (const Request& r : requests_) {
    if (r.is_publish && r.commit.step <= commit.step) answered.push_back(r);
  }
  std::erase_if(requests_, [&](const Request& r) {
    return (r.is_publish || r.is_answered) && r.commit.step <= commit.step;
  });
  return answered;
}

std::vector<CommitRequests::Request> CommitRequests::Refused(const Commit& commit) {
  std::vector<Request> answered;
  for (const Request& r : requests_) {
    if (r.commit == commit && !r.is_answered) answered.push_back(r);
  }
  std::erase_if(requests_, [&](const Request& r) { return r.commit == commit; });
  return answered;
}

std::vector<CommitRequests::Request> CommitRequests::DropAll() {
  std::erase_if(requests_, [](const Request& r) { return r.is_answered; });
  return std::exchange(requests_, {});
}

std::vector<AgentMessage> CommitRequests::ToRepeat() const {
  std::vector<AgentMessage> messages;
  messages.reserve(requests_.size());
  for (const Request& r : requests_) messages.push_back(r.message);
  return messages;
}

}  // namespace muster::agent
