#include "launcher/status_command.h"

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "launcher/command_line.h"
#include "launcher/endpoint.h"
#include "launcher/exit_codes.h"
#include "launcher/flag_value.h"
#include "launcher/say.h"
#include "launcher/status_table.h"
#include "launcher/text.h"
#include "proto/rendezvous.grpc.pb.h"

namespace muster::launcher {
namespace {

constexpr char kOptions[] = "Options";

constexpr FlagSpec kFlags[] = {
    {"rdzv-endpoint", "HOST[:PORT]", kOptions, "The rendezvous to ask (default localhost:29400)"},
    {"rdzv-id", "ID", kOptions, "Show this job alone"},
    {"watch", "", kOptions, "Then print every change of state until stopped"},
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
int Fail(const Question& question, const grpc::Status& status) {
  if (status.error_code() == grpc::StatusCode::NOT_FOUND) {
    Say(Cat("the rendezvous at ", question.endpoint.ToString(), " knows no job \"",
            question.run_id.value_or(""), "\""));
    return 1;
  }
  bool is_silent = status.error_code() == grpc::StatusCode::UNAVAILABLE ||
                   status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED;
  Say(Cat("no muster rendezvous answers at ", question.endpoint.ToString(), ": ",
          is_silent ? "it can't be reached" : status.error_message(),
          "; name another one with --rdzv-endpoint"));
  return kExitUnavailable;
}

int Watch(proto::Rendezvous::Stub& stub, const Question& question) {
  proto::WatchRequest request;
  if (question.run_id.has_value()) request.set_run_id(*question.run_id);
  grpc::ClientContext context;
  std::unique_ptr<grpc::ClientReader<proto::WatchEvent>> reader = stub.Watch(&context, request);
  proto::WatchEvent event;
  while (reader->Read(&event)) {
    if (!Print(Cat(event.run_id(), ": ", event.text(), "\n"))) return 1;
  }
  grpc::Status status = reader->Finish();
  return status.ok() ? 0 : Fail(question, status);
}

int Ask(const Question& question) {
  grpc::ChannelArguments arguments;
  // The rendezvous is in the cluster; a proxy for the web is not the way there.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetMaxReceiveMessageSize(-1);
  std::shared_ptr<grpc::Channel> channel = grpc::CreateCustomChannel(
      question.endpoint.ToString(), grpc::InsecureChannelCredentials(), arguments);
  std::unique_ptr<proto::Rendezvous::Stub> stub = proto::Rendezvous::NewStub(channel);
  proto::GetStatusRequest request;
  if (question.run_id.has_value()) request.set_run_id(*question.run_id);
  proto::GetStatusReply reply;
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kPatience);
  grpc::Status status = stub->GetStatus(&context, request, &reply);
  if (!status.ok()) return Fail(question, status);
  if (!Print(StatusPage(reply))) return 1;
  return question.watches ? Watch(*stub, question) : 0;
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
