#include "launcher/ssh/ssh_setters.h"

#include <string>

#include "launcher/text.h"

namespace muster::launcher {
namespace {

absl::Status SetHosts(const Given& given, RunOptions& options) {
  return Assign(ParseHosts(given.who, given.text), options.ssh.hosts);
}

absl::Status SetTotal(const Given& given, RunOptions& options) {
  constexpr WholeRange kTotal{1, 1'000'000, "the number of workers in all, at least 1"};
  return Assign(WholeNumber(given.who, given.text, kTotal), options.ssh.workers);
}

template <auto kField>
absl::Status SetPath(const Given& given, RunOptions& options) {
  if (Strip(given.text).empty()) return BadValue(given.who, given.text, "something");
  options.ssh.*kField = given.text;
  return absl::OkStatus();
}

absl::Status SetVariable(const Given& given, RunOptions& /*options*/) {
  // Of several this sees the last; ssh_plan.h looks at each.
  return given.text.empty() ? BadValue("-x", given.text, "NAME or NAME=VALUE") : absl::OkStatus();
}

constexpr NamedSetter kSetters[] = {
    {"hosts", SetHosts},
    {"hostfile", SetPath<&SshOptions::hostfile>},
    {"workers", SetTotal},
    {"env", SetVariable},
    {"wdir", SetPath<&SshOptions::folder>},
    {"remote-muster", SetPath<&SshOptions::remote_muster>},
    {"ssh-command", SetPath<&SshOptions::command>},
};

}  // namespace

std::span<const NamedSetter> SshSetters() { return kSetters; }

absl::Status CheckSshTogether(const RunOptions& options) {
  const SshOptions& ssh = options.ssh;
  if (!ssh.is_asked()) {
    const char* idle = !ssh.variables.empty()       ? "-x"
                       : ssh.workers != 0           ? "-np"
                       : !ssh.folder.empty()        ? "--wdir"
                       : !ssh.remote_muster.empty() ? "--remote-muster"
                                                    : "";
    // --ssh-command may well stand in a profile as PET_SSH_COMMAND.
    if (*idle == '\0') return absl::OkStatus();
    return absl::InvalidArgumentError(
        Cat(idle, " belongs to --hosts or --hostfile, which isn't given; give one of them",
            ssh.workers != 0 ? ", or --nproc-per-node for workers on this node" : ""));
  }
  if (!ssh.hosts.empty() && !ssh.hostfile.empty()) {
    return absl::InvalidArgumentError("--hosts and --hostfile exclude each other; give one");
  }
  const char* other = options.standalone              ? "--standalone"
                      : options.node_rank.has_value() ? "--node-rank"
                      : !options.local_addr.empty()   ? "--local-addr"
                      : options.is_host.has_value()   ? "--rdzv-conf=is_host"
                                                      : "";
  if (*other != '\0') {
    return absl::InvalidArgumentError(
        Cat(other, " is of one node, but --hosts starts several and chooses it for each; leave ",
            other, " out"));
  }
  const bool reads_input = options.input.kind == agent::InputChoice::Kind::kRank ||
                           options.input.kind == agent::InputChoice::Kind::kAll;
  if (reads_input) {
    return absl::InvalidArgumentError(
        "--stdin: standard input isn't carried to other hosts; leave it out and let the program "
        "read a file");
  }
  return absl::OkStatus();
}

}  // namespace muster::launcher
