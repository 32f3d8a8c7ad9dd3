#include "launcher/ssh/ssh_run.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/guardian/descriptor_limit.h"
#include "launcher/exit_codes.h"
#include "launcher/machine_facts.h"
#include "launcher/say.h"
#include "launcher/ssh/ssh_job.h"
#include "launcher/ssh/ssh_plan.h"
#include "launcher/text.h"

namespace muster::launcher {
namespace {

// A hundred thousand hosts have room in it.
constexpr size_t kMaxHostFile = 16 << 20;

// Also from a pipe, as <(...) makes one. Answers with errno.
int ReadHostFile(const std::string& path, std::string& text) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return errno;
  int error = 0;
  std::array<char, 64 << 10> piece;
  while (error == 0) {
    const ssize_t count = read(fd, piece.data(), piece.size());
    if (count == 0) break;
    if (count > 0) text.append(piece.data(), static_cast<size_t>(count));
    if (count < 0 && errno != EINTR) error = errno;
    if (text.size() > kMaxHostFile) error = EFBIG;
  }
  close(fd);
  return error;
}

absl::StatusOr<std::vector<HostSlots>> LookUpHosts(const SshOptions& ssh) {
  if (ssh.hostfile.empty()) return ssh.hosts;
  std::string text;
  if (int error = ReadHostFile(ssh.hostfile, text); error != 0) {
    return absl::InvalidArgumentError(Cat("--hostfile=", ssh.hostfile,
                                          " can't be read: ", std::strerror(error),
                                          "; name a file with one host a line"));
  }
  absl::StatusOr<HostFile> file = ParseHostFile(ssh.hostfile, text);
  if (!file.ok()) return file.status();
  if (!file->idle.empty()) {
    Say(Cat(file->idle, " has no effect: each host gets what slots says"));
  }
  return std::move(file->hosts);
}

// As the user's shell calls it, which is how other hosts know it where links lead there.
std::string Folder() {
  std::error_code error;
  const std::string real = std::filesystem::current_path(error).string();
  const char* called = std::getenv("PWD");
  struct stat a {};
  struct stat b {};
  const bool is_same = called != nullptr && *called == '/' && stat(called, &a) == 0 &&
                       stat(".", &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
  return is_same ? called : real;
}

SshFacts LookUpFacts() {
  SshFacts facts;
  facts.host_name = HostName();
  std::error_code error;
  facts.executable = std::filesystem::read_symlink("/proc/self/exe", error).string();
  facts.folder = Folder();
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    facts.environment.emplace_back(*entry);
  }
  facts.fresh_id = LookUpMachine({}).fresh_run_id;
  return facts;
}

}  // namespace

int RunOverSsh(const RunOptions& options) {
  absl::StatusOr<std::vector<HostSlots>> hosts = LookUpHosts(options.ssh);
  if (!hosts.ok()) {
    Say(std::string(hosts.status().message()));
    return kExitUsage;
  }
  const SshFacts facts = LookUpFacts();
  absl::StatusOr<SshPlan> plan = MakeSshPlan(options, *hosts, facts);
  if (!plan.ok()) {
    Say(std::string(plan.status().message()));
    return kExitUsage;
  }
  for (const std::string& warning : plan->warnings) Say(warning);
  // Three for each host.
  agent::guardian::RaiseDescriptorLimit();
  return SshJob(options, facts, *plan).Run();
}

}  // namespace muster::launcher
