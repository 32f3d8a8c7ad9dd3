// Whole lives of jobs as traces: read these first to see how the rules work together.
#include <string>

#include "gtest/gtest.h"
#include "rendezvous/core/job_story.h"

namespace muster::rendezvous {
namespace {

TEST(JobStories, TwoNodesRunAndSucceed) {
  JobStory story({});
  story.Attach("a");
  story.Lapse(100);
  story.Attach("b");
  story.Lapse(1000);
  story.Succeed("b");
  story.Succeed("a");
  story.Break("a");
  story.Break("b");
  EXPECT_EQ(story.Trace(), R"(
     0 a> Attach
     0   a< Attached
     0   a< Notice: waiting for 1 more node (1 of 2 nodes is here)
   100 b> Attach
   100   b< Attached
   100   round 1 begins: 2 nodes, 4 workers
   100   a< Start round 1: node 0 of 2, ranks from 0 of 4, master a.net, attempt 0, charged 0
   100   b< Start round 1: node 1 of 2, ranks from 2 of 4, master a.net, attempt 0, charged 0
  1100 b> NodeSucceeded round 1
  1100   b< SuccessNoted round 1
  1100 a> NodeSucceeded round 1
  1100   a< SuccessNoted round 1
  1100   round 1 is over
  1100   a< JobEnded well
  1100   b< JobEnded well
  1100 a> stream ends
  1100 b> stream ends
)");
  EXPECT_TRUE(story.machine().IsDone());
}

TEST(JobStories, AWorkerFailureRestartsEveryNodeAndIsCharged) {
  JobStory story({});
  story.Attach("a");
  story.Attach("b");
  story.Lapse(1000);
  story.WorkerFails("b", 3, 1);
  story.Lapse(10);
  story.StopDone("b");
  story.Lapse(30);
  story.StopDone("a");
  EXPECT_EQ(story.Trace(), R"(
     0 a> Attach
     0   a< Attached
     0   a< Notice: waiting for 1 more node (1 of 2 nodes is here)
     0 b> Attach
     0   b< Attached
     0   round 1 begins: 2 nodes, 4 workers
     0   a< Start round 1: node 0 of 2, ranks from 0 of 4, master a.net, attempt 0, charged 0
     0   b< Start round 1: node 1 of 2, ranks from 2 of 4, master a.net, attempt 0, charged 0
  1000 b> WorkerFailed rank 3
  1000   a< Stop round 1 (worker failed, culprit 3): worker rank 3 (local rank 0) on node b exited
               with code 1
  1000   b< Stop round 1 (worker failed, culprit 3): worker rank 3 (local rank 0) on node b exited
               with code 1
  1010 b> StopDone round 1
  1040 a> StopDone round 1
  1040   round 1 is over
  1040   round 2 begins: 2 nodes, 4 workers
  1040   a< Start round 2: node 0 of 2, ranks from 0 of 4, master a.net, attempt 1, charged 1
  1040   b< Start round 2: node 1 of 2, ranks from 2 of 4, master a.net, attempt 1, charged 1
)");
}

TEST(JobStories, TheBudgetIsSpentAndTheEarliestFailureIsTheCause) {
  JobStory story({.max_restarts = 0});
  story.Attach("a");
  story.Attach("b");
  story.Lapse(1000);
  story.WorkerFails("b", 3, 1);
  story.WorkerFails("a", 0, 137, 50);
  story.StopDone("b");
  story.StopDone("a");
  story.Attach("c");
  EXPECT_EQ(story.Trace(), R"(
     0 a> Attach
     0   a< Attached
     0   a< Notice: waiting for 1 more node (1 of 2 nodes is here)
     0 b> Attach
     0   b< Attached
     0   round 1 begins: 2 nodes, 4 workers
     0   a< Start round 1: node 0 of 2, ranks from 0 of 4, master a.net, attempt 0, charged 0
     0   b< Start round 1: node 1 of 2, ranks from 2 of 4, master a.net, attempt 0, charged 0
  1000 b> WorkerFailed rank 3
  1000   a< Stop round 1 (worker failed, culprit 3): worker rank 3 (local rank 0) on node b exited
               with code 1
  1000   b< Stop round 1 (worker failed, culprit 3): worker rank 3 (local rank 0) on node b exited
               with code 1
  1000 a> WorkerFailed rank 0
  1000 b> StopDone round 1
  1000 a> StopDone round 1
  1000   round 1 is over
  1000   a< JobEnded code 137: job j failed: worker rank 0 (local rank 0) on node a exited with
               code 137; --max-restarts is 0, so it was not restarted + rank 3
  1000   b< JobEnded code 137: job j failed: worker rank 0 (local rank 0) on node a exited with
               code 137; --max-restarts is 0, so it was not restarted + rank 3
  1000 c> Attach
  1000   c< JobEnded code 137: job j failed: worker rank 0 (local rank 0) on node a exited with
               code 137; --max-restarts is 0, so it was not restarted + rank 3
)");
}

TEST(JobStories, AKilledAgentIsReplacedByASpareAtNoCost) {
  JobStory story({});
  story.Attach("a");
  story.Attach("b");
  story.Attach("c");
  story.Lapse(500);
  story.Break("b");
  story.Lapse(150);
  story.StopDone("a");
  EXPECT_EQ(story.Trace(), R"(
     0 a> Attach
     0   a< Attached
     0   a< Notice: waiting for 1 more node (1 of 2 nodes is here)
     0 b> Attach
     0   b< Attached
     0   round 1 begins: 2 nodes, 4 workers
     0   a< Start round 1: node 0 of 2, ranks from 0 of 4, master a.net, attempt 0, charged 0
     0   b< Start round 1: node 1 of 2, ranks from 2 of 4, master a.net, attempt 0, charged 0
     0 c> Attach
     0   c< Attached
     0   c< Notice: the job runs with 2 of at most 2 nodes; this one waits as a spare
   500 b> stream ends
   600   a< Stop round 1 (peer lost, culprit 2): lost node b: its stream ended and it did not come
               back within 100 ms
   650 a> StopDone round 1
   650   round 1 is over
   650   round 2 begins: 2 nodes, 4 workers
   650   a< Start round 2: node 0 of 2, ranks from 0 of 4, master a.net, attempt 1, charged 0
   650   c< Start round 2: node 1 of 2, ranks from 2 of 4, master a.net, attempt 1, charged 0
)");
}

TEST(JobStories, ALossWhileAFailureStopsTheRoundMakesItFree) {
  JobStory story({.min = 1, .max = 2});
  story.Attach("a");
  story.Attach("b");
  story.WorkerFails("a", 0, 1);
  story.StopDone("a");
  story.Silence("b");
  story.Lapse(3200);
  EXPECT_EQ(story.Trace(), R"(
     0 a> Attach
     0   a< Attached
     0   a< Notice: 1 of 1..2 nodes is here; waiting at most 5 s for more
     0 b> Attach
     0   b< Attached
     0   round 1 begins: 2 nodes, 4 workers
     0   a< Start round 1: node 0 of 2, ranks from 0 of 4, master a.net, attempt 0, charged 0
     0   b< Start round 1: node 1 of 2, ranks from 2 of 4, master a.net, attempt 0, charged 0
     0 a> WorkerFailed rank 0
     0   a< Stop round 1 (worker failed, culprit 0): worker rank 0 (local rank 0) on node a exited
               with code 1
     0   b< Stop round 1 (worker failed, culprit 0): worker rank 0 (local rank 0) on node a exited
               with code 1
     0 a> StopDone round 1
  3000   b< end of stream
  3000   round 1 is over
  3000   round 2 begins: 1 nodes, 2 workers
  3000   a< Start round 2: node 0 of 1, ranks from 0 of 2, master a.net, attempt 1, charged 0
)");
}

TEST(JobStories, AFrozenAgentComesBackAndIsToldThatItWasReplaced) {
  JobStory story({.min = 1, .max = 2});
  story.Attach("a");
  story.Attach("b");
  story.Silence("b");
  story.Lapse(3200);
  story.StopDone("a");
  story.Attach("b", {.is_running = true});
  story.Silence("b", false);
  story.Attach("b", {.life = 1});
  story.StopDone("a");
  EXPECT_EQ(story.Trace(), R"(
     0 a> Attach
     0   a< Attached
     0   a< Notice: 1 of 1..2 nodes is here; waiting at most 5 s for more
     0 b> Attach
     0   b< Attached
     0   round 1 begins: 2 nodes, 4 workers
     0   a< Start round 1: node 0 of 2, ranks from 0 of 4, master a.net, attempt 0, charged 0
     0   b< Start round 1: node 1 of 2, ranks from 2 of 4, master a.net, attempt 0, charged 0
  3000   b< end of stream
  3000   a< Stop round 1 (peer lost, culprit 2): lost node b: it was silent for 3000 ms
  3200 a> StopDone round 1
  3200   round 1 is over
  3200   round 2 begins: 1 nodes, 2 workers
  3200   a< Start round 2: node 0 of 1, ranks from 0 of 2, master a.net, attempt 1, charged 0
  3200 b> Attach running round 1
  3200   b< Refused superseded: job j: node b still ran an older world: round 1 (world 02000000)
               is over; the job is in round 2; it has to stop its workers and join anew
  3200   b< end of stream
  3200 b> Attach
  3200   b< Attached
  3200   a< Stop round 2 (membership, culprit -1): the world grows: 2 of at most 2 nodes are here
  3200 a> StopDone round 2
  3200   round 2 is over
  3200   round 3 begins: 2 nodes, 4 workers
  3200   a< Start round 3: node 0 of 2, ranks from 0 of 4, master a.net, attempt 2, charged 0
  3200   b< Start round 3: node 1 of 2, ranks from 2 of 4, master a.net, attempt 2, charged 0
)");
}

TEST(JobStories, ABrokenStreamThatIsMendedInTimeTouchesNoWorker) {
  JobStory story({});
  story.Attach("a");
  story.Attach("b");
  story.Break("b");
  story.Lapse(60);
  story.Attach("b", {.is_running = true});
  story.Lapse(5000);
  EXPECT_EQ(story.machine().state(), JobState::kRunning);
  EXPECT_EQ(story.Trace(), R"(
     0 a> Attach
     0   a< Attached
     0   a< Notice: waiting for 1 more node (1 of 2 nodes is here)
     0 b> Attach
     0   b< Attached
     0   round 1 begins: 2 nodes, 4 workers
     0   a< Start round 1: node 0 of 2, ranks from 0 of 4, master a.net, attempt 0, charged 0
     0   b< Start round 1: node 1 of 2, ranks from 2 of 4, master a.net, attempt 0, charged 0
     0 b> stream ends
    60 b> Attach running round 1
    60   b< Attached
)");
}

TEST(JobStories, AStartThatWentDownWithTheStreamIsSentAgain) {
  JobStory story({});
  story.Attach("a");
  story.Attach("b");
  story.Break("b");
  story.Trace();
  // It has seen no round.
  story.Attach("b", {.highest_round = 0});
  EXPECT_EQ(story.Trace(), R"(
     0 b> Attach
     0   b< Attached
     0   b< Start round 1: node 1 of 2, ranks from 2 of 4, master a.net, attempt 0, charged 0
)");
}

TEST(JobStories, ANodeThatComesLateMakesTheWorldGrow) {
  JobStory story({.min = 1, .max = 3, .last_call_ms = 1000});
  story.Attach("a");
  story.Lapse(400);
  story.Attach("b");
  story.Lapse(1000);
  story.Attach("c");
  story.StopDone("b");
  story.StopDone("a");
  EXPECT_EQ(story.Trace(), R"(
     0 a> Attach
     0   a< Attached
     0   a< Notice: 1 of 1..3 nodes is here; waiting at most 1 s for more
   400 b> Attach
   400   b< Attached
   400   b< Notice: 2 of 1..3 nodes are here; waiting at most 1 s for more
  1000   round 1 begins: 2 nodes, 4 workers
  1000   a< Start round 1: node 0 of 2, ranks from 0 of 4, master a.net, attempt 0, charged 0
  1000   b< Start round 1: node 1 of 2, ranks from 2 of 4, master a.net, attempt 0, charged 0
  1400 c> Attach
  1400   c< Attached
  1400   a< Stop round 1 (membership, culprit -1): the world grows: 3 of at most 3 nodes are here
  1400   b< Stop round 1 (membership, culprit -1): the world grows: 3 of at most 3 nodes are here
  1400 b> StopDone round 1
  1400 a> StopDone round 1
  1400   round 1 is over
  1400   round 2 begins: 3 nodes, 6 workers
  1400   a< Start round 2: node 0 of 3, ranks from 0 of 6, master a.net, attempt 1, charged 0
  1400   b< Start round 2: node 1 of 3, ranks from 2 of 6, master a.net, attempt 1, charged 0
  1400   c< Start round 2: node 2 of 3, ranks from 4 of 6, master a.net, attempt 1, charged 0
)");
}

TEST(JobStories, ARestartedRendezvousRebuildsTheJobFromItsAgents) {
  JobStory story({.startup_quiet_ms = 1000});
  story.Attach("a");
  story.Attach("b");
  story.Lapse(2000);
  story.RestartRendezvous();
  story.Lapse(50);
  story.Attach("b", {.is_running = true});
  story.Lapse(1500);
  story.Attach("c");
  story.Attach("a", {.is_running = true});
  story.Succeed("a");
  story.Succeed("b");
  EXPECT_EQ(story.Trace(), R"(
     0 a> Attach
     0   a< Attached
     0   a< Notice: waiting for 1 more node (1 of 2 nodes is here)
     0 b> Attach
     0   b< Attached
     0   b< Notice: 2 of 2 nodes are here; agents of an earlier rendezvous may still report
  1000   round 1 begins: 2 nodes, 4 workers
  1000   a< Start round 1: node 0 of 2, ranks from 0 of 4, master a.net, attempt 0, charged 0
  1000   b< Start round 1: node 1 of 2, ranks from 2 of 4, master a.net, attempt 0, charged 0
  2000 rendezvous restarts
  2050 b> Attach running round 1
  2050   round 1 begins: 2 nodes, 4 workers
  2050   b< Attached
  3550 c> Attach
  3550   c< Attached
  3550   c< Notice: the rendezvous was restarted; waiting for the 2 nodes of round 1 to come back
  3550 a> Attach running round 1
  3550   a< Attached
  3550   c< Notice: the job runs with 2 of at most 2 nodes; this one waits as a spare
  3550 a> NodeSucceeded round 1
  3550   a< SuccessNoted round 1
  3550   c< Notice: the first workers of round 1 have finished, so nobody is taken in any more;
               this node waits for the result
  3550 b> NodeSucceeded round 1
  3550   b< SuccessNoted round 1
  3550   round 1 is over
  3550   b< JobEnded well
  3550   c< JobEnded well
  3550   a< JobEnded well
)");
}

TEST(JobStories, AWorldThatNeverIsCompleteAgainIsStoppedAtTheDeadline) {
  JobStory story({.min = 1, .max = 2});
  story.Attach("a");
  story.Attach("b");
  story.RestartRendezvous();
  story.Attach("b", {.is_running = true});
  story.Lapse(60'100);
  story.StopDone("b");
  story.Attach("a", {.is_running = true});
  EXPECT_EQ(story.Trace(), R"(
     0 a> Attach
     0   a< Attached
     0   a< Notice: 1 of 1..2 nodes is here; waiting at most 5 s for more
     0 b> Attach
     0   b< Attached
     0   round 1 begins: 2 nodes, 4 workers
     0   a< Start round 1: node 0 of 2, ranks from 0 of 4, master a.net, attempt 0, charged 0
     0   b< Start round 1: node 1 of 2, ranks from 2 of 4, master a.net, attempt 0, charged 0
     0 rendezvous restarts
     0 b> Attach running round 1
     0   round 1 begins: 2 nodes, 4 workers
     0   b< Attached
 60000   b< Stop round 1 (peer lost, culprit -1): 1 of 2 nodes of round 1 did not come back within
               60 s of the rendezvous' restart
 60100 b> StopDone round 1
 60100   round 1 is over
 60100   round 2 begins: 1 nodes, 2 workers
 60100   b< Start round 2: node 0 of 1, ranks from 0 of 2, master b.net, attempt 1, charged 0
 60100 a> Attach running round 1
 60100   a< Refused superseded: job j: node a still ran an older world: round 1 (world 02000000)
               is over; the job is in round 2; it has to stop its workers and join anew
 60100   a< end of stream
)");
}

TEST(JobStories, BelowMinTheJobWaitsAndThenFailsWithAReason) {
  JobStory story({.join_timeout_ms = 10'000});
  story.Attach("a");
  story.Attach("b");
  story.Lapse(100);
  story.Break("a");
  story.Lapse(200);
  story.StopDone("b");
  story.Lapse(10'100);
  EXPECT_EQ(story.Trace(), R"(
     0 a> Attach
     0   a< Attached
     0   a< Notice: waiting for 1 more node (1 of 2 nodes is here)
     0 b> Attach
     0   b< Attached
     0   round 1 begins: 2 nodes, 4 workers
     0   a< Start round 1: node 0 of 2, ranks from 0 of 4, master a.net, attempt 0, charged 0
     0   b< Start round 1: node 1 of 2, ranks from 2 of 4, master a.net, attempt 0, charged 0
   100 a> stream ends
   200   b< Stop round 1 (peer lost, culprit 0): lost node a: its stream ended and it did not come
               back within 100 ms
   300 b> StopDone round 1
   300   round 1 is over
  1300   b< Notice: waiting for 1 more node (1 of 2 nodes is here)
 10300   b< JobEnded code 69: job j failed: 1 of 2 nodes is here (fewer nodes than needed for 10 s
               (join_timeout)); node a is missing; start at least 2, or lower MIN of --nnodes
)");
}

TEST(JobStories, ACheckpointIsGrantedCommittedAndResumedFrom) {
  JobStory story({});
  story.Attach("a");
  story.Attach("b");
  const Commit commit{500, "/c/step-500"};
  story.Send("b", ShardReport{story.world("b"), Rank(2), 2, commit});
  story.Send("b", ShardReport{story.world("b"), Rank(2), 2, commit});
  story.Send("a", ShardReport{story.world("a"), Rank(0), 2, commit});
  story.Send("a", CommitDone{story.world("a"), commit});
  story.WorkerFails("b", 2, 1);
  story.Send("a", ShardReport{story.world("a"), Rank(0), 1, {600, "/c/step-600"}});
  story.StopDone("a");
  story.StopDone("b");
  EXPECT_EQ(story.Trace(), R"(
     0 a> Attach
     0   a< Attached
     0   a< Notice: waiting for 1 more node (1 of 2 nodes is here)
     0 b> Attach
     0   b< Attached
     0   round 1 begins: 2 nodes, 4 workers
     0   a< Start round 1: node 0 of 2, ranks from 0 of 4, master a.net, attempt 0, charged 0
     0   b< Start round 1: node 1 of 2, ranks from 2 of 4, master a.net, attempt 0, charged 0
     0 b> Shard 500 of rank 2
     0 b> Shard 500 of rank 2
     0 a> Shard 500 of rank 0
     0   a< Granted 500
     0 a> CommitDone 500
     0   b< Noted 500
     0   a< Noted 500
     0 b> WorkerFailed rank 2
     0   a< Stop round 1 (worker failed, culprit 2): worker rank 2 (local rank 0) on node b exited
               with code 1
     0   b< Stop round 1 (worker failed, culprit 2): worker rank 2 (local rank 0) on node b exited
               with code 1
     0 a> Shard 600 of rank 0
     0   a< CommitRefused 600: round 1 is over; its checkpoints can't be committed
     0 a> StopDone round 1
     0 b> StopDone round 1
     0   round 1 is over
     0   round 2 begins: 2 nodes, 4 workers
     0   a< Start round 2: node 0 of 2, ranks from 0 of 4, master a.net, attempt 1, charged 1,
               resume 500
     0   b< Start round 2: node 1 of 2, ranks from 2 of 4, master a.net, attempt 1, charged 1,
               resume 500
)");
}

TEST(JobStories, TwoNodesWithOneNodeRank) {
  JobStory story({.is_static = true});
  story.Attach("a", {.node_rank = 1});
  story.Attach("b", {.node_rank = 1});
  story.Lapse(1100);
  story.Attach("c", {.node_rank = 0});
  // d comes for the rank of c, whose stream is broken: it takes the place.
  story.Break("c");
  story.Attach("d", {.node_rank = 0});
  story.StopDone("a");
  EXPECT_EQ(story.Trace(), R"(
     0 a> Attach node rank 1
     0   a< Attached
     0   a< Notice: waiting for 1 more node (1 of 2 nodes is here)
     0 b> Attach node rank 1
  1000   b< Refused disagrees: job j: nodes a and b both have --node-rank=1; give each node its
               own, from 0 to 1
  1000   b< end of stream
  1100 c> Attach node rank 0
  1100   c< Attached
  1100   round 1 begins: 2 nodes, 4 workers
  1100   c< Start round 1: node 0 of 2, ranks from 0 of 4, master c.net, attempt 0, charged 0
  1100   a< Start round 1: node 1 of 2, ranks from 2 of 4, master c.net, attempt 0, charged 0
  1100 c> stream ends
  1100 d> Attach node rank 0
  1100   a< Stop round 1 (peer lost, culprit 0): lost node c: node d came in its place
  1100   d< Attached
  1100 a> StopDone round 1
  1100   round 1 is over
  1100   round 2 begins: 2 nodes, 4 workers
  1100   d< Start round 2: node 0 of 2, ranks from 0 of 4, master d.net, attempt 1, charged 0
  1100   a< Start round 2: node 1 of 2, ranks from 2 of 4, master d.net, attempt 1, charged 0
)");
}

TEST(JobStories, ANodeThatLeavesBelowMinEndsTheJobAtOnce) {
  JobStory story({});
  story.Attach("a");
  story.Attach("b");
  story.Leave("b");
  story.StopDone("a");
  EXPECT_EQ(story.Trace(), R"(
     0 a> Attach
     0   a< Attached
     0   a< Notice: waiting for 1 more node (1 of 2 nodes is here)
     0 b> Attach
     0   b< Attached
     0   round 1 begins: 2 nodes, 4 workers
     0   a< Start round 1: node 0 of 2, ranks from 0 of 4, master a.net, attempt 0, charged 0
     0   b< Start round 1: node 1 of 2, ranks from 2 of 4, master a.net, attempt 0, charged 0
     0 b> Leave: stopped by SIGTERM
     0   b< end of stream
     0   a< Stop round 1 (membership, culprit -1): node b leaves: stopped by SIGTERM
     0 a> StopDone round 1
     0   round 1 is over
     0   a< JobEnded code 75: job j failed: 1 of 2 nodes is here (node b leaves: stopped by
               SIGTERM); run it again with at least 2
)");
}

TEST(JobStories, TheLossOfANodeThatHasFinishedCostsNothing) {
  JobStory story({});
  story.Attach("a");
  story.Attach("b");
  story.Succeed("a");
  story.Break("a");
  story.Lapse(200);
  story.Attach("c");
  story.Succeed("b");
  EXPECT_EQ(story.Trace(), R"(
     0 a> Attach
     0   a< Attached
     0   a< Notice: waiting for 1 more node (1 of 2 nodes is here)
     0 b> Attach
     0   b< Attached
     0   round 1 begins: 2 nodes, 4 workers
     0   a< Start round 1: node 0 of 2, ranks from 0 of 4, master a.net, attempt 0, charged 0
     0   b< Start round 1: node 1 of 2, ranks from 2 of 4, master a.net, attempt 0, charged 0
     0 a> NodeSucceeded round 1
     0   a< SuccessNoted round 1
     0 a> stream ends
   200 c> Attach
   200   c< Attached
   200   c< Notice: the first workers of round 1 have finished, so nobody is taken in any more;
               this node waits for the result
   200 b> NodeSucceeded round 1
   200   b< SuccessNoted round 1
   200   round 1 is over
   200   b< JobEnded well
   200   c< JobEnded well
)");
}

TEST(JobStories, TheHostIsStopped) {
  JobStory story({});
  story.Attach("a");
  story.Attach("b");
  story.Feed(HostStopping{"stopped by SIGINT", 130});
  story.Break("a");
  story.Break("b");
  EXPECT_EQ(story.Trace(), R"(
     0 a> Attach
     0   a< Attached
     0   a< Notice: waiting for 1 more node (1 of 2 nodes is here)
     0 b> Attach
     0   b< Attached
     0   round 1 begins: 2 nodes, 4 workers
     0   a< Start round 1: node 0 of 2, ranks from 0 of 4, master a.net, attempt 0, charged 0
     0   b< Start round 1: node 1 of 2, ranks from 2 of 4, master a.net, attempt 0, charged 0
     0 host stops
     0   a< Stop round 1 (job ends, culprit -1): stopped by SIGINT
     0   b< Stop round 1 (job ends, culprit -1): stopped by SIGINT
     0   round 1 is over
     0   a< JobEnded code 130: job j failed: stopped by SIGINT
     0   b< JobEnded code 130: job j failed: stopped by SIGINT
     0 a> stream ends
     0 b> stream ends
)");
  EXPECT_TRUE(story.machine().IsDone());
}

}  // namespace
}  // namespace muster::rendezvous
