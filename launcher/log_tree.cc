#include "launcher/log_tree.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <functional>
#include <iterator>
#include <optional>
#include <set>
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
  std::error_code error;
  return fs::exists(folder / agent::kRunRecordName, error) ||
         std::ranges::any_of(FoldersIn(folder),
                             [](const fs::path& below) { return AttemptOf(below).has_value(); });
}

void ListLogsOf(const std::string& run_folder, std::vector<WorkerLog>& logs) {
  const size_t first = logs.size();
  for (const fs::path& attempt_folder : FoldersIn(run_folder)) {
    std::optional<int> attempt = AttemptOf(attempt_folder);
    if (!attempt) continue;
    for (const fs::path& worker_folder : FoldersIn(attempt_folder)) {
      std::optional<int> local_rank = Number(worker_folder.filename().string());
      if (!local_rank) continue;
      for (const auto& [name, is_stderr] :
           {std::pair{"stdout.log", false}, std::pair{"stderr.log", true}}) {
        std::error_code error;
        if (!fs::is_regular_file(worker_folder / name, error)) continue;
        logs.push_back({.attempt = *attempt,
                        .local_rank = *local_rank,
                        .is_stderr = is_stderr,
                        .path = (worker_folder / name).string()});
      }
    }
  }
  // Read after the folders, as an attempt is noted before they are made.
  const std::optional<agent::RunRecord> record = agent::ReadRunRecord(run_folder);
  if (!record) return;
  for (size_t i = first; i < logs.size(); ++i) {
    const auto* noted = record->Find(logs[i].attempt);
    if (noted == nullptr) continue;
    logs[i].rank = noted->first_rank + logs[i].local_rank;
    if (noted->node_count > 1) logs[i].node = record->node;
  }
}

std::vector<RunFolder> FoldersThatMet(const std::string& log_dir, const std::string& run_folder) {
  std::vector<RunFolder> others, found = {{run_folder, agent::ReadRunRecord(run_folder)}};
  if (run_folder == log_dir || !found.front().record) return found;
  for (const fs::path& beside : FoldersIn(log_dir)) {
    if (beside == fs::path(run_folder)) continue;
    RunFolder other = {beside.string(), agent::ReadRunRecord(beside.string())};
    if (other.record) others.push_back(std::move(other));
  }
  // Who met whom, and so on: an agent that came later need not have met the first.
  std::set<std::string> worlds;
  for (size_t known = 0; known < found.size(); ++known) {
    for (const auto& attempt : found[known].record->attempts) worlds.insert(attempt.world);
    if (known + 1 < found.size()) continue;
    auto is_met = [&worlds](const RunFolder& other) {
      return std::ranges::any_of(other.record->attempts, [&worlds](const auto& attempt) {
        return worlds.contains(attempt.world);
      });
    };
    auto met = std::ranges::stable_partition(others, std::not_fn(is_met));
    std::ranges::move(met, std::back_inserter(found));
    others.erase(met.begin(), met.end());
  }
  std::ranges::sort(found, {}, &RunFolder::path);
  return found;
}

void FindOutWhoWrites(std::vector<RunFolder>& folders) {
  const std::string boot_id = agent::BootId();
  const bool job_has_ended = std::ranges::any_of(folders, [](const RunFolder& folder) {
    return folder.record && folder.record->end && folder.record->end->is_of_job;
  });
  for (auto& [path, record, writing] : folders) {
    if (!record) continue;
    writing = record->end ? Writing::kEnded : Writing::kGoesOn;
    const bool is_here = !boot_id.empty() && record->boot_id == boot_id;
    const bool lock_counts = record->is_locked && (is_here || job_has_ended);
    if (record->end || !lock_counts || !agent::IsRunRecordLetGo(path)) continue;
    // It may have ended in order since its record was read.
    if (auto newer = agent::ReadRunRecord(path)) record = std::move(newer);
    writing = record->end ? Writing::kEnded : Writing::kWasKilled;
  }
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

std::vector<RunFolder> FoldersOfJob(const std::string& log_dir, const std::string& run_folder) {
  std::vector<RunFolder> found = FoldersThatMet(log_dir, run_folder);
  FindOutWhoWrites(found);
  return found;
}

std::vector<WorkerLog> ListWorkerLogs(const std::vector<RunFolder>& folders) {
  std::vector<WorkerLog> logs;
  for (const RunFolder& folder : folders) ListLogsOf(folder.path, logs);
  std::ranges::sort(logs);
  return logs;
}

}  // namespace muster::launcher
