// Reads the fields of a protobuf message that came from outside, checks each against its bound, and
// keeps the first thing that is wrong. Private to this folder. One thread.
#ifndef MUSTER_PROTO_FIELD_READER_H_
#define MUSTER_PROTO_FIELD_READER_H_

#include <algorithm>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "proto/session_convert.h"

namespace muster {

// Reads fields and keeps the first thing that is wrong. What is returned after a mistake is a
// default, which nobody gets to see.
class FieldReader {
 public:
  absl::Status status() const {
    return problem_.empty() ? absl::OkStatus() : absl::InvalidArgumentError(problem_);
  }
  void Need(bool holds, absl::string_view what) {
    if (!holds && problem_.empty()) problem_ = absl::StrCat("malformed message: ", what);
  }

  std::string Text(const std::string& text, size_t most, absl::string_view field) {
    Need(text.size() <= most, absl::StrCat(field, " is longer than ", most, " bytes"));
    return text.size() <= most ? text : "";
  }
  int Count(int64_t value, int64_t least, absl::string_view field) {
    Need(value >= least && value <= kMaxCount, absl::StrCat(field, " is out of range: ", value));
    return static_cast<int>(std::clamp<int64_t>(value, least, kMaxCount));
  }
  uint16_t Port(uint32_t value, absl::string_view field) {
    Need(value <= 65535, absl::StrCat(field, " is out of range: ", value));
    return static_cast<uint16_t>(value);
  }
  Duration Span(int64_t ns, absl::string_view field) {
    Need(ns >= 0 && Duration(ns) <= kMaxDuration, absl::StrCat(field, " is out of range: ", ns));
    return std::clamp(Duration(ns), Duration(0), kMaxDuration);
  }
  // The wire holds one more than the step, so that an absent field says "none" (-1).
  int64_t LastStep(int64_t steps_done, absl::string_view field) {
    Need(steps_done >= 0, absl::StrCat(field, " is negative"));
    return std::max<int64_t>(steps_done, 0) - 1;
  }
  RoundId Round(uint64_t value, absl::string_view field) {
    Need(value <= kMaxRound, absl::StrCat(field, " is out of range: ", value));
    return RoundId(std::min(value, kMaxRound));
  }
  // Empty stands for "none".
  template <class Id>
  Id OptionalId(const std::string& bytes, absl::string_view field) {
    Id id;
    Need(bytes.empty() || bytes.size() == id.bytes.size(),
         absl::StrCat(field, " has ", bytes.size(), " bytes instead of ", id.bytes.size()));
    if (bytes.size() == id.bytes.size()) std::copy(bytes.begin(), bytes.end(), id.bytes.begin());
    return id;
  }
  template <class Id>
  Id RequiredId(const std::string& bytes, absl::string_view field) {
    Id id = OptionalId<Id>(bytes, field);
    Need(!id.IsNone(), absl::StrCat(field, " is missing"));
    return id;
  }

  World ReadWorld(const proto::World& in) {
    return {Round(in.round(), "world.round"), OptionalId<WorldId>(in.id(), "world.id")};
  }
  // The world that a message is about.
  template <class Message>
  World WorldOf(const Message& message) {
    Need(message.has_world(), "world is missing");
    return ReadWorld(message.world());
  }
  Commit ReadCommit(const proto::Commit& in) {
    Need(in.step() >= 0, "commit.step is negative");
    return {in.step(), Text(in.directory(), kMaxPath, "commit.directory")};
  }
  template <class Message>
  Commit CommitOf(const Message& message) {
    Need(message.has_commit(), "commit is missing");
    return ReadCommit(message.commit());
  }

 private:
  std::string problem_;
};

}  // namespace muster

#endif  // MUSTER_PROTO_FIELD_READER_H_
