#include "agent/agent.h"

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "agent/agent_loop.h"
#include "agent/core/exit_code.h"
#include "agent/core/failure_report.h"
#include "agent/error_file.h"
#include "agent/log_layout.h"
#include "agent/process/file_thread.h"
#include "agent/process/log_pump.h"
#include "agent/run_record.h"
#include "agent/server/worker_service.h"
#include "base/visible_text.h"

namespace muster::agent {
namespace {

bool NeedsFiles(const std::vector<StreamChoice>& streams) {
  return std::any_of(streams.begin(), streams.end(), [](const StreamChoice& s) {
    return s.redirect_stdout || s.redirect_stderr || s.tee_stdout || s.tee_stderr;
  });
}

Verdict Failed(const absl::Status& status, int exit_code) {
  Verdict verdict;
  verdict.reason = std::string(status.message());
  verdict.exit_code = exit_code;
  return verdict;
}

}  // namespace

class Agent::Work {
 public:
  Work(AgentSettings settings, AgentParts parts)
      : settings_(std::move(settings)), parts_(std::move(parts)), loop_(&settings_, parts_.clock) {}

  Verdict Run() {
    Verdict verdict = RunWithPump();
    // All that will be in the logs is there.
    if (record_) {
      FileThread files;
      files.Offer(0, [record = record_, end = EndOf(verdict)] { record->Note(end); });
    }
    return verdict;
  }

  AgentLoop& loop() { return loop_; }

 private:
  Verdict RunWithPump() {
    LogPump pump({.stdout_fd = settings_.stdout_fd,
                  .stderr_fd = settings_.stderr_fd,
                  .stdout_filters = settings_.stdout_filters,
                  .stderr_filters = settings_.stderr_filters,
                  .log_max_bytes = settings_.log_max_bytes,
                  .frame_own = settings_.frame_own});
    Verdict verdict = RunWith(pump);
    if (verdict.succeeded) return verdict;
    // Whoever ran no round of the job may have come with another program than the one that failed.
    const bool has_run = loop_.last_place().world.round.value != 0;
    const std::string job = "job " + settings_.core.attach.terms.run_id;
    std::string text = FailureReport(has_run ? settings_.program : job, verdict);
    const std::string who = has_run && !verdict.failures.empty() ? settings_.program + ": " : "";
    if (!text.empty() && !verdict.reason.empty()) text += '\n';
    if (!verdict.reason.empty()) text += "muster: " + who + VisibleText(verdict.reason, "\n\t");
    if (!text.empty()) pump.Say(text, /*is_verdict=*/true);
    return verdict;
  }

  Verdict RunWith(LogPump& pump) {
    absl::StatusOr<LogLayout> layout =
        LogLayout::Make({.log_dir = settings_.log_dir,
                         .run_id = settings_.core.attach.terms.run_id,
                         .node_name = settings_.core.attach.node_name,
                         .needs_files = NeedsFiles(settings_.streams)});
    if (!layout.ok()) return Failed(layout.status(), kExitCannotCreate);
    record_ = layout->record();
    if (settings_.log_dir.empty() && !layout->kept_folder().empty()) {
      pump.Say("muster: logs are in " + layout->kept_folder());
    }
    Verdict verdict = RunWith(pump, *layout);
    if (!verdict.succeeded) PassErrorOn(pump, verdict);
    if (!layout->private_folder().empty()) {
      std::error_code ignored;  // the guardian has removed it, or will
      std::filesystem::remove_all(layout->private_folder(), ignored);
    }
    return verdict;
  }

  void PassErrorOn(LogPump& pump, const Verdict& verdict) const {
    if (settings_.error_file.empty()) return;
    std::string record = loop_.first_error();
    if (record.empty()) record = OwnErrorRecord(verdict.reason, verdict.exit_code, time(nullptr));
    std::string problem = WriteErrorFile(record, settings_.error_file);
    if (problem.empty()) return;
    pump.Say("muster: TORCHELASTIC_ERROR_FILE=" + settings_.error_file +
             " can't be written: " + problem + "; name a file that this user may write");
  }

  Verdict RunWith(LogPump& pump, const LogLayout& layout) {
    // The guardian's runner goes last: it waits until no worker is left.
    std::unique_ptr<ProcessRunner> runner = parts_.make_runner(&loop_);
    if (parts_.on_private_folder && !layout.private_folder().empty()) {
      parts_.on_private_folder(layout.private_folder());
    }
    std::unique_ptr<rendezvous::RendezvousClient> client = parts_.make_client(&loop_);
    absl::StatusOr<std::unique_ptr<WorkerService>> service =
        WorkerService::Start(client.get(), &loop_, parts_.clock);
    if (!service.ok()) return Failed(service.status(), kExitInternal);
    return loop_.Run({.client = client.get(),
                      .runner = runner.get(),
                      .service = service->get(),
                      .pump = &pump,
                      .layout = &layout});
  }

  const AgentSettings settings_;
  const AgentParts parts_;
  AgentLoop loop_;
  // Null if no folder is kept. Holds its lock until everything else is gone.
  std::shared_ptr<RunRecordWriter> record_;
};

Agent::Agent(AgentSettings settings, AgentParts parts)
    : work_(std::make_unique<Work>(std::move(settings), std::move(parts))) {}
Agent::~Agent() = default;

Verdict Agent::Run() { return work_->Run(); }
const StartRound& Agent::last_place() const { return work_->loop().last_place(); }
void Agent::RequestStop(int signal, std::string notice) {
  work_->loop().RequestStop(signal, std::move(notice));
}
void Agent::ForwardSignal(int signal) { work_->loop().ForwardSignal(signal); }
void Agent::Say(std::string line) { work_->loop().Say(std::move(line)); }

}  // namespace muster::agent
