#include "launcher/log_tree.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "launcher/text.h"

namespace muster::launcher {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kAttempt = "attempt_";

std::optional<int> Number(std::string_view text) {
  int value = 0;
  auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  bool is_number = error == std::errc() && stop == text.data() + text.size() && value >= 0;
  return is_number ? std::optional(value) : std::nullopt;
}

std::optional<int> AttemptOf(const fs::path& folder) {
  const std::string name = folder.filename().string();
  if (!name.starts_with(kAttempt)) return std::nullopt;
  return Number(std::string_view(name).substr(kAttempt.size()));
}

// Without what can't be read.
std::vector<fs::path> FoldersIn(const fs::path& folder) {
  std::vector<fs::path> folders;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    std::error_code ignored;
    if (it->is_directory(ignored)) folders.push_back(it->path());
  }
  std::ranges::sort(folders);
  return folders;
}

bool IsRun(const fs::path& folder) {
  return std::ranges::any_of(FoldersIn(folder),
                             [](const fs::path& below) { return AttemptOf(below).has_value(); });
}

}  // namespace

absl::StatusOr<std::string> FindRunFolder(const std::string& folder) {
  if (IsRun(folder)) return folder;
  std::optional<fs::path> newest;
  fs::file_time_type when;
  for (const fs::path& below : FoldersIn(folder)) {
    std::error_code error;
    fs::file_time_type its_time = fs::last_write_time(below, error);
    if (error || !IsRun(below) || (newest && its_time <= when)) continue;
    newest = below;
    when = its_time;
  }
  if (newest) return newest->string();
  std::error_code error;
  const bool is_folder = fs::is_directory(folder, error);
  return absl::NotFoundError(
      Cat(InQuotes(folder), is_folder ? " holds no logs of a run" : " is no folder",
          "; name the --log-dir of `muster run`, or the run's folder below it"));
}

std::vector<WorkerLog> ListWorkerLogs(const std::string& run_folder) {
  std::vector<WorkerLog> logs;
  for (const fs::path& attempt_folder : FoldersIn(run_folder)) {
    std::optional<int> attempt = AttemptOf(attempt_folder);
    if (!attempt) continue;
    for (const fs::path& worker_folder : FoldersIn(attempt_folder)) {
      std::optional<int> rank = Number(worker_folder.filename().string());
      if (!rank) continue;
      for (const auto& [name, is_stderr] :
           {std::pair{"stdout.log", false}, std::pair{"stderr.log", true}}) {
        std::error_code error;
        if (!fs::is_regular_file(worker_folder / name, error)) continue;
        logs.push_back({.attempt = *attempt,
                        .local_rank = *rank,
                        .is_stderr = is_stderr,
                        .path = (worker_folder / name).string()});
      }
    }
  }
  std::ranges::sort(logs);
  return logs;
}

}  // namespace muster::launcher
