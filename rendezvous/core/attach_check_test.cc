#include "rendezvous/core/attach_check.h"

#include <functional>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace muster::rendezvous {
namespace {

Attach Good() {
  Attach attach;
  attach.incarnation.bytes[0] = 1;
  attach.node_name = "b";
  attach.terms.min_nodes = 2;
  attach.terms.max_nodes = 3;
  attach.terms.version = "1";
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
  EXPECT_EQ(Disagreement(job, "a", Good()), std::nullopt);
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
    EXPECT_EQ(Disagreement(job, "a", attach), c.sentence);
  }
}

}  // namespace
}  // namespace muster::rendezvous
