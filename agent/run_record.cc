#include "agent/run_record.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <sstream>

namespace muster::agent {
namespace {

// A line is some 80 bytes; nobody restarts a job so often.
constexpr size_t kMostBytes = 16 << 20;
constexpr size_t kWorldDigits = 16;

std::string PathIn(const std::string& run_folder) { return run_folder + "/" + kRunRecordName; }

void TakeLine(const std::string& line, RunRecord& record) {
  std::istringstream words(line);
  std::string kind;
  words >> kind;
  if (kind == "node") {
    if (line.size() > kind.size()) record.node = line.substr(kind.size() + 1);
  } else if (kind == "boot") {
    words >> record.boot_id;
  } else if (kind == "locked") {
    record.is_locked = true;
  } else if (kind == "attempt") {
    RunRecord::Attempt a;
    words >> a.number >> a.first_rank >> a.worker_count >> a.world_size >> a.node_count >> a.world;
    if (words) record.attempts.push_back(a);
  } else if (kind == "ended") {
    RunRecord::End end;
    std::string whose;
    words >> end.exit_code >> whose;
    end.is_of_job = whose == "job";
    if (words) record.end = end;
  }
}

}  // namespace

const RunRecord::Attempt* RunRecord::Find(int number) const {
  auto it = std::find_if(attempts.rbegin(), attempts.rend(),
                         [number](const Attempt& attempt) { return attempt.number == number; });
  return it == attempts.rend() ? nullptr : &*it;
}

RunRecord::Attempt AttemptOf(const StartRound& place, int worker_count) {
  return {.number = place.attempt,
          .first_rank = place.first_rank.value,
          .worker_count = worker_count,
          .world_size = place.world_size,
          .node_count = place.group_world_size,
          .world = place.world.id.ToHex().substr(0, kWorldDigits)};
}

RunRecord::End EndOf(const Verdict& verdict) {
  // Both come from the rendezvous alone; other verdicts may be about this node.
  return {.exit_code = verdict.exit_code,
          .is_of_job = verdict.succeeded || !verdict.failures.empty()};
}

RunRecord ParseRunRecord(std::string_view text) {
  RunRecord record;
  for (size_t end; (end = text.find('\n')) != std::string_view::npos; text.remove_prefix(end + 1)) {
    TakeLine(std::string(text.substr(0, end)), record);
  }
  return record;
}

std::optional<RunRecord> ReadRunRecord(const std::string& run_folder) {
  std::ifstream file(PathIn(run_folder), std::ios::binary);
  if (!file) return std::nullopt;
  std::string text;
  char buffer[4096];
  while (text.size() < kMostBytes && (file.read(buffer, sizeof(buffer)), file.gcount() > 0)) {
    text.append(buffer, static_cast<size_t>(file.gcount()));
  }
  return ParseRunRecord(text);
}

bool IsRunRecordLetGo(const std::string& run_folder) {
  int fd = open(PathIn(run_folder).c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  bool is_let_go = flock(fd, LOCK_SH | LOCK_NB) == 0;
  close(fd);
  return is_let_go;
}

std::string BootId() {
  std::string id;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> id;
  return id;
}

RunRecordWriter::RunRecordWriter(const std::string& run_folder, const std::string& node) {
  // Under its name only when it is locked: a reader would take it for an abandoned one.
  const std::string path = PathIn(run_folder), unfinished = path + ".new";
  fd_ = open(unfinished.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644);
  if (fd_ < 0) return;
  const bool is_locked = flock(fd_, LOCK_EX | LOCK_NB) == 0;
  std::string name = node;
  std::replace(name.begin(), name.end(), '\n', ' ');
  Append("format 1\nnode " + name + "\nboot " + BootId() + "\n" + (is_locked ? "locked\n" : ""));
  std::rename(unfinished.c_str(), path.c_str());
}

RunRecordWriter::~RunRecordWriter() {
  if (fd_ >= 0) close(fd_);
}

void RunRecordWriter::Note(const RunRecord::Attempt& a) {
  std::ostringstream line;
  line << "attempt " << a.number << ' ' << a.first_rank << ' ' << a.worker_count << ' '
       << a.world_size << ' ' << a.node_count << ' ' << a.world << '\n';
  Append(line.str());
}

void RunRecordWriter::Note(const RunRecord::End& end) {
  Append("ended " + std::to_string(end.exit_code) + (end.is_of_job ? " job\n" : " node\n"));
}

void RunRecordWriter::Append(const std::string& lines) {
  if (fd_ < 0) return;
  ssize_t written = 0;
  do {
    written = write(fd_, lines.data(), lines.size());
  } while (written < 0 && errno == EINTR);
}

}  // namespace muster::agent
