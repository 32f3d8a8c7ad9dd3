#include "launcher/logs_command.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <map>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "launcher/command_line.h"
#include "launcher/exit_codes.h"
#include "launcher/flag_value.h"
#include "launcher/log_tail.h"
#include "launcher/log_tree.h"
#include "launcher/say.h"
#include "launcher/text.h"

namespace muster::launcher {
namespace {

constexpr char kOptions[] = "Options";

constexpr FlagSpec kFlags[] = {
    {"follow", "", kOptions, "Go on with what is written from now on, in later attempts too", 'f'},
    {"rank", "R", kOptions, "This local rank alone (the folder's name)"},
    {"attempt", "N", kOptions, "This attempt alone"},
    {"help", "", kOptions, "Print this page", 'h'},
};

// Between two looks at files that grow, as torchrun's tee has it.
constexpr int kPauseMs = 100;

struct Question {
  std::string folder;
  bool follows = false;
  std::optional<int> rank;
  std::optional<int> attempt;

  bool Takes(const WorkerLog& log) const {
    return (!rank || *rank == log.local_rank) && (!attempt || *attempt == log.attempt);
  }
};

absl::StatusOr<Question> Read(const CommandLine& line) {
  Question question;
  question.follows = line.values.contains("follow");
  for (const auto& [name, target] :
       {std::pair{"rank", &question.rank}, std::pair{"attempt", &question.attempt}}) {
    auto it = line.values.find(name);
    if (it == line.values.end()) continue;
    absl::StatusOr<int> number =
        WholeNumber(Cat("--", name), it->second, {0, 1'000'000'000, "a whole number, 0 or more"});
    if (!number.ok()) return number.status();
    *target = *number;
  }
  if (line.rest.size() != 1 || line.rest.front().empty()) {
    return absl::InvalidArgumentError(
        Cat(line.rest.empty() ? "no folder was named" : "name one folder",
            "; usage: muster logs [options] DIR (the --log-dir of `muster run`, or a run's folder "
            "below it)"));
  }
  question.folder = line.rest.front();
  return question;
}

// All files of the run that are read so far.
class Reader {
 public:
  Reader(Question question, std::string run_folder)
      : question_(std::move(question)), run_folder_(std::move(run_folder)) {}

  // Shows what has come since. Nothing if stdout can't be written; else whether anything had come.
  std::optional<bool> Show() {
    std::vector<WorkerLog> logs = ListWorkerLogs(run_folder_);
    for (const WorkerLog& log : logs) {
      if (!question_.Takes(log)) continue;
      auto [it, is_new] = tails_.try_emplace(log);
      if (is_new) {
        it->second = std::make_unique<LogTail>(log.path, Cat("[", log.attempt, ".", log.local_rank,
                                                             log.is_stderr ? " err]: " : "]: "));
      }
    }
    bool has_come = false;
    for (auto& [log, tail] : tails_) {
      // Without --follow one file after the other; else each gets its turn.
      do {
        text_.clear();
        bool has_more = tail->ReadMore(&text_);
        has_come = has_come || has_more;
        if (!has_more && !question_.follows) tail->End(&text_);
        if (!Print(text_)) return std::nullopt;
        if (!has_more) break;
      } while (!question_.follows);
    }
    return has_come;
  }

 private:
  const Question question_;
  const std::string run_folder_;
  std::map<WorkerLog, std::unique_ptr<LogTail>> tails_;
  std::string text_;
};

int ShowLogs(const Question& question) {
  absl::StatusOr<std::string> run_folder = FindRunFolder(question.folder);
  if (!run_folder.ok()) {
    Say(std::string(run_folder.status().message()));
    return kExitUsage;
  }
  if (*run_folder != question.folder) Say(Cat("logs of the newest run, ", *run_folder));
  Reader reader(question, *run_folder);
  while (true) {
    std::optional<bool> has_come = reader.Show();
    if (!has_come) return 1;
    if (!question.follows) return 0;
    if (*has_come) continue;
    // Whoever reads our output may have gone.
    pollfd output{STDOUT_FILENO, 0, 0};
    if (poll(&output, 1, kPauseMs) > 0 && (output.revents & (POLLERR | POLLHUP)) != 0) return 0;
  }
}

}  // namespace

int LogsCommand(std::span<const std::string> words) {
  absl::StatusOr<CommandLine> line = ParseWordsAndFlags(kFlags, words);
  if (line.ok() && line->values.contains("help")) {
    std::string page = HelpPage(
        "Shows the log files of a run on this node together, each line behind its attempt and "
        "local\n"
        "rank: [0.1]: for attempt 0, local rank 1, and [0.1 err]: for its stderr.\n\n"
        "Usage: muster logs [options] DIR\n\n"
        "DIR is the --log-dir of `muster run` (the newest run below it is shown), or one run's "
        "folder.\n",
        kFlags);
    return Print(page) ? 0 : 1;
  }
  absl::StatusOr<Question> question = line.ok() ? Read(*line) : line.status();
  if (!question.ok()) {
    Say(std::string(question.status().message()));
    return kExitUsage;
  }
  return ShowLogs(*question);
}

}  // namespace muster::launcher
