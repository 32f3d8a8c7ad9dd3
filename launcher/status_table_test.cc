#include "launcher/status_table.h"

#include "gtest/gtest.h"

namespace muster::launcher {
namespace {

TEST(StatusTable, AlignsColumns) {
  EXPECT_EQ(Table({{"A", "B"}, {"long", "x"}}), "A     B\nlong  x\n");
  EXPECT_EQ(Table({}), "");
}

TEST(StatusTable, ObeysNoControlCharacterOfANameOrReason) {
  rendezvous::JobReport job;
  job.run_id = "j\x01\x1b[31m";
  job.state = "running";
  job.departed_host = "h\x1b]0;x\x07";
  job.nodes.resize(1);
  job.nodes.front().node_name = "n\r\x1b[2J";
  job.nodes.front().address = "a\x9b";
  job.nodes.front().leaves_because = "why\nnot";
  const std::string page = StatusPage({job});
  for (const char* shown : {"j\\x01\\x1b[31m  running", "nodes of j\\x01\\x1b[31m:\n",
                            "of node h\\x1b]0;x\\x07 have left j\\x01\\x1b[31m, but",
                            "  n\\x0d\\x1b[2J  a\\x9b ", "leaves: why\\x0anot\n"}) {
    EXPECT_NE(page.find(shown), std::string::npos) << shown << " in\n" << page;
  }
  EXPECT_EQ(page.find_first_of("\x01\x07\r\x1b\x9b"), std::string::npos);
}

TEST(StatusTable, ShowsJobsAndTheirNodes) {
  rendezvous::JobReport job;
  job.run_id = "job";
  job.state = "running";
  job.round = 3;
  job.attempt = 2;
  job.restarts_charged = 1;
  job.max_restarts = 3;
  job.committed_step = 400;
  rendezvous::NodeReport node;
  node.node_name = "n0";
  node.address = "10.0.0.1";
  node.group_rank = 0;
  node.attached = true;
  node.since_last_message = std::chrono::milliseconds(1260);
  node.hosts_rendezvous = true;
  node.leaves_because = "drained";
  rendezvous::NodeReport waiting;
  waiting.node_name = "n1";
  rendezvous::NodeReport flapping;
  flapping.node_name = "n2";
  flapping.attached = true;
  flapping.is_set_aside = true;
  flapping.set_aside_left = std::chrono::seconds(598);
  job.nodes = {node, waiting, flapping};

  EXPECT_EQ(StatusPage({job}),
            "JOB  STATE    ROUND  ATTEMPT  RESTARTS  NODES  COMMIT    RESULT\n"
            "job  running  3      2        1 of 3    3      step 400  -\n"
            "\n"
            "nodes of job:\n"
            "  NODE  ADDRESS   GROUP RANK  STREAM    LEASE AGE  NOTE\n"
            "  n0    10.0.0.1  0           attached  1.2 s      hosts the rendezvous; leaves: "
            "drained\n"
            "  n1              spare       away      0.0 s\n"
            "  n2              set aside   attached  0.0 s      lost too often "
            "(--max-node-failures): waits for a checkpoint, at most 598.0 s\n");
}

TEST(StatusTable, NamesTheHostWhoseWorkersHaveLeft) {
  rendezvous::JobReport job;
  job.run_id = "job";
  job.state = "running";
  job.departed_host = "n0";
  rendezvous::NodeReport node;
  node.node_name = "n1";
  job.nodes = {node};
  EXPECT_EQ(StatusPage({job}),
            "JOB  STATE    ROUND  ATTEMPT  RESTARTS  NODES  COMMIT  RESULT\n"
            "job  running  0      0        0 of 0    1      -       -\n"
            "\n"
            "the workers of node n0 have left job, but its muster process hosts the rendezvous and "
            "stays until the job ends\n"
            "\n"
            "nodes of job:\n"
            "  NODE  ADDRESS  GROUP RANK  STREAM  LEASE AGE\n"
            "  n1             spare       away    0.0 s\n");
}

TEST(StatusTable, TellsWhoWaitsFromSpares) {
  rendezvous::JobReport job;
  job.run_id = "job";
  job.nodes.resize(1);
  for (const char* state : {"gathering", "closing", "stopping", "recovering"}) {
    job.state = state;
    EXPECT_NE(StatusPage({job}).find("waits"), std::string::npos) << state;
    EXPECT_EQ(StatusPage({job}).find("spare"), std::string::npos) << state;
  }
}

TEST(StatusTable, SaysWhenThereIsNothing) { EXPECT_EQ(StatusPage({}), "no jobs\n"); }

}  // namespace
}  // namespace muster::launcher
