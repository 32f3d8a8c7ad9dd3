#include "launcher/status_table.h"

#include "gtest/gtest.h"

namespace muster::launcher {
namespace {

TEST(StatusTable, AlignsColumns) {
  EXPECT_EQ(Table({{"A", "B"}, {"long", "x"}}), "A     B\nlong  x\n");
  EXPECT_EQ(Table({}), "");
}

TEST(StatusTable, ShowsJobsAndTheirNodes) {
  proto::GetStatusReply reply;
  proto::JobStatus& job = *reply.add_jobs();
  job.set_run_id("job");
  job.set_state("running");
  job.mutable_world()->set_round(3);
  job.set_attempt(2);
  job.set_restarts_charged(1);
  job.set_max_restarts(3);
  job.mutable_last_commit()->set_step(400);
  proto::NodeStatus& node = *job.add_nodes();
  node.set_node_name("n0");
  node.set_address("10.0.0.1");
  node.set_group_rank(0);
  node.set_attached(true);
  node.set_since_last_message_ns(1'260'000'000);
  job.add_nodes()->set_node_name("n1");

  EXPECT_EQ(StatusPage(reply),
            "JOB  STATE    ROUND  ATTEMPT  RESTARTS  NODES  COMMIT    RESULT\n"
            "job  running  3      2        1 of 3    2      step 400  -\n"
            "\n"
            "nodes of job:\n"
            "  NODE  ADDRESS   GROUP RANK  STREAM    LAST HEARD\n"
            "  n0    10.0.0.1  0           attached  1.2 s\n"
            "  n1              spare       away      0.0 s\n");
}

TEST(StatusTable, SaysWhenThereIsNothing) {
  EXPECT_EQ(StatusPage(proto::GetStatusReply()), "no jobs\n");
}

}  // namespace
}  // namespace muster::launcher
