#include "launcher/scheduler_place.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "launcher/parse_run_options.h"

namespace muster::launcher {
namespace {

using testing::HasSubstr;
using Variables = std::map<std::string, std::string>;

GetEnv From(const Variables& variables) {
  return [&variables](const char* name) -> const char* {
    auto it = variables.find(name);
    return it == variables.end() ? nullptr : it->second.c_str();
  };
}

// What srun 22.05 sets on the second of three nodes.
Variables Srun() {
  return {{"SLURM_JOB_ID", "4711"},
          {"SLURM_STEP_ID", "2"},
          {"SLURM_STEP_NUM_NODES", "3"},
          {"SLURM_NODEID", "1"},
          {"SLURM_STEP_NODELIST", "n[7-9]"},
          {"SLURM_STEP_TASKS_PER_NODE", "1(x3)"},
          {"SLURM_PROCID", "1"},
          {"SLURM_NNODES", "4"}};
}

SchedulerPlace Found(const Variables& variables) {
  auto place = FindSchedulerPlace(From(variables));
  EXPECT_TRUE(place.ok()) << place.status().message();
  EXPECT_TRUE(place.ok() && place->has_value());
  return place.ok() && place->has_value() ? **place : SchedulerPlace();
}

bool FindsNothing(const Variables& variables) {
  auto place = FindSchedulerPlace(From(variables));
  return place.ok() && !place->has_value();
}

std::string ErrorOf(const Variables& variables) {
  auto place = FindSchedulerPlace(From(variables));
  return place.ok() ? "" : std::string(place.status().message());
}

RunOptions Parsed(const std::vector<std::string>& words) {
  auto options = ParseRunOptions(words, [](const char*) -> const char* { return nullptr; });
  EXPECT_TRUE(options.ok()) << options.status().message();
  return *options;
}

std::string WhyNot(const SchedulerPlace& place, const std::vector<std::string>& words) {
  RunOptions options = Parsed(words);
  auto used = UseSchedulerPlace(place, options);
  return used.ok() ? "" : std::string(used.status().message());
}

TEST(SchedulerPlace, IsReadFromAStepOfSlurm) {
  SchedulerPlace place = Found(Srun());
  EXPECT_EQ(place.scheduler, "Slurm");
  EXPECT_EQ(place.node_count, 3);
  EXPECT_EQ(place.node_rank, 1);
  EXPECT_EQ(place.copies_here, 1);
  EXPECT_EQ(place.first_host, "n7");
  EXPECT_EQ(place.run_id, "slurm-4711.2");
  EXPECT_GE(place.port, 16384);
  EXPECT_LT(place.port, 32768);
}

TEST(SchedulerPlace, AnotherStepHasAnotherIdAndPort) {
  Variables other = Srun();
  other["SLURM_STEP_ID"] = "3";
  EXPECT_NE(Found(other).run_id, Found(Srun()).run_id);
  EXPECT_NE(Found(other).port, Found(Srun()).port);
}

TEST(SchedulerPlace, CountsTheCopiesOnThisNode) {
  Variables variables = Srun();
  variables["SLURM_STEP_TASKS_PER_NODE"] = "1,4(x2)";
  EXPECT_EQ(Found(variables).copies_here, 4);
  variables["SLURM_NODEID"] = "0";
  EXPECT_EQ(Found(variables).copies_here, 1);
}

TEST(SchedulerPlace, ABatchScriptIsNoPlace) {
  Variables batch = {{"SLURM_JOB_ID", "4711"},
                     {"SLURM_NNODES", "3"},
                     {"SLURM_NODEID", "0"},
                     {"SLURM_NODELIST", "n[7-9]"}};
  EXPECT_TRUE(FindsNothing(batch));
  EXPECT_TRUE(FindsNothing({}));
  Variables one = Srun();
  one["SLURM_STEP_NUM_NODES"] = "1";
  EXPECT_TRUE(FindsNothing(one));
}

TEST(SchedulerPlace, IsReadFromMpi) {
  SchedulerPlace place = Found({{"OMPI_COMM_WORLD_SIZE", "4"},
                                {"OMPI_COMM_WORLD_RANK", "3"},
                                {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}});
  EXPECT_EQ(place.scheduler, "Open MPI");
  EXPECT_EQ(place.node_count, 4);
  EXPECT_EQ(place.node_rank, 3);
  EXPECT_EQ(place.copies_here, 2);
  EXPECT_EQ(Found({{"PMI_SIZE", "2"}, {"PMI_RANK", "1"}}).node_rank, 1);
}

TEST(SchedulerPlace, WithinSlurmMpirunsOwnVariablesCount) {
  // On the second of two nodes: the step is that of mpirun's daemons, without the first node.
  Variables variables = Srun();
  variables["SLURM_STEP_NUM_NODES"] = "1";
  variables["SLURM_NODEID"] = "0";
  variables["OMPI_COMM_WORLD_SIZE"] = "2";
  variables["OMPI_COMM_WORLD_RANK"] = "1";
  variables["OMPI_COMM_WORLD_LOCAL_SIZE"] = "1";
  EXPECT_EQ(Found(variables).scheduler, "Open MPI");
  EXPECT_EQ(Found(variables).node_count, 2);
  EXPECT_EQ(Found(variables).node_rank, 1);
}

TEST(SchedulerPlace, NonsenseIsNamed) {
  for (const auto& [name, value] :
       std::vector<std::pair<std::string, std::string>>{{"SLURM_STEP_NUM_NODES", "x"},
                                                        {"SLURM_NODEID", "-1"},
                                                        {"SLURM_NODEID", ""},
                                                        {"SLURM_STEP_NODELIST", "n[7-"},
                                                        {"SLURM_STEP_TASKS_PER_NODE", "1(x"},
                                                        {"SLURM_STEP_TASKS_PER_NODE", "1"}}) {
    Variables variables = Srun();
    variables[name] = value;
    EXPECT_THAT(ErrorOf(variables), HasSubstr(name)) << value;
  }
}

TEST(SchedulerPlace, FillsInWhatWasNotGiven) {
  RunOptions options = Parsed({"train.py"});
  auto said = UseSchedulerPlace(Found(Srun()), options);
  ASSERT_TRUE(said.ok());
  EXPECT_EQ(*said, "Slurm: node 1 of 3; they meet at n7");
  EXPECT_EQ(options.min_nodes, 3);
  EXPECT_EQ(options.max_nodes, 3);
  EXPECT_EQ(options.node_rank, 1);
  EXPECT_EQ(options.backend, Backend::kElastic);
  EXPECT_EQ(options.rdzv_endpoint, "n7:" + std::to_string(Found(Srun()).port));
  EXPECT_EQ(options.run_id, "slurm-4711.2");
  EXPECT_EQ(options.is_host, false);
}

TEST(SchedulerPlace, WhatWasGivenStays) {
  RunOptions options = Parsed({"--nnodes=2:3", "--rdzv-id=j", "--master-port=4000", "train.py"});
  ASSERT_TRUE(UseSchedulerPlace(Found(Srun()), options).ok());
  EXPECT_EQ(options.min_nodes, 2);
  EXPECT_EQ(options.run_id, "j");
  EXPECT_EQ(options.rdzv_endpoint, "n7:4000");

  options = Parsed({"--rdzv-endpoint=far:1", "--node-rank=2", "train.py"});
  ASSERT_TRUE(UseSchedulerPlace(Found(Srun()), options).ok());
  EXPECT_EQ(options.rdzv_endpoint, "far:1");
  EXPECT_EQ(options.node_rank, 2);
  EXPECT_EQ(options.max_nodes, 3);
  EXPECT_FALSE(options.is_host.has_value());

  options = Parsed({"--rdzv-backend=static", "train.py"});
  ASSERT_TRUE(UseSchedulerPlace(Found(Srun()), options).ok());
  EXPECT_EQ(options.master_addr, "n7");
  EXPECT_EQ(options.master_port, Found(Srun()).port);
  EXPECT_TRUE(options.rdzv_endpoint.empty());

  for (const char* own : {"--standalone", "--nnodes=1"}) {
    options = Parsed({own, "train.py"});
    auto said = UseSchedulerPlace(Found(Srun()), options);
    EXPECT_TRUE(said.ok() && said->empty()) << own;
    EXPECT_TRUE(options.rdzv_endpoint.empty());
  }
}

TEST(SchedulerPlace, SeveralCopiesOnANodeAreASlip) {
  Variables variables = Srun();
  variables["SLURM_STEP_TASKS_PER_NODE"] = "8(x3)";
  EXPECT_THAT(WhyNot(Found(variables), {"train.py"}),
              HasSubstr("Slurm has started 8 copies of muster on this node"));
  EXPECT_EQ(WhyNot(Found(variables), {"--nnodes=24", "--node-rank=9", "train.py"}), "");
  EXPECT_EQ(WhyNot(Found(variables), {"--standalone", "train.py"}), "");
}

TEST(SchedulerPlace, MpiMustBeToldWhereToMeet) {
  SchedulerPlace place = Found({{"PMI_SIZE", "2"}, {"PMI_RANK", "1"}});
  EXPECT_THAT(WhyNot(place, {"train.py"}), HasSubstr("give --rdzv-endpoint=HOST:PORT"));
  EXPECT_EQ(WhyNot(place, {"--rdzv-endpoint=a:1", "train.py"}), "");
  EXPECT_EQ(WhyNot(place, {"--master-addr=a", "train.py"}), "");
}

}  // namespace
}  // namespace muster::launcher
