#include "agent/log_layout.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

namespace muster::agent {
namespace {

namespace fs = std::filesystem;

constexpr char kNoFiles[] = "/dev/null";

// As Python's tempfile: a TMPDIR that can't be used here (another node's scratch) is passed over.
std::string TemporaryFolder() {
  const char* folder = std::getenv("TMPDIR");
  const bool is_of_use = folder != nullptr && access(folder, W_OK | X_OK) == 0;
  return is_of_use ? folder : "/tmp";
}

absl::Status CannotWrite(const std::string& what, const std::string& path, int error) {
  return absl::FailedPreconditionError(
      what + " " + path + " can't be written (" + std::strerror(error) +
      "); name a folder that this user may write (--log-dir, or TMPDIR in the environment)");
}

// mkdtemp(3): a new folder for this user alone, whose name starts with `start`.
absl::StatusOr<std::string> NewFolder(const std::string& what, const std::string& start) {
  std::string path = start + "XXXXXX";
  if (mkdtemp(path.data()) == nullptr) {
    return CannotWrite(what, fs::path(start).parent_path().string(), errno);
  }
  return path;
}

std::string OfAttempt(const std::string& base, int attempt) {
  return base + "/attempt_" + std::to_string(attempt);
}

std::string OfWorker(const std::string& base, int attempt, LocalRank local_rank) {
  return OfAttempt(base, attempt) + "/" + std::to_string(local_rank.value);
}

}  // namespace

absl::StatusOr<LogLayout> LogLayout::Make(const Options& options) {
  LogLayout layout;
  if (options.log_dir == kNoFiles) return layout;
  if (!options.log_dir.empty()) {
    std::error_code error;
    fs::path log_dir = fs::absolute(options.log_dir, error);
    fs::create_directories(log_dir, error);
    if (error) return CannotWrite("the log folder", log_dir.string(), error.value());
    std::string name = options.run_id;
    std::replace(name.begin(), name.end(), '/', '_');
    absl::StatusOr<std::string> folder =
        NewFolder("the log folder", log_dir.string() + "/" + name + "_");
    if (!folder.ok()) return folder.status();
    // Others may read logs, as they could if the user had made the folder.
    fs::permissions(*folder, fs::perms(0755), error);
    layout.kept_folder_ = *std::move(folder);
    layout.record_ = std::make_shared<RunRecordWriter>(layout.kept_folder_, options.node_name);
    return layout;
  }
  if (options.needs_files) {
    absl::StatusOr<std::string> folder =
        NewFolder("the temporary folder", TemporaryFolder() + "/muster_logs_");
    if (!folder.ok()) return folder.status();
    layout.kept_folder_ = *std::move(folder);
    layout.record_ = std::make_shared<RunRecordWriter>(layout.kept_folder_, options.node_name);
    return layout;
  }
  std::string temporary = TemporaryFolder();
  if (access(temporary.c_str(), W_OK | X_OK) != 0) {
    return CannotWrite("the temporary folder", temporary, errno);
  }
  // Made by MakeAttempt(), when whoever removes it after a SIGKILL of this process knows its name.
  layout.private_folder_ = std::make_shared<PrivateFolder>(temporary);
  return layout;
}

void LogLayout::MakeAttempt(int attempt, int worker_count) const {
  const std::string base = kept_folder_.empty() ? private_folder() : kept_folder_;
  if (base.empty()) return;
  // Error files may hold what others must not read.
  if (private_folder_) private_folder_->Make();
  for (int i = 0; i < worker_count; ++i) {
    std::error_code ignored;
    fs::create_directories(OfWorker(base, attempt, LocalRank(i)), ignored);
  }
}

std::string LogLayout::StdoutFile(int attempt, LocalRank local_rank) const {
  if (kept_folder_.empty()) return "";
  return OfWorker(kept_folder_, attempt, local_rank) + "/stdout.log";
}

std::string LogLayout::StderrFile(int attempt, LocalRank local_rank) const {
  if (kept_folder_.empty()) return "";
  return OfWorker(kept_folder_, attempt, local_rank) + "/stderr.log";
}

std::string LogLayout::FilteredStdoutFile(int attempt) const {
  return kept_folder_.empty() ? "" : OfAttempt(kept_folder_, attempt) + "/filtered_stdout.log";
}

std::string LogLayout::FilteredStderrFile(int attempt) const {
  return kept_folder_.empty() ? "" : OfAttempt(kept_folder_, attempt) + "/filtered_stderr.log";
}

std::string LogLayout::StacksFile(int attempt, LocalRank local_rank) const {
  if (kept_folder_.empty()) return "";
  return OfWorker(kept_folder_, attempt, local_rank) + "/stacks.txt";
}

std::string LogLayout::ErrorFile(int attempt, LocalRank local_rank) const {
  const std::string base = kept_folder_.empty() ? private_folder() : kept_folder_;
  if (base.empty()) return "";
  return OfWorker(base, attempt, local_rank) + "/error.json";
}

}  // namespace muster::agent
