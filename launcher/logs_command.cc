#include "launcher/logs_command.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/visible_text.h"
#include "launcher/command_line.h"
#include "launcher/exit_codes.h"
#include "launcher/flag_value.h"
#include "launcher/log_choice.h"
#include "launcher/log_tail.h"
#include "launcher/log_tree.h"
#include "launcher/say.h"
#include "launcher/text.h"

namespace muster::launcher {
namespace {

constexpr char kOptions[] = "Options";

constexpr FlagSpec kFlags[] = {
    {"follow", "", kOptions,
     "Go on with what is written from now on, in later attempts too, until the job has ended", 'f'},
    {"rank", "R", kOptions, "This rank of the job alone"},
    {"local-rank", "R", kOptions, "This local rank alone, on each node (the folder's name)"},
    {"attempt", "N", kOptions, "This attempt alone"},
    {"help", "", kOptions, "Print this page", 'h'},
};

// Between two looks at files that grow, as torchrun's tee has it.
constexpr int kPauseMs = 100;
// Between two looks at which files there are, and whether the job has ended.
constexpr auto kBetweenLooks = std::chrono::milliseconds(500);

struct Question {
  std::string folder;
  bool follows = false;
  LogChoice choice;
};

absl::StatusOr<Question> Read(const CommandLine& line) {
  Question question;
  question.follows = line.values.contains("follow");
  for (const auto& [name, target] : {std::pair{"rank", &question.choice.rank},
                                     std::pair{"local-rank", &question.choice.local_rank},
                                     std::pair{"attempt", &question.choice.attempt}}) {
    auto it = line.values.find(name);
    if (it == line.values.end()) continue;
    absl::StatusOr<int> number =
        WholeNumber(Cat("--", name), it->second, {0, 1'000'000'000, "a whole number, 0 or more"});
    if (!number.ok()) return number.status();
    *target = *number;
  }
  if (question.choice.rank && question.choice.local_rank) {
    return absl::InvalidArgumentError(
        "--rank and --local-rank exclude each other: a rank of the job is on one node alone");
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

std::string PrefixOf(const WorkerLog& log) {
  return Cat("[", log.attempt, ".", log.rank.value_or(log.local_rank), log.node.empty() ? "" : " ",
             VisibleText(log.node), log.is_stderr ? " err]: " : "]: ");
}

// All files of the run that are read so far.
class Reader {
 public:
  Reader(const Question& question, std::string run_folder)
      : question_(question), run_folder_(std::move(run_folder)) {
    known_.folder = question_.folder;
  }

  // Finds out which files there are. If an agent has ended, all that it wrote is among them.
  void Look() {
    known_.folders = FoldersOfJob(question_.folder, run_folder_);
    known_.logs = ListWorkerLogs(known_.folders);
    for (const WorkerLog& log : known_.logs) {
      if (!question_.choice.Takes(log)) continue;
      auto [it, is_new] = tails_.try_emplace(log.path);
      if (!is_new) continue;
      it->second = std::make_unique<LogTail>(log.path, PrefixOf(log));
      order_.emplace(log, it->second.get());
    }
  }

  const KnownLogs& known() const { return known_; }
  bool has_found() const { return !tails_.empty(); }

  // Shows what has come since. Nothing if stdout can't be written; else whether anything had come.
  // Without --follow one file after the other; else each gets its turn.
  std::optional<bool> Show() {
    bool has_come = false;
    for (auto& [log, tail] : order_) {
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

  // Shows unfinished last lines. False if stdout can't be written.
  bool End() {
    text_.clear();
    for (auto& [log, tail] : order_) tail->End(&text_);
    return Print(text_);
  }

 private:
  const Question& question_;
  const std::string run_folder_;
  KnownLogs known_;
  std::map<std::string, std::unique_ptr<LogTail>> tails_;
  std::map<WorkerLog, LogTail*> order_;
  std::string text_;
};

int SayNoLogs(const Question& question, const Reader& reader) {
  Say(WhyNoLogs(question.choice, reader.known()));
  return kExitUsage;
}

// How the agents ended, for people.
std::string EndsOf(const Reader& reader) {
  const std::vector<RunFolder>& folders = reader.known().folders;
  const auto killed = std::ranges::count(folders, Writing::kWasKilled, &RunFolder::writing);
  if (folders.size() > 1) {
    return Cat("all ", folders.size(), " agents have ended",
               killed == 0 ? "" : Cat(", ", killed, " of them killed"));
  }
  const auto& record = folders.front().record;
  if (killed > 0 || !record || !record->end) return "the agent was killed";
  return Cat("the agent has ended with exit code ", record->end->exit_code);
}

// False once nobody reads our output any more.
bool Pause() {
  pollfd output{STDOUT_FILENO, 0, 0};
  return poll(&output, 1, kPauseMs) <= 0 || (output.revents & (POLLERR | POLLHUP)) == 0;
}

// Says once what a person who waits should know.
void SayWhatToExpect(const Question& question, const Reader& reader) {
  const auto& folders = reader.known().folders;
  if (std::ranges::count(folders, Writing::kUnknown, &RunFolder::writing) > 0) {
    Say(Cat(InQuotes(question.folder),
            " doesn't say when its job ends (another launcher made it, or an older muster); end "
            "this with Ctrl-C"));
  }
  if (!reader.has_found() && !reader.known().logs.empty()) {
    Say(Cat(WhyNoLogs(question.choice, reader.known()), "; waiting for them"));
  }
}

int Follow(const Question& question, Reader& reader) {
  for (bool is_first = true;; is_first = false) {
    reader.Look();
    if (!reader.has_found() && IsHopeless(question.choice, reader.known())) {
      return SayNoLogs(question, reader);
    }
    const bool is_over = std::ranges::all_of(reader.known().folders, [](const RunFolder& folder) {
      return folder.writing == Writing::kEnded || folder.writing == Writing::kWasKilled;
    });
    if (is_first && !is_over) SayWhatToExpect(question, reader);
    const auto until = std::chrono::steady_clock::now() + kBetweenLooks;
    bool has_come = true;
    while (is_over ? has_come : std::chrono::steady_clock::now() < until) {
      std::optional<bool> shown = reader.Show();
      if (!shown) return 1;
      has_come = *shown;
      if (!has_come && !is_over && !Pause()) return 0;
    }
    if (!is_over) continue;
    if (!reader.has_found()) return SayNoLogs(question, reader);
    if (!reader.End()) return 1;
    Say(EndsOf(reader));
    return 0;
  }
}

int ShowLogs(const Question& question) {
  absl::StatusOr<std::string> run_folder = FindRunFolder(question.folder);
  if (!run_folder.ok()) {
    Say(std::string(run_folder.status().message()));
    return kExitUsage;
  }
  Reader reader(question, *run_folder);
  if (*run_folder != question.folder) Say(Cat("logs of the newest run, ", *run_folder));
  if (question.follows) return Follow(question, reader);
  reader.Look();
  if (!reader.has_found()) return SayNoLogs(question, reader);
  return reader.Show() ? 0 : 1;
}

}  // namespace

int LogsCommand(std::span<const std::string> words) {
  absl::StatusOr<CommandLine> line = ParseWordsAndFlags(kFlags, words);
  if (line.ok() && line->values.contains("help")) {
    std::string page = HelpPage(
        "Shows the log files of a run together, each line behind its attempt and rank: [0.1]: for\n"
        "attempt 0, rank 1, [0.1 err]: for its stderr, [0.1 node7]: of a job on several nodes.\n\n"
        "Usage: muster logs [options] DIR\n\n"
        "DIR is the --log-dir of `muster run` (the newest run below it is shown, of all nodes "
        "that\n"
        "share the folder), or one run's folder. docs/logs.md says more.\n",
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
