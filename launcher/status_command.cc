#include "launcher/status_command.h"

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "launcher/command_line.h"
#include "launcher/endpoint.h"
#include "launcher/exit_codes.h"
#include "launcher/flag_value.h"
#include "launcher/say.h"
#include "launcher/status_table.h"
#include "launcher/status_watch.h"
#include "launcher/text.h"
#include "rendezvous/client/admin_client.h"

namespace muster::launcher {
namespace {

constexpr char kOptions[] = "Options";

constexpr FlagSpec kFlags[] = {
    {"rdzv-endpoint", "HOST[:PORT]", kOptions, "The rendezvous to ask (default localhost:29400)"},
    {"rdzv-id", "ID", kOptions, "Show this job alone"},
    {"watch", "", kOptions,
     "Then print every change of state until stopped, or the rendezvous is gone for 60 s"},
    {"help", "", kOptions, "Print this page", 'h'},
};

constexpr uint16_t kDefaultPort = 29400;
constexpr std::chrono::seconds kPatience{5};

struct Question {
  Endpoint endpoint;
  std::optional<std::string> run_id;
  bool watches = false;
};

absl::StatusOr<Question> Read(const CommandLine& line) {
  Question question;
  question.endpoint = {.host = "localhost", .port = kDefaultPort};
  if (auto it = line.values.find("rdzv-endpoint"); it != line.values.end()) {
    std::optional<Endpoint> endpoint = ParseEndpoint(it->second, kDefaultPort);
    if (!endpoint.has_value() || endpoint->port == 0) {
      return BadValue("--rdzv-endpoint", it->second, "HOST or HOST:PORT");
    }
    question.endpoint = *endpoint;
  }
  if (auto it = line.values.find("rdzv-id"); it != line.values.end()) question.run_id = it->second;
  question.watches = line.values.contains("watch");
  if (line.rest.empty()) return question;
  return absl::InvalidArgumentError(
      Cat("unexpected word \"", line.rest.front(), "\"; `muster status` takes options only"));
}

// Why the rendezvous gave no answer, and the exit code for it.
int Fail(const Question& question, const absl::Status& status) {
  if (absl::IsNotFound(status)) {
    Say(Cat("the rendezvous at ", question.endpoint.ToString(), " knows no job \"",
            question.run_id.value_or(""), "\""));
    return 1;
  }
  Say(Cat("no muster rendezvous answers at ", question.endpoint.ToString(), ": ",
          std::string(status.message()), "; look at it, or name another one with --rdzv-endpoint"));
  return kExitUnavailable;
}

int Ask(const Question& question) {
  rendezvous::AdminClient client(question.endpoint.host, question.endpoint.port);
  auto jobs = client.Jobs(question.run_id, kPatience);
  if (!jobs.ok()) return Fail(question, jobs.status());
  if (!question.watches) return Print(StatusPage(*jobs)) ? 0 : 1;
  StatusWatch watch({.endpoint = question.endpoint,
                     .run_id = question.run_id,
                     .say = [](std::string_view line) { Say(line); },
                     .print = [](std::string_view text) { return Print(text); }});
  absl::Status end = watch.Run();
  if (!watch.could_print()) return 1;
  if (end.ok()) return 0;
  if (!absl::IsNotFound(end) && !absl::IsUnavailable(end)) return Fail(question, end);
  Say(std::string(end.message()));
  return absl::IsNotFound(end) ? 1 : kExitUnavailable;
}

}  // namespace

int StatusCommand(std::span<const std::string> words) {
  absl::StatusOr<CommandLine> line = ParseCommandLine(kFlags, words);
  if (line.ok() && line->values.contains("help")) {
    std::string page = HelpPage(
        "Shows the jobs of a rendezvous and their nodes.\n\n"
        "Usage: muster status [options]\n",
        kFlags);
    return Print(page) ? 0 : 1;
  }
  absl::StatusOr<Question> question = line.ok() ? Read(*line) : line.status();
  if (!question.ok()) {
    Say(std::string(question.status().message()));
    return kExitUsage;
  }
  return Ask(*question);
}

}  // namespace muster::launcher
