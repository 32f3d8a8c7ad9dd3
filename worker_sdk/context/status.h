// The result of every SDK call: a code that tells the caller what to do, and a sentence for people.
// Codes and numbers are those of gRPC and Abseil, which the SDK doesn't link. Values.
#ifndef MUSTER_WORKER_SDK_CONTEXT_STATUS_H_
#define MUSTER_WORKER_SDK_CONTEXT_STATUS_H_

#include <optional>
#include <string>
#include <utility>

#include "base/check.h"

namespace muster {

enum class StatusCode : int {
  kOk = 0,
  kCancelled = 1,           // we are shutting down
  kInvalidArgument = 3,     // malformed, whatever our state: fix it
  kDeadlineExceeded = 4,    // time is up, the outcome is unknown
  kNotFound = 5,            // no such key, file or checkpoint
  kAlreadyExists = 6,       // taken by another
  kResourceExhausted = 8,   // no memory, no space
  kFailedPrecondition = 9,  // something must be done first
  kAborted = 10,            // the round is over or a peer is lost: leave, or rejoin
  kInternal = 13,           // a bug in muster: report it
  kUnavailable = 14,        // can't be reached now: retry
  kDataLoss = 15,           // stored bytes are damaged
};

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(StatusCode code, std::string message) : code_(code), message_(std::move(message)) {}

  bool ok() const { return code_ == StatusCode::kOk; }
  StatusCode code() const { return code_; }
  const std::string& message() const { return message_; }
  // For PeerLost errors: the rank that was lost. -1: not such an error, or not known which.
  int lost_rank() const { return lost_rank_; }

  // A collective ended because a peer (or the whole round) is gone.
  static Status PeerLost(int rank, std::string reason) {
    Status s(StatusCode::kAborted, std::move(reason));
    s.lost_rank_ = rank;
    return s;
  }

 private:
  StatusCode code_ = StatusCode::kOk;
  std::string message_;
  int lost_rank_ = -1;
};

// "ABORTED", ...
const char* StatusCodeName(StatusCode code);

// A value, or the reason why there is none.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}         // NOLINT(google-explicit-constructor)
  Result(Status status) : status_(std::move(status)) {  // NOLINT(google-explicit-constructor)
    MUSTER_CHECK(!status_.ok());
  }

  bool ok() const { return value_.has_value(); }
  const Status& status() const { return status_; }
  // Only when ok().
  T& value() & {
    MUSTER_CHECK(ok());
    return *value_;
  }
  const T& value() const& {
    MUSTER_CHECK(ok());
    return *value_;
  }
  T&& value() && {
    MUSTER_CHECK(ok());
    return *std::move(value_);
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

 private:
  Status status_;
  std::optional<T> value_;
};

}  // namespace muster

#endif  // MUSTER_WORKER_SDK_CONTEXT_STATUS_H_
