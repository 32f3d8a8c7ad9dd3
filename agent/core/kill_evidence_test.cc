#include "agent/core/kill_evidence.h"

#include <csignal>

#include "gtest/gtest.h"

namespace muster::agent {
namespace {

constexpr uint64_t kLimit = 200 << 20;

KillFacts Killed(uint64_t before, uint64_t now) {
  return {.exit = {.signal = SIGKILL},
          .kills_before = before,
          .kills_now = now,
          .limit = kLimit,
          .peak = kLimit};
}

TEST(ExplainKill, ARisenCounterIsTheKernel) {
  KillEvidence found = ExplainKill(Killed(0, 1));
  EXPECT_TRUE(found.out_of_memory);
  EXPECT_TRUE(found.takes_a_kill);
  EXPECT_EQ(found.text,
            "the kernel killed it for want of memory: the cgroup's limit is 200.0 MiB, its peak "
            "200.0 MiB, oom_kill rose from 0 to 1");
}

TEST(ExplainKill, WithoutEvidenceNobodyTalksOfMemory) {
  KillFacts uncounted;
  uncounted.exit.signal = SIGKILL;
  uncounted.limit = kLimit;
  KillFacts elsewhere = Killed(3, 4);
  elsewhere.log = LogWord::kNotThis;
  for (const KillFacts& facts : {Killed(3, 3), uncounted, elsewhere}) {
    KillEvidence found = ExplainKill(facts);
    EXPECT_FALSE(found.out_of_memory);
    EXPECT_FALSE(found.takes_a_kill);
    EXPECT_EQ(found.text, "");
  }
}

TEST(ExplainKill, TheKernelsLogAloneIsEnough) {
  KillFacts facts;
  facts.exit.signal = SIGKILL;
  facts.log = LogWord::kOfMachine;
  KillEvidence found = ExplainKill(facts);
  EXPECT_TRUE(found.out_of_memory);
  EXPECT_FALSE(found.takes_a_kill);
  EXPECT_EQ(found.text,
            "the kernel killed it for want of memory: the whole machine had none left, the "
            "kernel's log names its pid");
}

TEST(ExplainKill, AKillIsToldOfOneWorkerOnly) {
  KillFacts second = Killed(0, 1);
  second.kills_told = 1;
  KillEvidence found = ExplainKill(second);
  EXPECT_FALSE(found.out_of_memory);
  EXPECT_EQ(found.text,
            "the kernel killed 1 process(es) of its cgroup for want of memory, and as many other "
            "workers ended before it: it may be of them, or the signal came from outside");
  // Two kills, two workers: both.
  second.kills_now = 2;
  EXPECT_TRUE(ExplainKill(second).out_of_memory);
}

TEST(ExplainKill, WhatElseWasKilledIsMentionedOfAFailure) {
  KillFacts facts = Killed(0, 1);
  facts.exit = {.code = 1};
  KillEvidence found = ExplainKill(facts);
  EXPECT_FALSE(found.out_of_memory);
  EXPECT_TRUE(found.takes_a_kill);
  EXPECT_EQ(found.text,
            "before it ended, the kernel killed a process of its cgroup for want of memory: the "
            "cgroup's limit is 200.0 MiB, its peak 200.0 MiB, oom_kill rose from 0 to 1");
  facts.exit.code = 137;
  EXPECT_TRUE(ExplainKill(facts).text.starts_with("what it ran was ended by SIGKILL, and "));
  facts.kills_now = 0;
  EXPECT_EQ(ExplainKill(facts).text, "");
}

TEST(ExplainKill, SuccessNeedsNoExplanation) {
  KillFacts facts = Killed(0, 1);
  facts.exit = {};
  EXPECT_EQ(ExplainKill(facts).text, "");
  EXPECT_FALSE(ExplainKill(facts).takes_a_kill);
}

TEST(BytesText, IsForPeople) {
  EXPECT_EQ(BytesText(512), "512 bytes");
  EXPECT_EQ(BytesText(209715200), "200.0 MiB");
  EXPECT_EQ(BytesText(uint64_t{3} << 29), "1.5 GiB");
}

}  // namespace
}  // namespace muster::agent
