#include "agent/memory_watch.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string_view>
#include <utility>

namespace muster::agent {
namespace {

// Of files that the kernel makes up; mountinfo is by far the largest.
constexpr size_t kMostBytes = 1 << 20;
// Records looked at in one go, and kills of a round that are kept.
constexpr int kMostRecords = 20'000;
constexpr size_t kMostKills = 4096;
// A record of /dev/kmsg is at most this long, by the kernel's own word.
constexpr size_t kRecordBytes = 8192;
// The inode of the first pid namespace: the log's pids are of that one.
constexpr char kFirstPidNamespace[] = "pid:[4026531836]";

std::string ReadAll(const std::string& path) {
  int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return {};
  std::string text;
  std::array<char, 4096> chunk;
  while (text.size() < kMostBytes) {
    ssize_t got = read(fd, chunk.data(), chunk.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    text.append(chunk.data(), static_cast<size_t>(got));
  }
  close(fd);
  return text;
}

bool SeesTheLogsPids(const std::string& proc) {
  std::array<char, 64> target;
  ssize_t size = readlink((proc + "/self/ns/pid").c_str(), target.data(), target.size());
  return size > 0 && std::string_view(target.data(), static_cast<size_t>(size)) ==
                         std::string_view(kFirstPidNamespace);
}

}  // namespace

MemoryWatch::MemoryWatch(Options options) : options_(std::move(options)) {}

MemoryWatch::~MemoryWatch() {
  if (log_ >= 0) close(log_);
}

std::optional<MemoryCgroup> MemoryWatch::CgroupOf(const std::string& process) const {
  return FindMemoryCgroup(ReadAll(options_.proc + "/" + process + "/cgroup"), mounts_);
}

MemoryWatch::Account* MemoryWatch::AccountOf(const std::optional<MemoryCgroup>& cgroup) {
  if (!cgroup) return nullptr;
  auto [it, is_new] = accounts_.try_emplace(cgroup->folder);
  if (is_new) {
    it->second.cgroup = *cgroup;
    it->second.kills_before = OomKills(ReadAll(cgroup->folder + "/" + cgroup->events_file()));
  }
  return &it->second;
}

void MemoryWatch::RoundStarts() {
  accounts_.clear();
  folders_.clear();
  logged_.clear();
  mounts_ = ReadAll(options_.proc + "/self/mountinfo");
  Account* own = AccountOf(CgroupOf("self"));
  own_folder_ = own != nullptr ? own->cgroup.folder : "";
  // What was logged so far is of no interest.
  if (log_ < 0) log_ = open(options_.kernel_log.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  log_is_whole_ = log_ >= 0 && lseek(log_, 0, SEEK_END) >= 0 && SeesTheLogsPids(options_.proc);
}

void MemoryWatch::WorkerStarted(LocalRank local_rank, int64_t pid) {
  Account* account = AccountOf(CgroupOf(std::to_string(pid)));
  if (account != nullptr) folders_[local_rank] = account->cgroup.folder;
}

void MemoryWatch::ReadLog() {
  std::array<char, kRecordBytes> record;
  for (int i = 0; log_is_whole_; ++i) {
    ssize_t got = read(log_, record.data(), record.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return;
    // EPIPE: older records were overwritten before they were read.
    if (got <= 0 || i >= kMostRecords || logged_.size() >= kMostKills) {
      log_is_whole_ = false;
      return;
    }
    auto kill = ParseOomKill(std::string_view(record.data(), static_cast<size_t>(got)));
    if (kill) logged_[kill->pid] = *kill;
  }
}

// The tightest limit counts, with the highest use of the same cgroup.
void MemoryWatch::TakeLimit(const MemoryCgroup& cgroup, KillFacts& facts) const {
  for (const std::string& folder : cgroup.UpToTheRoot()) {
    std::optional<uint64_t> limit = MemoryLimit(ReadAll(folder + "/" + cgroup.limit_file()));
    if (!limit || (facts.limit && *facts.limit <= *limit)) continue;
    facts.limit = limit;
    facts.peak = WholeFileNumber(ReadAll(folder + "/" + cgroup.peak_file()));
  }
}

KillEvidence MemoryWatch::Explain(LocalRank local_rank, int64_t pid, const WorkerExit& exit) {
  KillFacts facts;
  facts.exit = exit;
  ReadLog();
  auto named = logged_.find(pid);
  if (named != logged_.end()) {
    facts.log = named->second.is_of_cgroup ? LogWord::kOfCgroup : LogWord::kOfMachine;
  } else if (log_is_whole_) {
    facts.log = LogWord::kNotThis;
  }
  auto folder = folders_.find(local_rank);
  auto account = accounts_.find(folder != folders_.end() ? folder->second : own_folder_);
  if (account != accounts_.end()) {
    const MemoryCgroup& cgroup = account->second.cgroup;
    facts.kills_before = account->second.kills_before;
    facts.kills_now = OomKills(ReadAll(cgroup.folder + "/" + cgroup.events_file()));
    facts.kills_told = account->second.kills_told;
    TakeLimit(cgroup, facts);
  }
  KillEvidence found = ExplainKill(facts);
  if (found.takes_a_kill) ++account->second.kills_told;
  return found;
}

}  // namespace muster::agent
