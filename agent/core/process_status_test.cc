#include "agent/core/process_status.h"

#include <csignal>

#include "gtest/gtest.h"

namespace muster::agent {
namespace {

TEST(ParseProcessStatus, FindsNameStateAndCaughtSignals) {
  ProcessStatus status = ParseProcessStatus(
      "Name:\tpython3\nUmask:\t0022\nState:\tT (stopped)\nSigIgn:\t0000000001001000\n"
      "SigCgt:\t0000000000000202\nCpus_allowed:\t3\n");
  EXPECT_EQ(status.name, "python3");
  EXPECT_TRUE(status.IsStopped());
  EXPECT_TRUE(status.Catches(SIGUSR1));
  EXPECT_TRUE(status.Catches(SIGINT));
  for (int signal : {0, -1, SIGUSR2, SIGTERM, 64, 65}) EXPECT_FALSE(status.Catches(signal));
}

TEST(ParseProcessStatus, OddTextIsUnknown) {
  for (const char* text : {"", "Name", "SigCgt:\tmany\nState:\t\n", "\n\n"}) {
    ProcessStatus status = ParseProcessStatus(text);
    EXPECT_EQ(status.state, '?') << text;
    EXPECT_FALSE(status.Catches(SIGUSR1)) << text;
  }
}

TEST(StateText, IsForPeople) {
  EXPECT_EQ(StateText('S', "futex_wait_queue"), "waits in the kernel at futex_wait_queue (S)");
  EXPECT_EQ(StateText('S', "0"), "waits in the kernel (S)");
  EXPECT_EQ(StateText('D', "nfs_wait"), "is stuck in the kernel at nfs_wait (D)");
  EXPECT_EQ(StateText('R', ""), "runs (R)");
  EXPECT_EQ(StateText('T', "do_signal_stop"), "is stopped by a signal (T)");
  EXPECT_EQ(StateText('t', ""), "is stopped by a debugger (t)");
  EXPECT_EQ(StateText('?', ""), "is in a state unknown to muster (?)");
}

}  // namespace
}  // namespace muster::agent
