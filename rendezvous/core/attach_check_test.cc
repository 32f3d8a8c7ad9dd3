#include "rendezvous/core/attach_check.h"

#include <functional>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace muster::rendezvous {
namespace {

const Opener kA{"a", "", {}};

Attach Good() {
  Attach attach;
  attach.incarnation.bytes[0] = 1;
  attach.node_name = "b";
  attach.terms.min_nodes = 2;
  attach.terms.max_nodes = 3;
  attach.terms.version = "1";
  attach.terms.program = "train.py --lr 1";
  return attach;
}

struct Case {
  std::function<void(Attach&)> change;
  std::string sentence;
};

TEST(AttachCheck, WhatIsMalformedIsNamed) {
  EXPECT_EQ(MalformedAttach(Good()), std::nullopt);
  const std::vector<Case> cases = {
      {[](Attach& a) { a.incarnation = {}; }, "node b came without an incarnation"},
      {[](Attach& a) { a.terms.min_nodes = 0; },
       "node b has --nnodes=0:3; give MIN:MAX with 1 <= MIN <= MAX <= 131072"},
      {[](Attach& a) { a.terms.max_nodes = 1; },
       "node b has --nnodes=2:1; give MIN:MAX with 1 <= MIN <= MAX <= 131072"},
      {[](Attach& a) { a.worker_count = 0; },
       "node b has --nproc-per-node=0; give a number from 1 to 4096"},
      {[](Attach& a) { a.terms.max_restarts = -1; },
       "node b has --max-restarts=-1; give 0 or a positive number"},
      {[](Attach& a) { a.terms.is_static = true; },
       "node b has no --node-rank; give each node of a static job its own, from 0 to 2"},
      {[](Attach& a) {
         a.terms.is_static = true;
         a.node_rank = 3;
       },
       "node b has --node-rank=3, but --nnodes=2:3 allows 0 to 2"},
      {[](Attach& a) { a.node_rank = -1; }, "node b has --node-rank=-1; give 0 to 131071"},
      {[](Attach& a) { a.running = RunningWorld{}; },
       "node b runs a round without a number or a world id"},
      {[](Attach& a) { a.highest_round = RoundId(kMaxRound + 1); },
       "node b speaks of round 1073741825, which no job reaches"},
  };
  for (const Case& c : cases) {
    Attach attach = Good();
    c.change(attach);
    EXPECT_EQ(MalformedAttach(attach), c.sentence);
  }
}

TEST(AttachCheck, ADisagreementNamesBothValuesAndWhatToDo) {
  const JobTerms job = Good().terms;
  EXPECT_EQ(Disagreement(job, kA, Good()), std::nullopt);
  const std::vector<Case> cases = {
      {[](Attach& a) { a.terms.version = "2"; },
       "node b has muster 2, but node a opened the job with 1; install the same version on every "
       "node"},
      {[](Attach& a) { a.terms.is_static = true; },
       "node b has the layout static (--node-rank), but node a opened the job with elastic "
       "(--rdzv-endpoint); start every node with the same layout"},
      {[](Attach& a) { a.terms.max_nodes = 2; },
       "node b has --nnodes 2, but node a opened the job with 2:3; give the same on every node"},
      {[](Attach& a) { a.terms.max_restarts = 5; },
       "node b has --max-restarts 5, but node a opened the job with 0; give the same on every "
       "node"},
      {[](Attach& a) { a.terms.max_restarts_per_hour = 4; },
       "node b has --max-restarts-per-hour 4, but node a opened the job with 0; give the same on "
       "every node"},
      {[](Attach& a) { a.terms.max_early_failures = 4; },
       "node b has --max-early-failures 4, but node a opened the job with 0; give the same on "
       "every "
       "node"},
      {[](Attach& a) { a.terms.max_stuck_restarts = 4; },
       "node b has --max-stuck-restarts 4, but node a opened the job with 0; give the same on "
       "every "
       "node"},
      {[](Attach& a) { a.terms.max_node_failures = 4; },
       "node b has --max-node-failures 4, but node a opened the job with 0; give the same on every "
       "node"},
      {[](Attach& a) { a.terms.min_uptime = std::chrono::seconds(9); },
       "node b has --min-uptime 9 s, but node a opened the job with 1 s; give the same on every "
       "node"},
      {[](Attach& a) { a.terms.scale_up = ScaleUp::kCheckpoint; },
       "node b has --scale-up checkpoint, but node a opened the job with auto; give the same on "
       "every node"},
      {[](Attach& a) { a.terms.program = "train.py --lr 2"; },
       "node b has the program \"train.py --lr 2\", but node a opened the job with \"train.py --lr "
       "1\"; give the same command on every node, another --rdzv-id for another job, or "
       "--allow-other-programs everywhere"},
      {[](Attach& a) { a.terms.join_timeout = std::chrono::milliseconds(1500); },
       "node b has join_timeout 1500 ms, but node a opened the job with 600 s; give the same "
       "--rdzv-conf on every node"},
      {[](Attach& a) { a.terms.last_call_timeout = std::chrono::seconds(1); },
       "node b has last_call_timeout 1 s, but node a opened the job with 30 s; give the same "
       "--rdzv-conf on every node"},
  };
  for (const Case& c : cases) {
    Attach attach = Good();
    c.change(attach);
    EXPECT_EQ(Disagreement(job, kA, attach), c.sentence);
  }
}

TEST(AttachCheck, AProgramThatOneSideDoesNotTellIsNotCompared) {
  JobTerms job = Good().terms;
  Attach attach = Good();
  attach.terms.program = "";
  EXPECT_EQ(Disagreement(job, kA, attach), std::nullopt);
  job.program = "";
  EXPECT_EQ(Disagreement(job, kA, Good()), std::nullopt);
}

TEST(AttachCheck, OfLongCommandsThePartThatDiffersIsShown) {
  const std::string same(300, 's');
  JobTerms job = Good().terms;
  job.program = same + " --seed=1 " + same;
  Attach attach = Good();
  attach.terms.program = same + " --seed=23 " + same;
  const std::string around(32, 's');
  EXPECT_EQ(Disagreement(job, kA, attach),
            "node b has the program \"..." + around + " --seed=23 " + std::string(77, 's') +
                "...\", but node a opened the job with \"..." + around + " --seed=1 " +
                std::string(78, 's') +
                "...\"; give the same command on every node, another --rdzv-id for another job, or "
                "--allow-other-programs everywhere");
}

TEST(AttachCheck, ACommandThatGoesOnWhereTheOtherEndsIsShownToItsEnd) {
  JobTerms job = Good().terms;
  job.program = std::string(200, 's');
  Attach attach = Good();
  attach.terms.program = job.program + " --more";
  const std::string sentence = Disagreement(job, kA, attach).value_or("");
  EXPECT_NE(sentence.find("s --more\", but"), std::string::npos) << sentence;
  EXPECT_NE(sentence.find(std::string(40, 's') + "\"; give"), std::string::npos) << sentence;
}

TEST(AttachCheck, LoopbackAndOtherAddressesDoNotGoTogether) {
  Attach attach = Good();
  attach.address = "10.0.0.2";
  EXPECT_EQ(
      AddressProblem({"a", "127.0.0.1", {}}, attach),
      "node b has the address 10.0.0.2, and node a opened the job with 127.0.0.1; other hosts "
      "can't reach a loopback address: give node a another one, by --local-addr or, among --hosts, "
      "by another name for that host");
  attach.address = "::1";
  EXPECT_EQ(
      AddressProblem({"a", "10.0.0.1", {}}, attach),
      "node b has the address ::1, and node a opened the job with 10.0.0.1; other hosts can't "
      "reach a loopback address: give node b another one, by --local-addr or, among --hosts, "
      "by another name for that host");
  EXPECT_EQ(AddressProblem({"a", "127.0.0.7", {}}, attach), std::nullopt);
  attach.address = "fd00::2";
  EXPECT_EQ(AddressProblem({"a", "10.0.0.1", {}}, attach), std::nullopt);
  // What a name stands for isn't known here.
  for (const char* name : {"host-2", "face", ""}) {
    attach.address = name;
    EXPECT_EQ(AddressProblem({"a", "127.0.0.1", {}}, attach), std::nullopt) << name;
  }
}

}  // namespace
}  // namespace muster::rendezvous
