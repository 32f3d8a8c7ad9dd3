#include "agent/core/worker_environment.h"

#include <algorithm>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace muster::agent {
namespace {

StartRound Place() {
  StartRound place;
  place.world.round = RoundId(4);
  place.world.id.bytes.fill(0xab);
  place.group_rank = GroupRank(1);
  place.group_world_size = 3;
  place.first_rank = Rank(2);
  place.world_size = 6;
  place.master_address = "10.0.0.1";
  place.master_port = 4711;
  place.attempt = 3;
  place.restarts_charged = 2;
  return place;
}

WorkerSurroundings Surroundings(std::vector<std::string> inherited = {}) {
  WorkerSurroundings s;
  s.run_id = "job 7";
  s.role = "trainer";
  s.worker_count = 2;
  s.max_restarts = 5;
  s.incarnation.bytes.fill(0x11);
  s.agent_socket = "muster-x";
  s.stop_signals = "SIGTERM,SIGINT";
  s.inherited = std::move(inherited);
  return s;
}

bool Has(const std::vector<std::string>& environment, const std::string& entry) {
  return std::find(environment.begin(), environment.end(), entry) != environment.end();
}

int64_t CountOf(const std::vector<std::string>& environment, const std::string& name) {
  return std::count_if(environment.begin(), environment.end(),
                       [&](const std::string& e) { return e.starts_with(name + "="); });
}

TEST(WorkerEnvironment, SaysWhoServesTheStore) {
  WorkerSurroundings surroundings = Surroundings({"TORCHELASTIC_USE_AGENT_STORE=False"});
  surroundings.has_agent_store = true;
  std::vector<std::string> environment = WorkerEnvironment(Place(), LocalRank(0), "", surroundings);
  EXPECT_TRUE(Has(environment, "TORCHELASTIC_USE_AGENT_STORE=True"));
  EXPECT_EQ(CountOf(environment, "TORCHELASTIC_USE_AGENT_STORE"), 1);
}

TEST(WorkerEnvironment, HoldsTorchrunsVariablesAndOurs) {
  std::vector<std::string> environment =
      WorkerEnvironment(Place(), LocalRank(1), "/tmp/e.json", Surroundings());
  std::vector<std::string> expected = {
      "LOCAL_RANK=1",
      "RANK=3",
      "GROUP_RANK=1",
      "ROLE_RANK=3",
      "WORLD_SIZE=6",
      "GROUP_WORLD_SIZE=3",
      "ROLE_WORLD_SIZE=6",
      "MASTER_ADDR=10.0.0.1",
      "MASTER_PORT=4711",
      "TORCHELASTIC_RESTART_COUNT=3",
      "TORCHELASTIC_ERROR_FILE=/tmp/e.json",
      "MUSTER_WORKER_ID=11111111111111111111111111111111/4/1",
      "MUSTER_ROUND=4",
      "MUSTER_WORLD_ID=abababababababababababababababab",
      "MUSTER_RESTARTS_CHARGED=2",
      "ROLE_NAME=trainer",
      "LOCAL_WORLD_SIZE=2",
      "TORCHELASTIC_MAX_RESTARTS=5",
      "TORCHELASTIC_RUN_ID=job 7",
      "TORCHELASTIC_SIGNALS_TO_HANDLE=SIGTERM,SIGINT",
      "TORCHELASTIC_USE_AGENT_STORE=False",
      "MUSTER_AGENT_SOCKET=muster-x",
      "TORCH_NCCL_ASYNC_ERROR_HANDLING=1",
  };
  EXPECT_EQ(environment, expected);
}

TEST(WorkerEnvironment, KeepsWhatIsInheritedByteForByte) {
  std::vector<std::string> odd = {"A=1",        "EMPTY=", "no assignment", "B=x=y=z",
                                  "C=\xff\n\t", "=weird", "RANKING=2"};
  std::vector<std::string> environment =
      WorkerEnvironment(Place(), LocalRank(0), "", Surroundings(odd));
  ASSERT_GE(environment.size(), odd.size());
  EXPECT_TRUE(std::equal(odd.begin(), odd.end(), environment.begin()));
}

TEST(WorkerEnvironment, ReplacesWhatAnOuterLauncherLeft) {
  std::vector<std::string> environment =
      WorkerEnvironment(Place(), LocalRank(0), "",
                        Surroundings({"RANK=77", "RANK=78", "TORCHELASTIC_RUN_ID=outer",
                                      "MUSTER_RESUME_STEP=5", "MUSTER_RESUME_DIR=/old"}));
  EXPECT_EQ(CountOf(environment, "RANK"), 1);
  EXPECT_TRUE(Has(environment, "RANK=2"));
  EXPECT_TRUE(Has(environment, "TORCHELASTIC_RUN_ID=job 7"));
  EXPECT_EQ(CountOf(environment, "MUSTER_RESUME_STEP"), 0);
  EXPECT_EQ(CountOf(environment, "MUSTER_RESUME_DIR"), 0);
}

TEST(WorkerEnvironment, SetsThreadsWhereItIsTold) {
  std::vector<std::string> given =
      WorkerEnvironment(Place(), LocalRank(0), "", Surroundings({"OMP_NUM_THREADS=8"}));
  EXPECT_EQ(CountOf(given, "OMP_NUM_THREADS"), 1);
  EXPECT_TRUE(Has(given, "OMP_NUM_THREADS=8"));
  WorkerSurroundings s = Surroundings({"OMP_NUM_THREADS=8"});
  s.omp_threads = 3;
  given = WorkerEnvironment(Place(), LocalRank(0), "", s);
  EXPECT_EQ(CountOf(given, "OMP_NUM_THREADS"), 1);
  EXPECT_TRUE(Has(given, "OMP_NUM_THREADS=3"));
}

TEST(WorkerEnvironment, AVirtualLocalRankIsDeviceZeroOfTheOwnGpu) {
  WorkerSurroundings s = Surroundings({"CUDA_VISIBLE_DEVICES=4,6"});
  EXPECT_TRUE(Has(WorkerEnvironment(Place(), LocalRank(1), "", s), "CUDA_VISIBLE_DEVICES=4,6"));
  s.gpus = {"4", "6"};
  std::vector<std::string> given = WorkerEnvironment(Place(), LocalRank(1), "", s);
  EXPECT_TRUE(Has(given, "LOCAL_RANK=0"));
  EXPECT_TRUE(Has(given, "RANK=3"));
  EXPECT_TRUE(Has(given, "CUDA_VISIBLE_DEVICES=6"));
  EXPECT_EQ(CountOf(given, "CUDA_VISIBLE_DEVICES"), 1);
  // Its folder and its name for the agent are its own all the same.
  EXPECT_TRUE(Has(given, "MUSTER_WORKER_ID=11111111111111111111111111111111/4/1"));
}

TEST(WorkerEnvironment, KeepsTheUsersChoiceOfErrorHandling) {
  std::vector<std::string> given = WorkerEnvironment(
      Place(), LocalRank(0), "", Surroundings({"TORCH_NCCL_ASYNC_ERROR_HANDLING=0"}));
  EXPECT_TRUE(Has(given, "TORCH_NCCL_ASYNC_ERROR_HANDLING=0"));
  EXPECT_EQ(CountOf(given, "TORCH_NCCL_ASYNC_ERROR_HANDLING"), 1);
}

TEST(WorkerEnvironment, TellsTheWidthOfTheTerminalThatShowsTheOutput) {
  WorkerSurroundings s = Surroundings({"MUSTER_CONSOLE_COLUMNS=999"});
  std::vector<std::string> without = WorkerEnvironment(Place(), LocalRank(0), "", s);
  EXPECT_FALSE(Has(without, "MUSTER_CONSOLE_COLUMNS=999"));
  s.console_columns = 120;
  EXPECT_TRUE(Has(WorkerEnvironment(Place(), LocalRank(0), "", s), "MUSTER_CONSOLE_COLUMNS=120"));
}

TEST(WorkerEnvironment, NamesTheSignalForStacksOnlyWhereItIsWanted) {
  WorkerSurroundings s = Surroundings({"MUSTER_STACK_SIGNAL=12"});
  EXPECT_EQ(CountOf(WorkerEnvironment(Place(), LocalRank(0), "", s), "MUSTER_STACK_SIGNAL"), 0);
  s.stack_signal = 10;
  EXPECT_TRUE(Has(WorkerEnvironment(Place(), LocalRank(0), "", s), "MUSTER_STACK_SIGNAL=10"));
}

TEST(WorkerEnvironment, NamesTheCheckpointToResumeFrom) {
  StartRound place = Place();
  place.resume = Commit{.step = 400, .directory = "/c/step-400"};
  std::vector<std::string> environment = WorkerEnvironment(place, LocalRank(0), "", Surroundings());
  EXPECT_TRUE(Has(environment, "MUSTER_RESUME_STEP=400"));
  EXPECT_TRUE(Has(environment, "MUSTER_RESUME_DIR=/c/step-400"));
}

TEST(WorkerEnvironment, WhatAllHaveInCommonIsPartOfEach) {
  WorkerSurroundings surroundings =
      Surroundings({"PATH=/bin", "RANK=outer", "MASTER_PORT=1", "ROLE_NAME=outer"});
  surroundings.stack_signal = 10;
  surroundings.omp_threads = 1;
  surroundings.gpus = {"4", "6"};
  std::vector<std::string> common = CommonEnvironment(surroundings);
  StartRound other = Place();
  other.world.round = RoundId(5);
  other.first_rank = Rank(0);
  for (const auto& worker : {WorkerEnvironment(Place(), LocalRank(0), "/a", surroundings),
                             WorkerEnvironment(other, LocalRank(1), "/b", surroundings)}) {
    for (const std::string& entry : common) EXPECT_TRUE(Has(worker, entry)) << entry;
  }
  EXPECT_TRUE(Has(common, "PATH=/bin"));
  EXPECT_TRUE(Has(common, "OMP_NUM_THREADS=1"));
  EXPECT_TRUE(Has(common, "LOCAL_WORLD_SIZE=2"));
  for (const char* name : {"RANK", "MASTER_PORT", "TORCHELASTIC_RESTART_COUNT", "MUSTER_WORKER_ID",
                           "TORCHELASTIC_ERROR_FILE"}) {
    EXPECT_EQ(CountOf(common, name), 0) << name;
  }
}

}  // namespace
}  // namespace muster::agent
