#include "agent/core/kernel_log.h"

#include "gtest/gtest.h"

namespace muster::agent {
namespace {

TEST(ParseOomKill, FindsTheProcess) {
  EXPECT_EQ(ParseOomKill("3,3119,1241512136,-;Memory cgroup out of memory: Killed process 22747 "
                         "(python3) total-vm:221136kB, anon-rss:211188kB, UID:0\n"),
            (OomKill{.pid = 22747, .is_of_cgroup = true}));
  EXPECT_EQ(ParseOomKill("3,7,9,-;Out of memory: Killed process 31 (a) b) total-vm:1kB\n"),
            (OomKill{.pid = 31, .is_of_cgroup = false}));
}

TEST(ParseOomKill, IgnoresAllElse) {
  for (const char* record :
       {"", ";", "3,1,1,-;", "x,1,1,-;Out of memory: Killed process 31 (a)",
        "3,1,1,-;Out of memory: Killed process many (a)",
        "3,1,1,-;Out of memory: Killed process 31", "3,1,1,-;Out of memory: Killed process -1 (a)",
        "6,1,1,-;oom-kill:constraint=CONSTRAINT_MEMCG,task=python3,pid=22747,uid=0",
        "6,1,1,-;[  22747]     0 22747    55284    52797   python3",
        // A program's own words (facility 1, user).
        "12,1,1,-;Out of memory: Killed process 31 (a)"}) {
    EXPECT_FALSE(ParseOomKill(record)) << record;
  }
}

}  // namespace
}  // namespace muster::agent
