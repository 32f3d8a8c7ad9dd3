// What the tables of setters have in common: the text that was given for one flag, and how the
// plain kinds of values are put into RunOptions. Used by the families of flags (meeting_setters,
// worker_setters, fault_setters, output_setters); parse_run_options walks through their tables.
// Pure.
#ifndef MUSTER_LAUNCHER_RUN_SETTERS_H_
#define MUSTER_LAUNCHER_RUN_SETTERS_H_

#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/visible_text.h"
#include "launcher/flag_value.h"
#include "launcher/run_options.h"

namespace muster::launcher {

// The text of one flag, and what to call it in a message: the flag or its variable.
struct Given {
  std::string who;
  std::string text;
};

// InvalidArgument: one sentence that names who, text and what is allowed.
using Setter = absl::Status (*)(const Given&, RunOptions&);

struct NamedSetter {
  std::string_view name;
  Setter set = nullptr;
};

// Assigns a StatusOr's value, or passes its status on.
template <class Value, class Target>
absl::Status Assign(absl::StatusOr<Value> value, Target& target) {
  if (!value.ok()) return value.status();
  target = *std::move(value);
  return absl::OkStatus();
}

// Names of hosts and ids go into messages, paths and resolvers.
inline absl::Status SetWord(const Given& given, std::string& target) {
  if (given.text.find(' ') != std::string::npos || VisibleText(given.text) != given.text) {
    return BadValue(given.who, given.text, "a name without blanks and control characters");
  }
  target = given.text;
  return absl::OkStatus();
}

template <auto kField>
absl::Status SetSeconds(const Given& given, RunOptions& options) {
  return Assign(Seconds(given.who, given.text), options.*kField);
}

template <auto kField>
absl::Status SetTruth(const Given& given, RunOptions& options) {
  return Assign(Truth(given.who, given.text), options.*kField);
}

template <auto kField>
absl::Status SetText(const Given& given, RunOptions& options) {
  options.*kField = given.text;
  return absl::OkStatus();
}

// An option that was given shall not be off without a word.
template <auto kField>
absl::Status SetFile(const Given& given, RunOptions& options) {
  if (given.text.empty() || given.text.back() == '/') {
    return BadValue(given.who, given.text, "the path of a file; leave the option out for none");
  }
  options.*kField = given.text;
  return absl::OkStatus();
}

template <auto kField>
absl::Status SetName(const Given& given, RunOptions& options) {
  return SetWord(given, options.*kField);
}

template <auto kField>
absl::Status SetCount(const Given& given, RunOptions& options) {
  constexpr WholeRange kCount{0, 1'000'000, "a whole number, 0 or more"};
  return Assign(WholeNumber(given.who, given.text, kCount), options.*kField);
}

// Sets `field` to the value that belongs to the text; `allowed` is said of any other text.
template <class Value, size_t kSize>
absl::Status SetChoice(const Given& given,
                       const std::pair<std::string_view, Value> (&choices)[kSize],
                       std::string_view allowed, Value& field) {
  for (const auto& [name, value] : choices) {
    if (name != given.text) continue;
    field = value;
    return absl::OkStatus();
  }
  return BadValue(given.who, given.text, allowed);
}

}  // namespace muster::launcher

#endif  // MUSTER_LAUNCHER_RUN_SETTERS_H_
