#include "rendezvous/server/job_store.h"

#include <dirent.h>
#include <fcntl.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "proto/session_convert.h"
#include "proto/stored_job.pb.h"

namespace muster::rendezvous {
namespace {

constexpr char kFirstLine[] = "# A job of a muster rendezvous; it rewrites this file.\n";
constexpr char kJobPrefix[] = "job.";

absl::Status Refusal(const std::string& path, int error) {
  return absl::UnavailableError(
      absl::StrCat("can't keep the jobs in ", path, ": ", std::strerror(error)));
}

absl::Status Unreadable(const std::string& path, int error) {
  return absl::FailedPreconditionError(
      absl::StrCat("can't read ", path, ": ", std::strerror(error),
                   "; nothing was changed: let this user read it, or name another directory"));
}

bool WriteAll(int fd, const std::string& text) {
  size_t done = 0;
  while (done < text.size()) {
    ssize_t wrote = write(fd, text.data() + done, text.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return false;
    done += static_cast<size_t>(wrote);
  }
  return true;
}

// Keeps the first thing that the parser finds wrong; else it would go to standard error.
class FirstProblem : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, int column, const std::string& text) override {
    if (text_.empty()) text_ = absl::StrCat("line ", line + 1, ":", column + 1, ": ", text);
  }
  void AddWarning(int, int, const std::string&) override {}
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

proto::StoredJob ToStored(const std::string& run_id, const JobRecord& record) {
  proto::StoredJob out;
  out.set_run_id(run_id);
  *out.mutable_world() = ToProto(record.world);
  if (record.commit) *out.mutable_commit() = ToProto(*record.commit);
  out.set_commit_round(record.commit_round.value);
  if (record.verdict) *out.mutable_verdict() = ToProto(*record.verdict);
  return out;
}

absl::StatusOr<JobRecord> FromStored(const proto::StoredJob& stored) {
  JobRecord record;
  if (stored.run_id().empty()) return absl::InvalidArgumentError("a job has no run_id");
  absl::StatusOr<World> world = FromProto(stored.world());
  if (!world.ok()) return world.status();
  record.world = *world;
  if (stored.commit_round() > kMaxRound)
    return absl::InvalidArgumentError("commit_round is out of range");
  record.commit_round = RoundId(stored.commit_round());
  if (stored.has_commit()) {
    absl::StatusOr<Commit> commit = FromProto(stored.commit());
    if (!commit.ok()) return commit.status();
    record.commit = *commit;
  }
  if (stored.has_verdict()) {
    absl::StatusOr<Verdict> verdict = FromProto(stored.verdict());
    if (!verdict.ok()) return verdict.status();
    record.verdict = *std::move(verdict);
  }
  return record;
}

}  // namespace

absl::StatusOr<std::unique_ptr<JobStore>> JobStore::Open(const std::string& directory) {
  if (mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST)
    return absl::FailedPreconditionError(
        absl::StrCat("can't make the state directory ", directory, ": ", std::strerror(errno)));
  std::unique_ptr<JobStore> store(new JobStore(directory));
  if (absl::Status status = store->Lock(); !status.ok()) return status;
  if (absl::Status status = store->ReadAll(); !status.ok()) return status;
  // A directory that can't be written to is told at the start, not at the first round.
  const std::string trial = directory + "/trial";
  absl::Status status = store->Write(trial, kFirstLine);
  if (status.ok()) status = store->Remove(trial);
  if (!status.ok()) return absl::FailedPreconditionError(status.message());
  return store;
}

JobStore::~JobStore() {
  if (lock_ >= 0) close(lock_);
}

absl::Status JobStore::Lock() {
  const std::string path = directory_ + "/lock";
  lock_ = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (lock_ < 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("can't use the state directory: ", path, ": ", std::strerror(errno)));
  }
  if (flock(lock_, LOCK_EX | LOCK_NB) == 0) {
    const std::string mine = absl::StrCat(getpid(), "\n");
    // Only to name us to another one that tries: a disk that is full costs the name.
    const bool is_named = ftruncate(lock_, 0) == 0 && WriteAll(lock_, mine);
    static_cast<void>(is_named);
    return absl::OkStatus();
  }
  if (errno != EWOULDBLOCK) {
    return absl::FailedPreconditionError(
        absl::StrCat("can't take the state directory: ", path, ": ", std::strerror(errno)));
  }
  std::string holder = "unknown";
  std::ifstream(path) >> holder;
  return absl::FailedPreconditionError(absl::StrCat("the state directory ", directory_,
                                                    " is in use by another rendezvous (process ",
                                                    holder, "); give each one its own"));
}

std::string JobStore::PathOf(uint64_t file) const {
  return absl::StrCat(directory_, "/", kJobPrefix, file);
}

absl::Status JobStore::Keep(const std::string& run_id, const JobRecord& record) {
  auto [file, is_new] = files_.try_emplace(run_id, last_file_ + 1);
  if (is_new) ++last_file_;
  std::string text;
  google::protobuf::TextFormat::PrintToString(ToStored(run_id, record), &text);
  return Write(PathOf(file->second), kFirstLine + text);
}

absl::Status JobStore::Forget(const std::string& run_id) {
  auto file = files_.find(run_id);
  if (file == files_.end()) return absl::OkStatus();
  absl::Status status = Remove(PathOf(file->second));
  if (status.ok()) files_.erase(file);
  return status;
}

absl::Status JobStore::ReadAll() {
  DIR* directory = opendir(directory_.c_str());
  if (directory == nullptr) return Unreadable(directory_, errno);
  std::vector<uint64_t> files;
  errno = 0;
  while (const dirent* entry = readdir(directory)) {
    absl::string_view name = entry->d_name;
    uint64_t file = 0;
    // Written as PathOf() writes it: "job.007" is a stray copy, not job.7.
    if (absl::ConsumePrefix(&name, kJobPrefix) && absl::SimpleAtoi(name, &file) &&
        name == absl::StrCat(file)) {
      files.push_back(file);
    }
    errno = 0;
  }
  const int error = errno;
  closedir(directory);
  if (error != 0) return Unreadable(directory_, error);
  std::ranges::sort(files);
  for (uint64_t file : files) {
    last_file_ = file;
    if (absl::Status status = Read(PathOf(file)); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status JobStore::Read(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return Unreadable(path, errno);
  std::string text;
  char buffer[1 << 16];
  ssize_t got = 0;
  while ((got = read(fd, buffer, sizeof buffer)) > 0 || (got < 0 && errno == EINTR)) {
    if (got > 0) text.append(buffer, static_cast<size_t>(got));
  }
  const int error = errno;
  close(fd);
  if (got < 0) return Unreadable(path, error);
  auto malformed = [&](absl::string_view problem) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, " isn't a file of muster's: ", problem,
                     "; move it away to begin without what it says of an earlier job"));
  };
  if (!text.starts_with(kFirstLine)) return malformed("its first line is another one");
  google::protobuf::TextFormat::Parser parser;
  FirstProblem problem;
  parser.RecordErrorsTo(&problem);
  proto::StoredJob stored;
  if (!parser.ParseFromString(text, &stored)) return malformed(problem.text());
  absl::StatusOr<JobRecord> record = FromStored(stored);
  if (!record.ok()) return malformed(record.status().message());
  if (!files_.try_emplace(stored.run_id(), last_file_).second)
    return malformed("another file is of the same job");
  found_[stored.run_id()] = *std::move(record);
  return absl::OkStatus();
}

absl::Status JobStore::Write(const std::string& path, const std::string& text) const {
  const std::string fresh = directory_ + "/fresh";
  int fd = open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return Refusal(fresh, errno);
  const bool is_written = WriteAll(fd, text) && fsync(fd) == 0;
  const int error = errno;
  close(fd);
  if (!is_written) return Refusal(fresh, error);
  if (rename(fresh.c_str(), path.c_str()) != 0) return Refusal(path, errno);
  return SyncDirectory();
}

absl::Status JobStore::Remove(const std::string& path) const {
  if (unlink(path.c_str()) != 0 && errno != ENOENT) return Refusal(path, errno);
  return SyncDirectory();
}

absl::Status JobStore::SyncDirectory() const {
  int directory = open(directory_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) return Refusal(directory_, errno);
  const bool is_synced = fsync(directory) == 0;
  const int error = errno;
  close(directory);
  return is_synced ? absl::OkStatus() : Refusal(directory_, error);
}

}  // namespace muster::rendezvous
