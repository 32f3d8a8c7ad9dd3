// One job without a loop: the test feeds it and reads what it says.
#include "rendezvous/server/hosted_job.h"

#include <chrono>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "gtest/gtest.h"

namespace muster::rendezvous {
namespace {

using std::chrono::milliseconds;

class Outlet : public JobOutlet {
 public:
  void Send(SessionId, const RendezvousMessage& message) override {
    if (const auto* start = std::get_if<StartRound>(&message)) world = start->world;
    if (std::holds_alternative<CommitNoted>(message)) said += "noted ";
    if (std::holds_alternative<JobEnded>(message)) said += "ended ";
    if (std::holds_alternative<HeartbeatAck>(message)) said += "beat ";
  }
  void End(SessionId) override { said += "stream's end "; }
  void RoundBegins(const std::string&) override { ++rounds_begun; }
  bool Keep(const std::string&, KeepId keep, const JobRecord& record) override {
    kept.emplace_back(keep, record);
    return has_disk;
  }
  void Report(const std::string&, RoundId, const std::string& text) override { log += text + "\n"; }
  // What was said since the last call.
  std::string Said() { return std::exchange(said, ""); }

  World world;
  bool has_disk = false;
  int rounds_begun = 0;
  std::vector<std::pair<KeepId, JobRecord>> kept;
  std::string said;
  std::string log;
};

Incarnation Agent(uint64_t number) {
  Incarnation incarnation;
  std::memcpy(incarnation.bytes.data(), &number, sizeof number);
  return incarnation;
}

class HostedJobTest : public testing::Test {
 protected:
  static JobOptions Options() {
    JobOptions options;
    options.startup_quiet = Duration(0);
    return options;
  }

  void Attach(uint64_t agent) {
    muster::Attach attach;
    attach.incarnation = Agent(agent);
    attach.node_name = "node-" + std::to_string(agent);
    attach.terms.run_id = "job";
    attach.terms.min_nodes = attach.terms.max_nodes = 1;
    attach.terms.version = "1";
    job_.Step(now_, SessionMessage{SessionId(agent), attach});
  }
  // It goes, and counts as lost.
  void Go(uint64_t agent) {
    job_.Step(now_, SessionEnded{SessionId(agent)});
    now_ = now_ + milliseconds(200);
    job_.Step(now_, SessionMessage{SessionId(1), Heartbeat{}});
    job_.Tick(now_);
  }
  absl::StatusCode Ask(uint64_t agent) {
    absl::StatusCode code = absl::StatusCode::kOk;
    RoundScope scope{"job", Agent(agent), outlet_.world};
    job_.GetKey(now_, CallId(1), scope, "key", Duration(0),
                [&](const absl::StatusOr<std::string>& value) { code = value.status().code(); });
    return code;
  }

  Outlet outlet_;
  Instant now_{std::chrono::hours(1)};
  HostedJob job_{"job", Options(), now_, &outlet_};
};

TEST_F(HostedJobTest, WhoIsBetweenTwoStreamsMayUseTheTableButNotAllWhoEverCame) {
  Attach(1);
  ASSERT_EQ(outlet_.world.round, RoundId(1));
  Attach(2);
  Go(2);
  EXPECT_EQ(Ask(1), absl::StatusCode::kNotFound) << "may ask; the key isn't set";
  EXPECT_EQ(Ask(2), absl::StatusCode::kNotFound);
  EXPECT_EQ(Ask(99), absl::StatusCode::kUnavailable) << "hasn't come";
  constexpr uint64_t kMany = 1 << 16;
  for (uint64_t agent = 100; agent < 100 + kMany; ++agent) {
    Attach(agent);
    Go(agent);
  }
  EXPECT_EQ(Ask(1), absl::StatusCode::kNotFound);
  EXPECT_EQ(Ask(2), absl::StatusCode::kUnavailable) << "went before so many others";
  EXPECT_EQ(Ask(99 + kMany), absl::StatusCode::kNotFound);
}

TEST_F(HostedJobTest, ACommitIsToldWhenItsRecordIsDurable) {
  outlet_.has_disk = true;
  Attach(1);
  EXPECT_EQ(outlet_.rounds_begun, 1);
  ASSERT_EQ(outlet_.kept.size(), 1U) << "of the round; nobody waits for that";
  EXPECT_EQ(outlet_.kept[0].second.world, outlet_.world);
  const Commit commit{5, "/c/5"};
  const auto report = [&](const AgentMessage& message) {
    job_.Step(now_, SessionMessage{SessionId(1), message});
  };
  report(CommitDone{outlet_.world, commit});
  ASSERT_EQ(outlet_.kept.size(), 2U);
  EXPECT_EQ(outlet_.kept[1].second.commit, commit);
  EXPECT_EQ(outlet_.kept[1].second.commit_round, RoundId(1));
  report(Heartbeat{});
  EXPECT_EQ(outlet_.Said(), "") << "nothing overtakes it";
  job_.Kept(outlet_.kept[0].first);
  EXPECT_EQ(outlet_.Said(), "") << "an earlier record tells nothing";
  job_.Kept(outlet_.kept[1].first);
  EXPECT_EQ(outlet_.Said(), "noted beat ");
  report(Heartbeat{});
  EXPECT_EQ(outlet_.Said(), "beat ");
}

TEST_F(HostedJobTest, AnEndIsToldWhenItsRecordIsDurable) {
  outlet_.has_disk = true;
  Attach(1);
  job_.Step(now_, SessionMessage{SessionId(1), NodeSucceeded{outlet_.world}});
  ASSERT_TRUE(outlet_.kept.back().second.verdict.has_value());
  EXPECT_EQ(outlet_.Said(), "");
  job_.Kept(outlet_.kept.back().first);
  EXPECT_EQ(outlet_.Said(), "ended ");
}

TEST_F(HostedJobTest, ADiskThatDoesNotAnswerHoldsNobodyUpForALease) {
  outlet_.has_disk = true;
  Attach(1);
  job_.Step(now_, SessionMessage{SessionId(1), CommitDone{outlet_.world, {5, "/c/5"}}});
  const Instant due = job_.NextWakeup();
  EXPECT_LE(due, now_ + Options().lease / 3);
  job_.Tick(due);
  EXPECT_EQ(outlet_.Said(), "noted ");
  EXPECT_NE(outlet_.log.find("--state-dir) does not answer"), std::string::npos) << outlet_.log;
  // Until it comes back nobody waits for it again.
  job_.Step(due, SessionMessage{SessionId(1), CommitDone{outlet_.world, {6, "/c/6"}}});
  EXPECT_EQ(outlet_.Said(), "noted ");
  job_.Kept(outlet_.kept.back().first);
  EXPECT_EQ(outlet_.Said(), "");
  EXPECT_NE(outlet_.log.find("answers again"), std::string::npos) << outlet_.log;
  job_.Step(due, SessionMessage{SessionId(1), CommitDone{outlet_.world, {7, "/c/7"}}});
  EXPECT_EQ(outlet_.Said(), "") << "as before";
}

TEST_F(HostedJobTest, WithoutADiskNothingIsHeldBack) {
  Attach(1);
  job_.Step(now_, SessionMessage{SessionId(1), CommitDone{outlet_.world, {5, "/c/5"}}});
  EXPECT_EQ(outlet_.Said(), "noted ");
}

TEST_F(HostedJobTest, AJobThatAnEarlierLifeSawEndIsDoneFromTheStart) {
  JobOptions options = Options();
  options.record.verdict.emplace().succeeded = true;
  HostedJob ended("job", options, now_, &outlet_);
  EXPECT_EQ(ended.done_since(), now_);
  EXPECT_EQ(job_.done_since(), std::nullopt);
}

}  // namespace
}  // namespace muster::rendezvous
