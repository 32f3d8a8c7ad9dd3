#include "launcher/job_settings.h"

#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <utility>
#include <vector>

#include "base/env.h"
#include "base/signal_name.h"
#include "launcher/machine_facts.h"
#include "launcher/node_facts.h"
#include "launcher/say.h"
#include "launcher/ssh/remote_record.h"
#include "launcher/text.h"

namespace muster::launcher {
namespace {

std::vector<std::string> Environment() {
  std::vector<std::string> environment;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    environment.emplace_back(*entry);
  }
  return environment;
}

// How a user calls what runs: the script or module, not Python.
std::string ProgramName(const RunOptions& options) {
  return options.is_module ? options.program.front()
                           : std::filesystem::path(options.program.front()).filename().string();
}

std::vector<agent::StreamChoice> Streams(const RunOptions& options, int worker_count) {
  std::vector<agent::StreamChoice> streams(static_cast<size_t>(worker_count));
  for (int i = 0; i < worker_count; ++i) {
    agent::StreamChoice& choice = streams[static_cast<size_t>(i)];
    choice.redirect_stdout = (options.redirects.Of(i) & 1) != 0;
    choice.redirect_stderr = (options.redirects.Of(i) & 2) != 0;
    choice.tee_stdout = (options.tee.Of(i) & 1) != 0;
    choice.tee_stderr = (options.tee.Of(i) & 2) != 0;
    choice.is_shown = options.shown_ranks.empty() || options.shown_ranks.contains(i);
  }
  return streams;
}

// A worker isn't of the terminal's session, so the kernel wouldn't stop it when it reads while
// another job is in the foreground: it would take that job's input.
agent::InputChoice Input(const RunOptions& options) {
  bool is_default = options.input.kind == agent::InputChoice::Kind::kAlone;
  bool is_background = isatty(STDIN_FILENO) != 0 && tcgetpgrp(STDIN_FILENO) != getpgrp();
  if (is_default && is_background) return {.kind = agent::InputChoice::Kind::kNone};
  return options.input;
}

agent::MasterStore StoreOf(const RunOptions& options, const LaunchPlan& plan,
                           const MeetingPlace& place) {
  if (options.master_store == StoreChoice::kWorker) return agent::MasterStore::kWorker;
  // Only node rank 0 is ever group rank 0 there, and it may have found another host at the port.
  const bool is_shared =
      plan.layout == Layout::kStatic && (plan.node_rank != 0 || place.server != nullptr);
  return is_shared ? agent::MasterStore::kSharedPort : agent::MasterStore::kAgent;
}

agent::PrefixMode Prefix(PrefixChoice choice) {
  switch (choice) {
    case PrefixChoice::kAuto:
      return agent::PrefixMode::kAuto;
    case PrefixChoice::kAlways:
      return agent::PrefixMode::kAlways;
    case PrefixChoice::kNever:
      break;
  }
  return agent::PrefixMode::kNever;
}

}  // namespace

std::string NodeName(const RunOptions& options) {
  std::string name = HostName();
  if (!options.local_addr.empty()) name += Cat("(", options.local_addr, ")");
  return name;
}

agent::AgentSettings JobSettings(const RunOptions& options, const LaunchPlan& plan,
                                 const MeetingPlace& place) {
  agent::AgentSettings settings;
  settings.core.attach.node_name = NodeName(options);
  settings.core.attach.address = place.address;
  settings.find_address = place.find_address;
  settings.core.attach.worker_count = plan.worker_count;
  settings.core.attach.node_rank = plan.node_rank;
  settings.core.attach.terms = plan.terms;
  settings.core.attach.hosts_rendezvous = place.server != nullptr;
  // With one node there is nothing to compare it with.
  if (plan.terms.max_nodes > 1) settings.core.attach.facts = LookUpNodeFacts();
  settings.core.attach.facts.topology = options.topology_key;
  settings.core.endpoint = place.name;
  settings.core.shutdown_timeout = options.shutdown_timeout;
  settings.core.lost_peer_grace = options.lost_peer_grace;
  settings.core.join_timeout = options.join_timeout;
  settings.core.reconnect_timeout = options.reconnect_timeout;
  settings.core.lost_contact = options.lost_contact;
  settings.core.hang_timeout = options.hang_timeout;
  settings.stack_signal = options.stack_signal;
  settings.shared_port = plan.endpoint.port;
  settings.master_store = StoreOf(options, plan, place);
  settings.argv = plan.argv;
  settings.preload = options.preload;
  settings.environment = Environment();
  settings.role = options.role;
  settings.program = ProgramName(options);
  settings.log_dir = options.log_dir;
  if (const char* own = std::getenv(env::kErrorFile)) settings.error_file = own;
  if (!RecordMark().empty()) {
    settings.core.explains_signals = false;
    settings.frame_own = [](const std::string& text, bool is_verdict) {
      const RecordKind kind = is_verdict ? RecordKind::kVerdict : RecordKind::kLine;
      std::string record = EncodeRecord(RecordMark(), {kind, text});
      // Who shows it ends the line.
      record.pop_back();
      return record;
    };
  }
  settings.streams = Streams(options, plan.worker_count);
  settings.stdout_filters = options.stdout_filters;
  settings.stderr_filters = options.stderr_filters;
  settings.log_max_bytes = static_cast<uint64_t>(options.log_max_bytes);
  settings.omp_threads = plan.omp_threads;
  settings.worker_cpus = plan.worker_cpus;
  settings.worker_gpus = plan.worker_gpus;
  settings.input = Input(options);
  settings.names_local_rank = options.names_local_rank;
  for (int signal : options.stop_signals) {
    settings.stop_signals += Cat(settings.stop_signals.empty() ? "" : ",", SignalName(signal));
  }
  settings.prefix = Prefix(options.prefix);
  settings.prefix_pattern = options.prefix_pattern;
  if (settings.prefix_pattern.empty()) {
    const char* pattern = std::getenv(env::kPrefixTemplate);
    if (pattern != nullptr) settings.prefix_pattern = pattern;
  } else if (options.prefix == PrefixChoice::kAuto) {
    settings.prefix = agent::PrefixMode::kAlways;
  }
  return settings;
}

}  // namespace muster::launcher
