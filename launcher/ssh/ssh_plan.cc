#include "launcher/ssh/ssh_plan.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "base/env.h"
#include "launcher/endpoint.h"
#include "launcher/text.h"

namespace muster::launcher {
namespace {

// Of one node, or said anew for each.
constexpr std::array<std::string_view, 7> kNotPassedOn = {
    "nnodes", "nproc-per-node", "master-addr", "master-port", "rdzv-conf", "rdzv-id", "stdin"};
// They would start muster from there once more.
constexpr std::array<std::string_view, 5> kSshVariables = {
    "PET_HOSTS", "PET_HOSTFILE", "PET_WORKERS", "PET_WDIR", "PET_REMOTE_MUSTER"};
// What `muster run` reads beside PET_* and MUSTER_*.
constexpr std::array<std::string_view, 6> kReadVariables = {
    "PATH",    env::kPythonExec, env::kPrefixTemplate, env::kShutdownTimeout, env::kNoAgentStore,
    "LOGLEVEL"};
// Of a worker, should this be run by one: they name its agent and its round.
constexpr std::array<std::string_view, 7> kWorkersOwn = {
    env::kAgentSocket,     env::kWorkerId,   env::kRound,    env::kWorldId,
    env::kRestartsCharged, env::kResumeStep, env::kResumeDir};

template <class List>
bool Has(const List& list, std::string_view word) {
  return std::ranges::find(list, word) != list.end();
}

bool IsPassedOn(std::string_view name) {
  if (Has(kReadVariables, name)) return true;
  if (name == "PET_SSH_COMMAND" || Has(kSshVariables, name) || Has(kWorkersOwn, name)) return false;
  return name.starts_with("PET_") || name.starts_with("MUSTER_");
}

std::string_view NameOf(std::string_view entry) { return entry.substr(0, entry.find('=')); }

absl::Status AddVariable(const std::string& given, const SshFacts& facts, SshPlan& plan) {
  if (given.starts_with('=') || given.empty()) {
    return absl::InvalidArgumentError(
        Cat("-x: ", InQuotes(given), " is not valid; allowed: NAME or NAME=VALUE"));
  }
  const std::string_view name = NameOf(given);
  if (Has(kSshVariables, name)) {
    return absl::InvalidArgumentError(
        Cat("-x: ", InQuotes(name),
            " says where muster is to be started from here, and would "
            "start it from there once more; leave it out"));
  }
  // mpirun takes neither, and only says that there is no such variable.
  if (name.find_first_of(",* ") != std::string_view::npos &&
      std::ranges::find(facts.environment, name, NameOf) == facts.environment.end()) {
    return absl::InvalidArgumentError(
        Cat("-x: ", InQuotes(given),
            " is not valid; allowed: one NAME or NAME=VALUE, neither a "
            "list nor a pattern; give each its own, as -x A -x B=1"));
  }
  if (given.find('=') != std::string::npos) {
    plan.environment.push_back(given);
    return absl::OkStatus();
  }
  auto it = std::ranges::find(facts.environment, std::string_view(given), NameOf);
  if (it == facts.environment.end()) {
    plan.warnings.push_back(Cat("-x ", given,
                                ": there is no such variable here, so nothing is "
                                "passed on; give its value as -x ",
                                given, "=VALUE"));
  } else {
    plan.environment.push_back(*it);
  }
  return absl::OkStatus();
}

// At blanks that aren't in quotes.
absl::StatusOr<std::vector<std::string>> SplitCommand(std::string_view text) {
  std::vector<std::string> words;
  bool is_word = false;
  char quote = 0;
  for (char c : text) {
    if (quote != 0 ? c == quote : c == '\'' || c == '"') {
      quote = quote != 0 ? 0 : c;
      if (!is_word) words.emplace_back();
      is_word = true;
      continue;
    }
    if (quote == 0 && (c == ' ' || c == '\t')) {
      is_word = false;
      continue;
    }
    if (!is_word) words.emplace_back();
    is_word = true;
    words.back() += c;
  }
  if (quote == 0 && !words.empty()) return words;
  return absl::InvalidArgumentError(Cat("--ssh-command: ", InQuotes(text),
                                        " is not valid; allowed: words as \"ssh -p 2222\", with "
                                        "quotes that are closed"));
}

// For the shell there, whichever it is.
std::string InShellQuotes(std::string_view path) {
  std::string quoted = "'";
  for (char c : path) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

bool IsLoopback(std::string_view name) {
  return name == "localhost" || name == "127.0.0.1" || name == "::1";
}

absl::Status AddHosts(const RunOptions& options, const std::vector<HostSlots>& hosts,
                      const SshFacts& facts, SshPlan& plan) {
  auto ssh = SplitCommand(options.ssh.command);
  if (!ssh.ok()) return ssh.status();
  ssh->insert(ssh->end(), {"-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=30", "-o",
                           "ServerAliveInterval=15"});
  auto workers = options.ssh.given.find("nproc-per-node");
  const std::string unsaid = workers == options.ssh.given.end() ? "1" : workers->second;
  for (const HostSlots& host : hosts) {
    SshHost made{.name = host.name,
                 .is_local = IsLoopback(host.name) || host.name == facts.host_name,
                 .workers = host.slots == 0 ? unsaid : std::to_string(host.slots)};
    if (made.is_local) {
      made.command = {facts.executable, "remote"};
    } else {
      made.command = *ssh;
      made.command.push_back(host.name);
      made.command.push_back(Cat(InShellQuotes(plan.remote_muster), " remote"));
    }
    plan.hosts.push_back(std::move(made));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<HostSlots>> ChooseHosts(const RunOptions& options,
                                                   const std::vector<HostSlots>& hosts) {
  if (options.ssh.workers == 0) return hosts;
  const bool is_unsaid = std::ranges::find(hosts, 0, &HostSlots::slots) != hosts.end();
  if (is_unsaid && options.workers.kind != WorkerCount::Kind::kNumber) {
    return absl::InvalidArgumentError(
        "-np needs to know how many workers each host takes; give numbers, as in --hosts=a:8,b:8, "
        "and leave --nproc-per-node out");
  }
  return FillHosts(hosts, options.ssh.workers, options.workers.number);
}

void AddFlag(std::string_view name, std::string_view value, std::vector<std::string>& words) {
  words.push_back(Cat("--", name, "=", value));
}

// Where they meet, who hosts it, and this one's place among them.
void AddMeetingFlags(const RunOptions& options, const SshFacts& facts, const SshPlan& plan,
                     size_t place, uint16_t port, std::vector<std::string>& words) {
  auto given = [&options](std::string_view name) {
    auto it = options.ssh.given.find(name);
    return it == options.ssh.given.end() ? std::string() : it->second;
  };
  const std::string nodes = given("nnodes");
  AddFlag("nnodes", nodes.empty() ? std::to_string(plan.hosts.size()) : nodes, words);
  std::string conf = given("rdzv-conf");
  auto add_conf = [&conf](std::string_view pair) { conf += Cat(conf.empty() ? "" : ",", pair); };
  const bool is_alone = plan.hosts.size() == 1 && options.max_nodes == 1;
  const bool has_endpoint = !options.rdzv_endpoint.empty();
  if (!is_alone || has_endpoint) AddFlag("node-rank", std::to_string(place), words);
  AddFlag("rdzv-id", options.run_id.empty() ? facts.fresh_id : options.run_id, words);
  if (is_alone) {
    for (const char* name : {"master-addr", "master-port"}) {
      if (!given(name).empty()) AddFlag(name, given(name), words);
    }
  } else if (!has_endpoint) {
    const std::string& first = plan.hosts.front().name;
    std::string host = first.substr(first.rfind('@') + 1);
    // Others couldn't come there.
    const bool are_all_here = std::ranges::all_of(plan.hosts, &SshHost::is_local);
    if (IsLoopback(host) && plan.hosts.front().is_local && !are_all_here) host = facts.host_name;
    if (options.master_addr_given) host = options.master_addr;
    const Endpoint endpoint{.host = host, .port = options.master_port.value_or(port)};
    if (options.backend == Backend::kStatic) {
      AddFlag("master-addr", endpoint.host, words);
      AddFlag("master-port", std::to_string(endpoint.port), words);
    } else {
      if (!options.backend.has_value()) AddFlag("rdzv-backend", "c10d", words);
      AddFlag("rdzv-endpoint", endpoint.ToString(), words);
      // By place, not by address: two names may be one host.
      add_conf(Cat("is_host=", place == 0 ? "1" : "0"));
    }
    // A random id can't be known from before.
    if (place == 0 && options.run_id.empty()) add_conf("is_new=1");
  }
  if (!conf.empty()) AddFlag("rdzv-conf", conf, words);
}

}  // namespace

absl::StatusOr<SshPlan> MakeSshPlan(const RunOptions& options, const std::vector<HostSlots>& hosts,
                                    const SshFacts& facts) {
  SshPlan plan;
  plan.folder = options.ssh.folder.empty() ? facts.folder : options.ssh.folder;
  if (plan.folder.empty() || plan.folder.front() != '/') {
    plan.folder = Cat(facts.folder, "/", plan.folder);
  }
  plan.remote_muster =
      options.ssh.remote_muster.empty() ? facts.executable : options.ssh.remote_muster;
  plan.mark = Cat("muster-", facts.fresh_id, "-");
  for (const std::string& entry : facts.environment) {
    if (IsPassedOn(NameOf(entry))) plan.environment.push_back(entry);
  }
  for (const std::string& variable : options.ssh.variables) {
    if (absl::Status added = AddVariable(variable, facts, plan); !added.ok()) return added;
  }
  auto chosen = ChooseHosts(options, hosts);
  if (!chosen.ok()) return chosen.status();
  if (absl::Status added = AddHosts(options, *chosen, facts, plan); !added.ok()) return added;
  const int count = static_cast<int>(plan.hosts.size());
  plan.min_hosts = options.nodes_given ? options.min_nodes : count;
  if (count < plan.min_hosts) {
    return absl::InvalidArgumentError(Cat("--nnodes asks for at least ", plan.min_hosts,
                                          " nodes, but there are ", count,
                                          " hosts; name more of them, or leave --nnodes out"));
  }
  return plan;
}

RemotePlan PlanForHost(const RunOptions& options, const SshFacts& facts, const SshPlan& plan,
                       size_t place, uint16_t port) {
  const SshHost& host = plan.hosts[place];
  RemotePlan made{
      .host = host.name, .mark = plan.mark, .folder = plan.folder, .environment = plan.environment};
  for (const std::string& flag : options.ssh.flags) {
    const std::string name = flag.substr(2, flag.find('=') - 2);
    if (!Has(kNotPassedOn, name)) made.words.push_back(flag);
  }
  AddFlag("nproc-per-node", host.workers, made.words);
  AddMeetingFlags(options, facts, plan, place, port, made.words);
  made.words.emplace_back("--");
  made.words.insert(made.words.end(), options.program.begin(), options.program.end());
  return made;
}

}  // namespace muster::launcher
