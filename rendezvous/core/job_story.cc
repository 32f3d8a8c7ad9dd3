#include "rendezvous/core/job_story.h"

#include <cstdio>
#include <string_view>
#include <utility>

namespace muster::rendezvous {
namespace {

using std::chrono::milliseconds;

constexpr size_t kWidth = 98;
constexpr std::string_view kIndent = "               ";

std::string Number(int64_t value) { return std::to_string(value); }

std::string RoundText(const World& world) { return "round " + Number(world.round.value); }

struct Describer {
  std::string operator()(const Attached& /*m*/) { return "Attached"; }
  std::string operator()(const Refused& m) {
    const bool superseded = m.code == RefusalCode::kSuperseded;
    return std::string("Refused ") + (superseded ? "superseded" : "disagrees") + ": " + m.message;
  }
  std::string operator()(const HeartbeatAck& m) { return "HeartbeatAck " + Number(m.sequence); }
  std::string operator()(const Notice& m) { return "Notice: " + m.text; }
  std::string operator()(const StartRound& m) {
    return "Start " + RoundText(m.world) + ": node " + Number(m.group_rank.value) + " of " +
           Number(m.group_world_size) + ", ranks from " + Number(m.first_rank.value) + " of " +
           Number(m.world_size) + ", master " + m.master_address + ", attempt " +
           Number(m.attempt) + ", charged " + Number(m.restarts_charged) +
           (m.resume ? ", resume " + Number(m.resume->step) : "");
  }
  std::string operator()(const StopRound& m) {
    static const char* const kCauses[] = {"",           "worker failed", "peer lost",
                                          "membership", "job ends",      "superseded"};
    return "Stop " + RoundText(m.world) + " (" + kCauses[static_cast<int>(m.cause)] + ", culprit " +
           Number(m.culprit.value) + "): " + m.reason;
  }
  std::string operator()(const SuccessNoted& m) { return "SuccessNoted " + RoundText(m.world); }
  std::string operator()(const CommitGranted& m) { return "Granted " + Number(m.commit.step); }
  std::string operator()(const CommitRefused& m) {
    return "CommitRefused " + Number(m.commit.step) + ": " + m.reason;
  }
  std::string operator()(const CommitNoted& m) { return "Noted " + Number(m.commit.step); }
  std::string operator()(const JobEnded& m) {
    std::string text = m.verdict.succeeded ? "JobEnded well" : "JobEnded code ";
    if (m.verdict.succeeded) return text;
    text += Number(m.verdict.exit_code) + ": " + m.verdict.reason;
    for (size_t i = 1; i < m.verdict.failures.size(); ++i) {
      text += " + rank " + Number(m.verdict.failures[i].rank.value);
    }
    return text;
  }
  std::string operator()(const CheckpointWanted& /*m*/) { return "CheckpointWanted"; }
  std::string operator()(const CheckpointAt& m) { return "CheckpointAt " + Number(m.step); }
  std::string operator()(const CheckpointAgreed& m) { return "CheckpointAgreed " + Number(m.step); }
  std::string operator()(const Drained&) { return "Drained"; }

  std::string operator()(const Attach& m) {
    std::string text = "Attach";
    if (m.node_rank) text += " node rank " + Number(*m.node_rank);
    if (m.running) text += " running " + RoundText(m.running->world);
    return text;
  }
  std::string operator()(const Heartbeat& m) { return "Heartbeat " + Number(m.sequence); }
  std::string operator()(const WorkerFailed& m) {
    return "WorkerFailed rank " + Number(m.failure.rank.value);
  }
  std::string operator()(const NodeSucceeded& m) { return "NodeSucceeded " + RoundText(m.world); }
  std::string operator()(const StopDone& m) { return "StopDone " + RoundText(m.world); }
  std::string operator()(const ShardReport& m) {
    return "Shard " + Number(m.commit.step) + " of rank " + Number(m.rank.value);
  }
  std::string operator()(const CommitDone& m) { return "CommitDone " + Number(m.commit.step); }
  std::string operator()(const Leave& m) {
    return (m.is_lost ? "Leave, lost: " : "Leave: ") + m.reason;
  }
  std::string operator()(const WorkerSucceeded& m) {
    return "WorkerSucceeded " + RoundText(m.world);
  }
  std::string operator()(const LeaveRequest& m) { return "LeaveRequest: " + m.reason; }
  std::string operator()(const CheckpointStep& m) { return "CheckpointStep " + Number(m.step); }
  std::string operator()(const CheckpointStepKnown& m) {
    return "CheckpointStepKnown " + Number(m.step);
  }
};

}  // namespace

std::string Describe(const RendezvousMessage& message) { return std::visit(Describer(), message); }
std::string Describe(const AgentMessage& message) { return std::visit(Describer(), message); }

JobStory::JobStory(Options options) : options_(options) {
  RestartRendezvous({.world = {RoundId(options.highest_round), WorldId()}});
}

void JobStory::RestartRendezvous(const JobRecord& record, bool record_is_new) {
  JobOptions options;
  options.startup_quiet = milliseconds(options_.startup_quiet_ms);
  options.record = record;
  options.record_is_new = record_is_new;
  if (machine_) Write("rendezvous restarts");
  machine_ = std::make_unique<JobMachine>("j", options, now_);
  sessions_.clear();
  names_.clear();
}

void JobStory::Lapse(int64_t ms) {
  const Instant end = now_ + milliseconds(ms);
  while (machine_->NextWakeup() <= end) {
    now_ = std::max(now_, machine_->NextWakeup());
    const auto agents = sessions_;
    for (const auto& [agent, session] : agents) {
      if (silent_.count(agent) == 0) {
        last_effects_ =
            machine_->Step(Input(), SessionMessage{session, HeartbeatOf(NameOf(session))});
        for (const JobEffect& effect : last_effects_) Note(effect);
      }
    }
    last_effects_ = machine_->Step(Input(), TimePassed{});
    for (const JobEffect& effect : last_effects_) Note(effect);
  }
  now_ = end;
}

void JobStory::CanSave(const std::string& agent, bool can_save) {
  if (can_save) {
    savers_.insert(agent);
  } else {
    savers_.erase(agent);
  }
  Send(agent, HeartbeatOf(agent));
}

Heartbeat JobStory::HeartbeatOf(const std::string& agent) const {
  return savers_.contains(agent) ? Heartbeat{1, 4, true} : Heartbeat{1};
}

void JobStory::Silence(const std::string& agent, bool is_silent) {
  if (is_silent) {
    silent_.insert(agent);
  } else {
    silent_.erase(agent);
  }
}

void JobStory::Attach(const std::string& agent, AttachOptions options) {
  muster::Attach attach;
  attach.incarnation.bytes = {1, static_cast<uint8_t>(agent[0]),
                              static_cast<uint8_t>(options.life)};
  attach.node_name = agent;
  attach.address = agent + ".net";
  attach.worker_count = options.workers;
  attach.node_rank = options.node_rank;
  attach.terms.run_id = "j";
  attach.terms.min_nodes = options_.min;
  attach.terms.max_nodes = options_.max;
  attach.terms.is_static = options_.is_static;
  attach.terms.max_restarts = options_.max_restarts;
  attach.terms.max_node_failures = options_.max_node_failures;
  attach.terms.max_restarts_per_hour = options_.max_restarts_per_hour;
  attach.terms.max_early_failures = options_.max_early_failures;
  attach.terms.max_stuck_restarts = options_.max_stuck_restarts;
  attach.terms.join_timeout = milliseconds(options_.join_timeout_ms);
  attach.terms.last_call_timeout = milliseconds(options_.last_call_ms);
  attach.terms.version = options.version;
  attach.terms.scale_up = options_.scale_up;
  attach.terms.program = options.program;
  attach.facts = options.facts;
  attach.is_drained = options.is_drained;
  const Notice* notice = Last<Notice>(agent);
  if (notice != nullptr && !options.is_running) attach.round_elsewhere = notice->running_round;
  attach.was_attached = options.was_attached;
  attach.hosts_rendezvous = options.hosts_rendezvous;
  attach.candidate_port = 7;
  attach.highest_round = world(agent).round;
  if (options.highest_round) attach.highest_round = RoundId(*options.highest_round);
  if (options.is_running) {
    const StartRound& place = started_.at(agent);
    attach.running =
        RunningWorld{place.world,      place.group_rank,      place.group_world_size,
                     place.first_rank, place.world_size,      place.restarts_charged,
                     place.resume,     options.has_succeeded, options.has_worker_succeeded};
  }
  if (options.last_commit_step > 0) {
    attach.last_commit = Commit{options.last_commit_step, "/c"};
    if (attach.running) attach.running->last_commit = attach.last_commit;
  }
  const SessionId session(++sessions_used_);
  sessions_[agent] = session;
  names_[session] = agent;
  Feed(SessionMessage{session, attach});
}

void JobStory::Break(const std::string& agent) {
  const SessionId session = sessions_.at(agent);
  sessions_.erase(agent);
  Feed(SessionEnded{session});
}

void JobStory::Send(const std::string& agent, const AgentMessage& message) {
  Feed(SessionMessage{session(agent), message});
}

void JobStory::WorkerFails(const std::string& agent, int rank, int code, int age_ms) {
  WorkerFailure failure;
  failure.rank = Rank(rank);
  failure.node_name = agent;
  failure.exit.code = code;
  failure.age = milliseconds(age_ms);
  Send(agent, WorkerFailed{world(agent), failure});
}

void JobStory::Feed(const JobEvent& event) {
  if (const auto* message = std::get_if<SessionMessage>(&event)) {
    Write(NameOf(message->session) + "> " + Describe(message->message));
  } else if (const auto* ended = std::get_if<SessionEnded>(&event)) {
    Write(NameOf(ended->session) + "> stream ends");
  } else if (std::holds_alternative<NodeDrained>(event)) {
    Write("drained");
  } else if (const auto* failed = std::get_if<NodeCannotStart>(&event)) {
    Write(failed->node_name + " cannot start");
  } else if (std::holds_alternative<HostStopping>(event)) {
    Write("host stops");
  } else if (std::holds_alternative<HostRefused>(event)) {
    Write("host is refused");
  }
  last_effects_ = machine_->Step(Input(), event);
  for (const JobEffect& effect : last_effects_) Note(effect);
}

World JobStory::world(const std::string& agent) const {
  auto started = started_.find(agent);
  return started == started_.end() ? World{} : started->second.world;
}

SessionId JobStory::session(const std::string& agent) const {
  auto known = sessions_.find(agent);
  return known == sessions_.end() ? SessionId(0) : known->second;
}

std::string JobStory::Trace() { return "\n" + std::exchange(trace_, ""); }

std::string JobStory::NameOf(SessionId session) const {
  auto name = names_.find(session);
  return name == names_.end() ? "?" : name->second;
}

void JobStory::Write(const std::string& line) {
  char time[24];
  std::snprintf(
      time, sizeof time, "%6lld ",
      static_cast<long long>(std::chrono::duration_cast<milliseconds>(now_ - began_).count()));
  std::string text = time + line;
  // Long sentences go on below, so that the expected text fits a page.
  while (text.size() > kWidth) {
    const size_t space = text.rfind(' ', kWidth);
    if (space == std::string::npos || space < kIndent.size() + 1) break;
    trace_ += text.substr(0, space) + "\n";
    text = std::string(kIndent) + text.substr(space + 1);
  }
  trace_ += text + "\n";
}

void JobStory::Note(const JobEffect& effect) {
  if (const auto* send = std::get_if<SendMessage>(&effect)) {
    const std::string name = NameOf(send->session);
    if (std::holds_alternative<HeartbeatAck>(send->message)) return;
    if (const auto* start = std::get_if<StartRound>(&send->message)) started_[name] = *start;
    told_[name].push_back(send->message);
    Write("  " + name + "< " + Describe(send->message));
  } else if (const auto* end = std::get_if<EndSession>(&effect)) {
    const std::string name = NameOf(end->session);
    if (session(name) == end->session) sessions_.erase(name);
    Write("  " + name + "< end of stream");
  } else if (const auto* began = std::get_if<RoundStarted>(&effect)) {
    Write("  " + RoundText(began->world) + " begins: " + Number(began->node_count) + " nodes, " +
          Number(began->world_size) + " workers");
  } else if (const auto* keep = std::get_if<KeepRecord>(&effect)) {
    record_ = keep->record;
  } else if (const auto* over = std::get_if<RoundOver>(&effect)) {
    Write("  " + RoundText(over->world) + " is over");
  } else if (const auto* record = std::get_if<Record>(&effect); record && options_.shows_records) {
    Write("  # " + record->text);
  }
}

StepInput JobStory::Input() {
  StepInput input;
  input.now = now_;
  input.fresh_world_id.bytes[0] = ++ids_;
  input.fresh_round_key.bytes[0] = ids_;
  return input;
}

}  // namespace muster::rendezvous
