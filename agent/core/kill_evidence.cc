#include "agent/core/kill_evidence.h"

#include <array>
#include <csignal>
#include <cstdio>

namespace muster::agent {
namespace {

// A shell reports SIGKILL of what it ran by this code.
constexpr int kShellKilled = 128 + SIGKILL;

bool HasRisen(const KillFacts& facts) {
  return facts.kills_before && facts.kills_now && *facts.kills_now > *facts.kills_before;
}

// Kills of the counter that no worker's end has been explained with.
bool HasUntold(const KillFacts& facts) {
  return HasRisen(facts) && *facts.kills_now - *facts.kills_before > facts.kills_told;
}

std::string Numbers(const KillFacts& facts) {
  std::string text;
  auto add = [&text](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  if (facts.limit) {
    add("the cgroup's limit is " + BytesText(*facts.limit));
    if (facts.peak) add("its peak " + BytesText(*facts.peak));
  } else if (facts.log == LogWord::kOfMachine) {
    add("the whole machine had none left");
  } else {
    add("its cgroup has no limit");
  }
  if (HasRisen(facts)) {
    add("oom_kill rose from " + std::to_string(*facts.kills_before) + " to " +
        std::to_string(*facts.kills_now));
  }
  if (facts.log == LogWord::kOfCgroup || facts.log == LogWord::kOfMachine) {
    add("the kernel's log names its pid");
  }
  return text;
}

KillEvidence ExplainSigkill(const KillFacts& facts) {
  KillEvidence found;
  bool is_named = facts.log == LogWord::kOfCgroup || facts.log == LogWord::kOfMachine;
  bool is_counted = facts.log == LogWord::kUnknown && HasUntold(facts);
  if (is_named || is_counted) {
    found.out_of_memory = true;
    found.takes_a_kill = HasUntold(facts);
    found.text = "the kernel killed it for want of memory: " + Numbers(facts);
    return found;
  }
  if (facts.log == LogWord::kUnknown && HasRisen(facts)) {
    // Whose kills these were can't be told apart.
    found.text = "the kernel killed " + std::to_string(*facts.kills_now - *facts.kills_before) +
                 " process(es) of its cgroup for want of memory, and as many other workers ended "
                 "before it: it may be of them, or the signal came from outside";
  }
  return found;
}

}  // namespace

KillEvidence ExplainKill(const KillFacts& facts) {
  if (facts.exit.Succeeded()) return {};
  if (facts.exit.signal == SIGKILL) return ExplainSigkill(facts);
  if (!HasUntold(facts)) return {};
  // Something else of its cgroup was killed: what a shell ran, a loader of data.
  KillEvidence found;
  found.takes_a_kill = true;
  found.text = std::string(facts.exit.code == kShellKilled && facts.exit.signal == 0
                               ? "what it ran was ended by SIGKILL, and "
                               : "before it ended, ") +
               "the kernel killed a process of its cgroup for want of memory: " + Numbers(facts);
  return found;
}

std::string BytesText(uint64_t bytes) {
  constexpr double kMebi = 1 << 20;
  constexpr double kGibi = 1 << 30;
  std::array<char, 32> text;
  auto size = static_cast<double>(bytes);
  if (size >= kGibi) {
    std::snprintf(text.data(), text.size(), "%.1f GiB", size / kGibi);
  } else if (size >= kMebi) {
    std::snprintf(text.data(), text.size(), "%.1f MiB", size / kMebi);
  } else {
    return std::to_string(bytes) + " bytes";
  }
  return text.data();
}

}  // namespace muster::agent
