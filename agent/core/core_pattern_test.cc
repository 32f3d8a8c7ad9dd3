#include "agent/core/core_pattern.h"

#include "gtest/gtest.h"

namespace muster::agent {
namespace {

const DumpFacts kFacts{.pid = 4711,
                       .pid_is_global = true,
                       .uid = 1000,
                       .gid = 100,
                       .signal = 11,
                       .host_name = "node/7",
                       .folder = "/cwd[1]"};

std::string Glob(std::string_view pattern, bool uses_pid = false) {
  return FindDumpPlace(pattern, uses_pid, kFacts).glob;
}

TEST(FindDumpPlace, ExpandsWhatIsKnownAndLeavesTheRestOpen) {
  EXPECT_EQ(Glob("/cores/core.%p\n"), "/cores/core.4711");
  EXPECT_EQ(Glob("/cores/%e-%p-%u-%g-%s-%h-%t"), "/cores/*-4711-1000-100-11-node!7-*");
  EXPECT_EQ(Glob("/c/%P.%i.%I.%c.%d.%C.%E.%f"), "/c/4711.*.*.*.*.*.*.*");
  EXPECT_EQ(Glob("/c/100%%[x]*"), R"(/c/100%\[x\]\*)");
  // The kernel drops what it doesn't know, and a lone % at the end.
  EXPECT_EQ(Glob("/c/a%zb%"), "/c/ab");
}

TEST(FindDumpPlace, ARelativeNameIsInTheWorkersFolder) {
  EXPECT_EQ(Glob("core"), R"(/cwd\[1\]/core)");
}

TEST(FindDumpPlace, ThePidIsAppendedWhereItIsAskedFor) {
  EXPECT_EQ(Glob("/c/core", true), "/c/core.4711");
  EXPECT_EQ(Glob("/c/core.%p", true), "/c/core.4711");
  EXPECT_EQ(Glob("", true), R"(/cwd\[1\]/.4711)");
  EXPECT_EQ(Glob("", false), "");
  EXPECT_TRUE(FindDumpPlace("core", true, kFacts).names_pid);
  EXPECT_TRUE(FindDumpPlace("core.%p", false, kFacts).names_pid);
  EXPECT_FALSE(FindDumpPlace("core.%t", false, kFacts).names_pid);
}

TEST(FindDumpPlace, AnotherNamespacesPidIsUnknown) {
  DumpFacts inside = kFacts;
  inside.pid_is_global = false;
  DumpPlace place = FindDumpPlace("/c/core.%P", false, inside);
  EXPECT_EQ(place.glob, "/c/core.*");
  EXPECT_FALSE(place.names_pid);
}

TEST(FindDumpPlace, AProgramOrASocketMayGetIt) {
  DumpPlace piped = FindDumpPlace("|/usr/lib/systemd/systemd-coredump %P %u\n", true, kFacts);
  EXPECT_EQ(piped.receiver, "/usr/lib/systemd/systemd-coredump %P %u");
  EXPECT_EQ(piped.glob, "");
  EXPECT_EQ(FindDumpPlace("@/run/dumps.socket", false, kFacts).receiver, "@/run/dumps.socket");
}

}  // namespace
}  // namespace muster::agent
