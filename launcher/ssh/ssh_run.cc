#include "launcher/ssh/ssh_run.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>
#include <vector>

#include "absl/status/statusor.h"
#include "launcher/exit_codes.h"
#include "launcher/machine_facts.h"
#include "launcher/say.h"
#include "launcher/ssh/ssh_job.h"
#include "launcher/ssh/ssh_plan.h"
#include "launcher/text.h"

namespace muster::launcher {
namespace {

absl::StatusOr<std::vector<HostSlots>> LookUpHosts(const SshOptions& ssh) {
  if (ssh.hostfile.empty()) return ssh.hosts;
  errno = 0;
  std::ifstream file(ssh.hostfile);
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (!file.is_open() || file.bad()) {
    return absl::InvalidArgumentError(Cat(
        "--hostfile=", ssh.hostfile, " can't be read: ", std::strerror(errno == 0 ? EIO : errno),
        "; name a file with one host a line"));
  }
  return ParseHostFile(ssh.hostfile, text);
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
  return SshJob(options, facts, *plan).Run();
}

}  // namespace muster::launcher
