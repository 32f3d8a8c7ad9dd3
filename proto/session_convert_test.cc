#include "proto/session_convert.h"

#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace muster {
namespace {

template <class Id>
Id Filled(uint8_t byte) {
  Id id;
  id.bytes.fill(byte);
  return id;
}

const World kWorld{RoundId(7), Filled<WorldId>(1)};
const Commit kCommit{1200, "/ckpt/step-1200.r7-\xff"};

WorkerFailure SomeFailure() {
  WorkerFailure failure;
  failure.rank = Rank(3);
  failure.local_rank = LocalRank(1);
  failure.node_name = "node-b";
  failure.pid = 4711;
  failure.exit = {1, 9, true};
  failure.wall_time_s = 1'700'000'000;
  failure.age = std::chrono::milliseconds(12);
  failure.failed_to_start = true;
  failure.error_file = "/tmp/error.json";
  failure.message = std::string("bad \xc3 byte\0and a zero", 21);
  failure.stderr_tail = "last line";
  failure.log_path = "/logs/attempt_0/3/stderr.log";
  failure.hung = true;
  failure.only_waited = true;
  failure.out_of_memory = true;
  failure.evidence = "the memory limit is 200 MiB";
  failure.core_file = "/cores/core.4711";
  failure.stacks_file = "/logs/attempt_0/3/stacks.txt";
  failure.last_step = 40;
  return failure;
}

RunningWorld SomeRunning() { return {kWorld, GroupRank(1), 3, Rank(4), 9, 2, kCommit, true, true}; }

Attach SomeAttach() {
  Attach attach;
  attach.incarnation = Filled<Incarnation>(2);
  attach.node_name = "node-a";
  attach.address = "10.0.0.1";
  attach.worker_count = 4;
  attach.node_rank = 0;
  attach.terms = {"job",
                  2,
                  3,
                  true,
                  5,
                  std::chrono::seconds(600),
                  std::chrono::seconds(30),
                  "0.1",
                  "train.py --lr=1",
                  4,
                  std::chrono::seconds(2),
                  6,
                  7,
                  8,
                  ScaleUp::kCheckpoint};
  attach.candidate_port = 65535;
  attach.running = SomeRunning();
  attach.highest_round = RoundId(9);
  attach.restarts_charged = 2;
  attach.last_commit = kCommit;
  attach.round_elsewhere = RoundId(8);
  attach.was_attached = true;
  attach.is_drained = true;
  attach.hosts_rendezvous = true;
  attach.facts = {"12.4", "550.54", "2.21.5", 8, 1'700'000'000'123, "rack7"};
  return attach;
}

StartRound SomeStart() {
  return {kWorld, Filled<RoundKey>(3), GroupRank(2), 3, Rank(8), 12, "10.0.0.1", 29400, 1, 1,
          kCommit};
}

// Every kind of message, with every field set and with every optional field absent.
std::vector<AgentMessage> AgentMessages() {
  Attach bare = SomeAttach();
  bare.node_rank.reset();
  bare.running.reset();
  bare.last_commit.reset();
  Attach half = SomeAttach();
  half.running->last_commit.reset();
  return {SomeAttach(),
          bare,
          half,
          Heartbeat{~uint64_t{0}},
          Heartbeat{1, 0},
          Heartbeat{2, 7, true},
          WorkerFailed{kWorld, SomeFailure()},
          NodeSucceeded{kWorld},
          StopDone{kWorld, 1234},
          StopDone{kWorld, 1234, 99},
          ShardReport{kWorld, Rank(0), 12, kCommit},
          CommitDone{kWorld, kCommit},
          Leave{"stopped by SIGINT"},
          Leave{"the guardian ended", true},
          WorkerSucceeded{kWorld},
          LeaveRequest{kWorld, "preempted"},
          CheckpointStep{kWorld, 40},
          CheckpointStepKnown{kWorld, 40}};
}

std::vector<RendezvousMessage> RendezvousMessages() {
  StartRound bare = SomeStart();
  bare.resume.reset();
  std::vector<RendezvousMessage> all = {
      Attached{std::chrono::seconds(3), std::chrono::seconds(60)},
      HeartbeatAck{5},
      Notice{"waiting for 1 more node"},
      Notice{"waits as a spare", RoundId(7)},
      SomeStart(),
      bare,
      SuccessNoted{kWorld},
      CommitGranted{kWorld, kCommit},
      CommitRefused{kWorld, kCommit, "round 6 is over"},
      CommitNoted{kWorld, kCommit},
      JobEnded{{false, "rank 3 failed", 137, {SomeFailure(), SomeFailure()}, 5}},
      JobEnded{{true, "", 0, {}, 0}},
      CheckpointWanted{kWorld},
      CheckpointAt{kWorld, 40},
      CheckpointAgreed{kWorld, 0},
      Drained{},
  };
  for (auto cause : {StopCause::kWorkerFailed, StopCause::kPeerLost, StopCause::kMembership,
                     StopCause::kJobEnding, StopCause::kSuperseded})
    all.push_back(StopRound{kWorld, cause, "node-b was lost", Rank(-1)});
  for (auto code : {RefusalCode::kDisagrees, RefusalCode::kSuperseded, RefusalCode::kNotAuthorised})
    all.push_back(Refused{code, "no"});
  return all;
}

// A field that is added to one of these structs doesn't compile here until it is counted: set it in
// the function above too, or the wire forgets it without a word.
TEST(SessionConvert, EveryFieldIsSetInTheMessagesAbove) {
  const Attach attach = SomeAttach();
  [[maybe_unused]] const auto& [a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15,
                                a16] = attach;
  const RunningWorld running = SomeRunning();
  [[maybe_unused]] const auto& [r1, r2, r3, r4, r5, r6, r7, r8, r9] = running;
  const StartRound start = SomeStart();
  [[maybe_unused]] const auto& [s1, s2, s3, s4, s5, s6, s7, s8, s9, s10, s11] = start;
  const WorkerFailure failure = SomeFailure();
  [[maybe_unused]] const auto& [f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15,
                                f16, f17, f18, f19] = failure;
  const Verdict verdict;
  [[maybe_unused]] const auto& [v1, v2, v3, v4, v5] = verdict;
  const JobTerms terms;
  [[maybe_unused]] const auto& [t1, t2, t3, t4, t5, t6, t7, t8, t9, t10, t11, t12, t13, t14, t15] =
      terms;
  const NodeFacts facts = attach.facts;
  [[maybe_unused]] const auto& [n1, n2, n3, n4, n5, n6] = facts;
  EXPECT_FALSE(attach == Attach{});
  EXPECT_FALSE(attach.last_commit == Attach{}.last_commit);
  EXPECT_FALSE(start.resume == StartRound{}.resume);
}

TEST(SessionConvert, EveryAgentMessageComesBackAsItWas) {
  for (const AgentMessage& message : AgentMessages()) {
    proto::AgentMessage parsed;
    ASSERT_TRUE(parsed.ParseFromString(ToProto(message).SerializeAsString()));
    absl::StatusOr<AgentMessage> back = FromProto(parsed);
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_TRUE(*back == message) << parsed.ShortDebugString();
  }
}

TEST(SessionConvert, EveryRendezvousMessageComesBackAsItWas) {
  for (const RendezvousMessage& message : RendezvousMessages()) {
    proto::RendezvousMessage parsed;
    ASSERT_TRUE(parsed.ParseFromString(ToProto(message).SerializeAsString()));
    absl::StatusOr<RendezvousMessage> back = FromProto(parsed);
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_TRUE(*back == message) << parsed.ShortDebugString();
  }
}

TEST(SessionConvert, ScopeComesBackAsItWas) {
  RoundScope scope{"job", Filled<Incarnation>(2), kWorld};
  absl::StatusOr<RoundScope> back = FromProto(ToProto(scope));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_TRUE(*back == scope);
  proto::RoundScope no_world = ToProto(scope);
  no_world.clear_world();
  EXPECT_EQ(FromProto(no_world).status().code(), absl::StatusCode::kInvalidArgument);
}

// What is done to a good message, and the word that the refusal must contain.
struct Mistake {
  const char* names;
  void (*make)(proto::AgentMessage*);
};

TEST(SessionConvert, MistakesOfAgentsAreNamed) {
  const std::vector<Mistake> mistakes = {
      {"no known kind", [](auto* m) { m->Clear(); }},
      {"incarnation", [](auto* m) { m->mutable_attach()->set_incarnation("short"); }},
      {"incarnation is missing", [](auto* m) { m->mutable_attach()->clear_incarnation(); }},
      {"terms is missing", [](auto* m) { m->mutable_attach()->clear_terms(); }},
      {"run_id is empty", [](auto* m) { m->mutable_attach()->mutable_terms()->clear_run_id(); }},
      {"run_id is longer",
       [](auto* m) { m->mutable_attach()->mutable_terms()->set_run_id(std::string(257, 'x')); }},
      {"min_nodes", [](auto* m) { m->mutable_attach()->mutable_terms()->set_min_nodes(0); }},
      {"max_nodes", [](auto* m) { m->mutable_attach()->mutable_terms()->set_max_nodes(1); }},
      {"max_restarts", [](auto* m) { m->mutable_attach()->mutable_terms()->set_max_restarts(-1); }},
      {"join_timeout",
       [](auto* m) { m->mutable_attach()->mutable_terms()->set_join_timeout_ns(-1); }},
      {"last_call",
       [](auto* m) { m->mutable_attach()->mutable_terms()->set_last_call_timeout_ns(INT64_MAX); }},
      {"worker_count", [](auto* m) { m->mutable_attach()->set_worker_count(0); }},
      {"node_rank", [](auto* m) { m->mutable_attach()->set_node_rank(-1); }},
      {"candidate_port", [](auto* m) { m->mutable_attach()->set_candidate_port(65536); }},
      {"highest_round", [](auto* m) { m->mutable_attach()->set_highest_round(~0ull); }},
      {"group_rank", [](auto* m) { m->mutable_attach()->mutable_running()->set_group_rank(3); }},
      {"first_rank", [](auto* m) { m->mutable_attach()->mutable_running()->set_first_rank(-2); }},
      {"names no world",
       [](auto* m) {
         m->mutable_attach()->mutable_running()->mutable_world();
         m->mutable_attach()->mutable_running()->mutable_world()->Clear();
       }},
      {"world is missing", [](auto* m) { m->mutable_stop_done(); }},
      {"failure is missing",
       [](auto* m) { *m->mutable_worker_failed()->mutable_world() = ToProto(kWorld); }},
      {"exit is missing",
       [](auto* m) {
         *m = ToProto(AgentMessage(WorkerFailed{kWorld, SomeFailure()}));
         m->mutable_worker_failed()->mutable_failure()->clear_exit();
       }},
      {"stderr_tail",
       [](auto* m) {
         *m = ToProto(AgentMessage(WorkerFailed{kWorld, SomeFailure()}));
         m->mutable_worker_failed()->mutable_failure()->set_stderr_tail(std::string(4097, 'x'));
       }},
      {"scale_up",
       [](auto* m) {
         m->mutable_attach()->mutable_terms()->set_scale_up(
             static_cast<proto::JobTerms::ScaleUp>(9));
       }},
      {"max_early_failures",
       [](auto* m) { m->mutable_attach()->mutable_terms()->set_max_early_failures(-1); }},
      {"gpu_count", [](auto* m) { m->mutable_attach()->mutable_facts()->set_gpu_count(-1); }},
      {"steps_done", [](auto* m) { m->mutable_heartbeat()->set_steps_done(-1); }},
      {"step is negative",
       [](auto* m) {
         *m = ToProto(AgentMessage(CheckpointStep{kWorld, 1}));
         m->mutable_checkpoint_step()->set_step(-1);
       }},
      {"commit is missing",
       [](auto* m) { *m->mutable_commit_done()->mutable_world() = ToProto(kWorld); }},
      {"step is negative",
       [](auto* m) {
         *m = ToProto(AgentMessage(CommitDone{kWorld, kCommit}));
         m->mutable_commit_done()->mutable_commit()->set_step(-1);
       }},
      {"shard_count",
       [](auto* m) {
         *m = ToProto(AgentMessage(ShardReport{kWorld, Rank(0), 1, kCommit}));
         m->mutable_shard_report()->set_shard_count(-4);
       }},
  };
  for (const Mistake& mistake : mistakes) {
    proto::AgentMessage message = ToProto(AgentMessage(SomeAttach()));
    mistake.make(&message);
    absl::Status status = FromProto(message).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << mistake.names;
    EXPECT_NE(status.message().find(mistake.names), std::string::npos) << status;
  }
}

TEST(SessionConvert, MistakesOfTheRendezvousAreNamed) {
  auto expect = [](const proto::RendezvousMessage& message, const char* names) {
    absl::Status status = FromProto(message).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << names;
    EXPECT_NE(status.message().find(names), std::string::npos) << status;
  };
  proto::RendezvousMessage message;
  expect(message, "no known kind");
  message.mutable_attached();
  expect(message, "lease_ns");
  message.mutable_refused();
  expect(message, "refused.code");
  message = ToProto(RendezvousMessage(StopRound{kWorld, StopCause::kPeerLost, "", Rank(0)}));
  message.mutable_stop_round()->set_cause(static_cast<proto::StopRound::Cause>(99));
  expect(message, "cause");
  message = ToProto(RendezvousMessage(SomeStart()));
  message.mutable_start_round()->set_key("x");
  expect(message, "key");
  message = ToProto(RendezvousMessage(SomeStart()));
  message.mutable_start_round()->set_world_size(8);
  expect(message, "first_rank");
  message.mutable_job_ended();
  expect(message, "verdict is missing");
  for (int i = 0; i < 65; ++i)
    message.mutable_job_ended()->mutable_verdict()->add_failures()->mutable_exit();
  expect(message, "too many failures");
}

TEST(SessionConvert, FreeTextIsCutToItsBoundByTheSender) {
  WorkerFailure failure = SomeFailure();
  failure.message = std::string(100'000, 'm');
  failure.stderr_tail = std::string(10'000, 's') + "the end";
  Verdict verdict{false, std::string(100'000, 'r'), 1, std::vector(100, failure), 0};
  absl::StatusOr<RendezvousMessage> back = FromProto(ToProto(RendezvousMessage(JobEnded{verdict})));
  ASSERT_TRUE(back.ok()) << back.status();
  const Verdict& seen = std::get<JobEnded>(*back).verdict;
  EXPECT_EQ(seen.reason.size(), kMaxText);
  ASSERT_EQ(seen.failures.size(), kMaxFailures);
  EXPECT_EQ(seen.failures[0].message.size(), kMaxText);
  EXPECT_EQ(seen.failures[0].stderr_tail.size(), kMaxStderrTail);
  EXPECT_TRUE(seen.failures[0].stderr_tail.ends_with("the end"));
}

// Flips, cuts and inserts bytes of good messages: whatever parses is either refused or good enough
// to be turned back and forth again.
TEST(SessionConvert, MutatedBytesNeverCrash) {
  std::mt19937 random(20260101);
  int accepted = 0, refused = 0;
  auto mutate = [&](std::string bytes) {
    for (uint32_t n = random() % 4 + 1; n > 0; --n) {
      size_t at = bytes.empty() ? 0 : random() % bytes.size();
      switch (random() % 4) {
        case 0:
          bytes.resize(at);
          break;
        case 1:
          bytes.insert(at, 1, static_cast<char>(random()));
          break;
        default:
          if (!bytes.empty()) bytes[at] = static_cast<char>(random());
      }
    }
    return bytes;
  };
  auto check = [&](auto proto_message, const auto& message) {
    if (!proto_message.ParseFromString(mutate(ToProto(message).SerializeAsString()))) return;
    auto read = FromProto(proto_message);
    if (!read.ok()) {
      EXPECT_EQ(read.status().code(), absl::StatusCode::kInvalidArgument);
      ++refused;
      return;
    }
    auto again = FromProto(ToProto(*read));
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_TRUE(*again == *read);
    ++accepted;
  };
  for (int i = 0; i < 1000; ++i) {
    for (const AgentMessage& message : AgentMessages()) check(proto::AgentMessage(), message);
    for (const RendezvousMessage& message : RendezvousMessages())
      check(proto::RendezvousMessage(), message);
  }
  // The test means something only if both happen often.
  EXPECT_GT(accepted, 1000);
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace muster
