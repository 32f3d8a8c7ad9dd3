// One job without a loop: the test feeds it and reads what it says.
#include "rendezvous/server/hosted_job.h"

#include <chrono>
#include <cstdint>
#include <cstring>
#include <string>
#include <variant>

#include "gtest/gtest.h"

namespace muster::rendezvous {
namespace {

using std::chrono::milliseconds;

class Outlet : public JobOutlet {
 public:
  void Send(SessionId, const RendezvousMessage& message) override {
    if (const auto* start = std::get_if<StartRound>(&message)) world = start->world;
  }
  void End(SessionId) override {}
  void Keep(const std::string&, const World&) override {}
  void Report(const std::string&, RoundId, const std::string&) override {}

  World world;
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
  EXPECT_EQ(Ask(99), absl::StatusCode::kAborted) << "never came";
  constexpr uint64_t kMany = 1 << 16;
  for (uint64_t agent = 100; agent < 100 + kMany; ++agent) {
    Attach(agent);
    Go(agent);
  }
  EXPECT_EQ(Ask(1), absl::StatusCode::kNotFound);
  EXPECT_EQ(Ask(2), absl::StatusCode::kAborted) << "went before so many others";
  EXPECT_EQ(Ask(99 + kMany), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace muster::rendezvous
