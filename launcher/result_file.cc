#include "launcher/result_file.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "base/signal_name.h"
#include "base/version.h"
#include "launcher/say.h"
#include "launcher/text.h"
#include "nlohmann/json.hpp"

namespace muster::launcher {
namespace {

namespace fs = std::filesystem;
// Fields in the order in which they are set: people read this too.
using Json = nlohmann::ordered_json;

// Of the fields' names and meanings; grows when one changes, not when one is added.
constexpr int kSchema = 1;

Json TimeText(int64_t wall_time_s) {
  if (wall_time_s <= 0) return nullptr;
  auto time = static_cast<time_t>(wall_time_s);
  tm utc{};
  gmtime_r(&time, &utc);
  std::array<char, 32> text;
  strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text.data();
}

Json TextOrNull(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

Json FailureJson(const WorkerFailure& failure, bool is_root) {
  const bool is_signal = failure.exit.signal != 0;
  Json json;
  json["role"] = is_root ? "root_cause" : "follower";
  json["rank"] = failure.rank.value;
  json["local_rank"] = failure.local_rank.value;
  json["node"] = failure.node_name;
  json["pid"] = failure.pid > 0 ? Json(failure.pid) : Json(nullptr);
  json["exit_code"] = is_signal ? Json(nullptr) : Json(failure.exit.code);
  json["signal"] = is_signal ? Json(SignalName(failure.exit.signal)) : Json(nullptr);
  json["signal_number"] = is_signal ? Json(failure.exit.signal) : Json(nullptr);
  json["core_dumped"] = failure.exit.dumped_core;
  json["failed_to_start"] = failure.failed_to_start;
  json["out_of_memory"] = failure.out_of_memory;
  json["hung"] = failure.hung;
  json["only_waited"] = failure.only_waited;
  json["evidence"] = TextOrNull(failure.evidence);
  json["last_step"] = failure.last_step >= 0 ? Json(failure.last_step) : Json(nullptr);
  json["message"] = TextOrNull(failure.message);
  json["stderr_tail"] = TextOrNull(failure.stderr_tail);
  json["log_file"] = TextOrNull(failure.log_path);
  json["error_file"] = TextOrNull(failure.error_file);
  json["core_file"] = TextOrNull(failure.core_file);
  json["stacks_file"] = TextOrNull(failure.stacks_file);
  json["failed_at"] = TimeText(failure.wall_time_s);
  return json;
}

// Where the text goes in the end, and how long it may take none of it.
struct Text {
  std::string_view text;
  Duration patience;
};

// An errno, or 0. ETIMEDOUT: a reader took nothing for too long. The end of it all is bounded,
// since each wait ends with some of the text gone.
int WriteAll(int fd, const Text& what) {
  std::string_view rest = what.text;
  while (!rest.empty()) {
    const ssize_t count = write(fd, rest.data(), rest.size());
    if (count > 0) rest.remove_prefix(static_cast<size_t>(count));
    if (count > 0 || (count < 0 && errno == EINTR)) continue;
    if (count == 0) return EIO;
    if (errno != EAGAIN) return errno;
    const auto ms = std::chrono::ceil<std::chrono::milliseconds>(what.patience).count();
    pollfd room{fd, POLLOUT, 0};
    const int ready = poll(&room, 1, static_cast<int>(ms));
    if (ready == 0) return ETIMEDOUT;
    if (ready < 0 && errno != EINTR) return errno;
  }
  return 0;
}

// An errno, or 0.
int WriteTo(const std::string& path, const Text& text, int flags) {
  int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK | flags, 0644);
  if (fd < 0) return errno;
  int error = WriteAll(fd, text);
  if (close(fd) != 0 && error == 0) error = errno;
  return error;
}

// The descriptor of ours that is this very file and can be written, as /dev/stdout is; -1: none.
// Putting another file in its place would take away what has been written to it.
int OwnDescriptorOf(const std::string& path) {
  struct stat target {};
  if (stat(path.c_str(), &target) != 0) return -1;
  std::error_code none;
  for (const fs::directory_entry& entry : fs::directory_iterator("/proc/self/fd", none)) {
    int fd = std::atoi(entry.path().filename().c_str());
    struct stat own {};
    if (fstat(fd, &own) != 0 || own.st_dev != target.st_dev || own.st_ino != target.st_ino)
      continue;
    if ((fcntl(fd, F_GETFL) & O_ACCMODE) != O_RDONLY) return fd;
  }
  return -1;
}

// Readers see the old file or the new one, never half of it.
int Replace(const std::string& path, const Text& text) {
  std::error_code none;
  fs::file_status status = fs::status(path, none);
  if (fs::is_regular_file(status)) {
    int own = OwnDescriptorOf(path);
    if (own >= 0) return WriteAll(own, text);
  }
  // A device or a pipe is no file that could be replaced.
  if (fs::exists(status) && !fs::is_regular_file(status)) return WriteTo(path, text, 0);
  // Where a link leads to, the link stays.
  fs::path target = fs::exists(status) ? fs::canonical(path, none) : fs::path(path);
  if (target.empty()) target = path;
  std::string fresh = Cat(target.string(), ".", getpid(), ".tmp");
  int error = WriteTo(fresh, text, O_CREAT | O_TRUNC);
  if (error == 0 && rename(fresh.c_str(), target.c_str()) != 0) error = errno;
  if (error != 0) unlink(fresh.c_str());
  return error;
}

std::string Reason(const std::string& path, int error) {
  std::error_code none;
  if (error == ENXIO && fs::is_fifo(path, none)) return "nobody reads it";
  if (error == EPIPE) return "its reader went away before the end";
  if (error == ETIMEDOUT) return "its reader took nothing of it for too long";
  return std::strerror(error);
}

}  // namespace

std::string ResultJson(const EndedJob& ended) {
  const Verdict& verdict = ended.verdict;
  Json json;
  json["schema"] = kSchema;
  json["muster_version"] = kVersion;
  json["run_id"] = ended.run_id;
  json["node"] = ended.node_name;
  json["succeeded"] = verdict.succeeded;
  json["exit_code"] = verdict.exit_code;
  json["reason"] = TextOrNull(verdict.reason);
  json["restarts_charged"] = verdict.restarts_charged;
  json["ended_at"] = TimeText(ended.ended_at_s);
  if (ended.world.round.value == 0) {
    for (const char* name : {"attempt", "round", "world"}) json[name] = nullptr;
  } else {
    json["attempt"] = ended.attempt;
    json["round"] = ended.world.round.value;
    json["world"] = {
        {"id", ended.world.id.ToHex()}, {"size", ended.world_size}, {"nodes", ended.node_count}};
  }
  json["failures"] = Json::array();
  for (size_t i = 0; i < verdict.failures.size(); ++i) {
    json["failures"].push_back(FailureJson(verdict.failures[i], i == 0));
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::optional<std::string> CheckResultFile(const std::string& path) {
  if (path.empty()) return std::nullopt;
  std::error_code none;
  if (path.back() == '/' || fs::is_directory(path, none)) {
    return Cat("--result-file=", path, " is a folder; name a file in it");
  }
  fs::path folder = fs::path(path).parent_path();
  if (folder.empty()) folder = ".";
  if (!fs::is_directory(folder, none)) {
    return Cat("--result-file=", path, ": there is no folder ", folder.string(),
               "; make it, or name a file elsewhere");
  }
  return std::nullopt;
}

void ResultFile::Write(const EndedJob& ended) {
  base::MutexLock lock(mutex_);
  if (path_.empty() || is_written_) return;
  is_written_ = true;
  const std::string json = ResultJson(ended);
  // A reader that has gone is told by the error.
  const auto before = std::signal(SIGPIPE, SIG_IGN);
  const int error = Replace(path_, {json, patience_});
  std::signal(SIGPIPE, before);
  if (error == 0) return;
  Say(Cat("--result-file=", path_, " can't be written: ", Reason(path_, error),
          "; the exit code tells how the job ended"));
}

}  // namespace muster::launcher
