#include "launcher/launch_plan.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "launcher/parse_run_options.h"

namespace muster::launcher {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Words = std::vector<std::string>;

const MachineFacts kFacts = {.cpu_count = 6,
                             .gpu_count = 0,
                             .python_exec = "",
                             .omp_threads_are_set = true,
                             .fresh_run_id = "fresh"};

absl::StatusOr<LaunchPlan> TryPlan(Words words, const MachineFacts& facts = kFacts) {
  words.emplace_back("train.py");
  absl::StatusOr<RunOptions> options =
      ParseRunOptions(words, [](const char*) -> const char* { return nullptr; });
  EXPECT_TRUE(options.ok()) << options.status().message();
  return MakeLaunchPlan(options.value_or(RunOptions{}), facts);
}

LaunchPlan Plan(const Words& words, const MachineFacts& facts = kFacts) {
  absl::StatusOr<LaunchPlan> plan = TryPlan(words, facts);
  EXPECT_TRUE(plan.ok()) << plan.status().message();
  return plan.value_or(LaunchPlan{});
}

std::string ErrorOf(const Words& words) {
  absl::StatusOr<LaunchPlan> plan = TryPlan(words);
  EXPECT_EQ(plan.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(plan.status().message());
}

TEST(LaunchPlan, ThreadsAreAsTorchrunsUnlessSaidOtherwise) {
  MachineFacts unset = kFacts;
  unset.omp_threads_are_set = false;
  EXPECT_EQ(Plan({}, unset).omp_threads, 0);
  EXPECT_THAT(Plan({}, unset).warnings, IsEmpty());
  LaunchPlan two = Plan({"--nproc-per-node=2"}, unset);
  EXPECT_EQ(two.omp_threads, 1);
  EXPECT_THAT(two.warnings, ElementsAre(HasSubstr("Setting OMP_NUM_THREADS environment variable "
                                                  "for each process to be 1 in default")));
  EXPECT_EQ(Plan({"--nproc-per-node=2"}).omp_threads, 0);
  EXPECT_THAT(Plan({"--nproc-per-node=2"}).warnings, IsEmpty());
  // Asked for, it counts whatever the environment says.
  EXPECT_EQ(Plan({"--nproc-per-node=2", "--omp-threads=auto"}).omp_threads, 3);
  EXPECT_EQ(Plan({"--nproc-per-node=8", "--omp-threads=auto"}).omp_threads, 1);
  EXPECT_EQ(Plan({"--omp-threads=5"}).omp_threads, 5);
  EXPECT_THAT(Plan({"--nproc-per-node=8", "--omp-threads=auto"}, unset).warnings, IsEmpty());
}

TEST(LaunchPlan, AVirtualLocalRankHasAGpuOfItsOwn) {
  EXPECT_THAT(Plan({"--nproc-per-node=2"}).worker_gpus, IsEmpty());
  EXPECT_THAT(Plan({"--nproc-per-node=2", "--virtual-local-rank"}).worker_gpus,
              ElementsAre("0", "1"));
  MachineFacts facts = kFacts;
  facts.visible_gpus = "4, GPU-ab,6";
  EXPECT_THAT(Plan({"--nproc-per-node=2", "--virtual-local-rank"}, facts).worker_gpus,
              ElementsAre("4", "GPU-ab"));
  absl::StatusOr<LaunchPlan> plan = TryPlan({"--nproc-per-node=4", "--virtual-local-rank"}, facts);
  EXPECT_EQ(
      plan.status().message(),
      "--virtual-local-rank: CUDA_VISIBLE_DEVICES=4, GPU-ab,6 names fewer GPUs than there are "
      "workers (4); start fewer workers, or name more GPUs");
}

TEST(LaunchPlan, BindsWorkersToProcessors) {
  MachineFacts facts = kFacts;
  facts.topology.processors = {{0, {.core = 0}}, {1, {.core = 1}}};
  EXPECT_THAT(Plan({"--nproc-per-node=2", "--numa-binding=exclusive"}, facts).worker_cpus,
              ElementsAre(ElementsAre(0), ElementsAre(1)));
  EXPECT_THAT(Plan({"--nproc-per-node=2"}, facts).worker_cpus, IsEmpty());
}

TEST(LaunchPlan, SaysWhatOfTheEnvironmentIsIgnored) {
  RunOptions options;
  options.program = {"p"};
  options.ignored = {"PET_X=1 is ignored"};
  absl::StatusOr<LaunchPlan> plan = MakeLaunchPlan(options, kFacts);
  ASSERT_TRUE(plan.ok());
  EXPECT_THAT(plan->warnings, ElementsAre("PET_X=1 is ignored"));
}

TEST(LaunchPlan, SaysWhatHasNoEffect) {
  EXPECT_THAT(Plan({"--monitor-interval=5", "--start-method=fork"}).warnings,
              ElementsAre("without effect here, accepted for torchrun's sake: --start-method, "
                          "--monitor-interval"));
  EXPECT_THAT(Plan({"--local-ranks-filter=0,3"}).warnings,
              ElementsAre(HasSubstr("--local-ranks-filter names local rank 3")));
  EXPECT_THAT(Plan({"--duplicate-stderr-filters=x", "--tee=1"}).warnings,
              ElementsAre(HasSubstr("what --tee takes of stderr; add --tee=2")));
  EXPECT_THAT(Plan({"--duplicate-stderr-filters=x", "--tee=2"}).warnings, IsEmpty());
}

TEST(LaunchPlan, PlainSingleNodeIsStandalone) {
  for (const Words& words : {Words{}, Words{"--standalone"}, Words{"--rdzv-backend=static"},
                             Words{"--standalone", "--rdzv-id=x", "--rdzv-endpoint=h:1"}}) {
    LaunchPlan plan = Plan(words);
    EXPECT_EQ(plan.layout, Layout::kStandalone);
    EXPECT_EQ(plan.endpoint, (Endpoint{"127.0.0.1", 0}));
    EXPECT_EQ(plan.terms.run_id, "fresh");
    EXPECT_EQ(plan.hosting, Hosting::kAlways);
    EXPECT_FALSE(plan.joins_if_port_is_taken);
    EXPECT_EQ(plan.listen_host, "127.0.0.1");
    EXPECT_EQ(plan.address, "127.0.0.1");
    EXPECT_FALSE(plan.terms.is_static);
  }
}

TEST(LaunchPlan, AGivenPortIsUsedAndNeverShared) {
  LaunchPlan plan = Plan({"--master-port=2000"});
  EXPECT_EQ(plan.layout, Layout::kStatic);
  EXPECT_EQ(plan.endpoint, (Endpoint{"127.0.0.1", 2000}));
  EXPECT_FALSE(plan.joins_if_port_is_taken);
  EXPECT_EQ(plan.listen_host, "127.0.0.1");
  EXPECT_EQ(plan.terms.run_id, "none");
  EXPECT_TRUE(plan.shares_port_with_store);
}

TEST(LaunchPlan, TheStoreOfOneNodeIsReachedByTheNameThatWasGiven) {
  EXPECT_EQ(Plan({"--master-port=2000", "--master-addr=localhost"}).listen_host, "127.0.0.1");
  EXPECT_EQ(Plan({"--master-port=2000", "--master-addr=node7"}).listen_host, "");
  EXPECT_EQ(Plan({"--master-port=2000", "--local-addr=10.0.0.1"}).listen_host, "");
  LaunchPlan plan = Plan({"--master-port=2000", "--master-addr=node7", "--master-store=worker"});
  EXPECT_EQ(plan.listen_host, "127.0.0.1");
  EXPECT_FALSE(plan.shares_port_with_store);
}

TEST(LaunchPlan, StaticLayoutIsHostedByNodeRankZero) {
  LaunchPlan host = Plan({"--nnodes=2", "--master-addr=10.0.0.1", "--rdzv-id=job"});
  EXPECT_EQ(host.layout, Layout::kStatic);
  EXPECT_TRUE(host.terms.is_static);
  EXPECT_EQ(host.terms.run_id, "job");
  EXPECT_EQ(host.terms.min_nodes, 2);
  EXPECT_EQ(host.terms.max_nodes, 2);
  EXPECT_EQ(host.node_rank, 0);
  EXPECT_EQ(host.endpoint, (Endpoint{"10.0.0.1", 29500}));
  EXPECT_EQ(host.hosting, Hosting::kAlways);
  EXPECT_TRUE(host.joins_if_port_is_taken);
  EXPECT_EQ(host.listen_host, "");
  EXPECT_EQ(host.address, "10.0.0.1");

  EXPECT_EQ(Plan({"--nnodes=2", "--node-rank=1", "--master-addr=[::1]"}).endpoint.host, "::1");
  LaunchPlan guest = Plan({"--nnodes=2", "--node-rank=1", "--master-addr=10.0.0.1"});
  EXPECT_EQ(guest.hosting, Hosting::kNever);
  EXPECT_FALSE(guest.shares_port_with_store);
  EXPECT_EQ(guest.node_rank, 1);
  EXPECT_EQ(guest.address, "");
}

TEST(LaunchPlan, WarnsOfAMeetingPlaceThatOtherMachinesCannotReach) {
  EXPECT_THAT(Plan({"--nnodes=2"}).warnings, ElementsAre(HasSubstr("--master-addr isn't given")));
  EXPECT_THAT(Plan({"--nnodes=2", "--master-addr=127.0.0.1"}).warnings, IsEmpty());
  EXPECT_THAT(Plan({"--nnodes=2", "--node-rank=1", "--rdzv-endpoint=h"}).warnings, IsEmpty());
  EXPECT_THAT(Plan({"--master-port=2000"}).warnings, IsEmpty());
  EXPECT_THAT(Plan({}).warnings, IsEmpty());
}

TEST(LaunchPlan, StaticBackendTakesTheEndpoint) {
  LaunchPlan plan = Plan({"--nnodes=2", "--rdzv-backend=static", "--rdzv-endpoint=h:7"});
  EXPECT_EQ(plan.layout, Layout::kStatic);
  EXPECT_EQ(plan.endpoint, (Endpoint{"h", 7}));
  EXPECT_EQ(Plan({"--nnodes=2", "--node-rank=1", "--rdzv-endpoint=h"}).endpoint,
            (Endpoint{"h", 29500}));
}

TEST(LaunchPlan, ElasticLayoutIsHostedByAddress) {
  for (const Words& words :
       {Words{"--nnodes=1:4", "--rdzv-endpoint=h"}, Words{"--nnodes=2", "--rdzv-endpoint=h:29400"},
        Words{"--rdzv-backend=c10d", "--nnodes=2", "--node-rank=1", "--rdzv-endpoint=h"}}) {
    LaunchPlan plan = Plan(words);
    EXPECT_EQ(plan.layout, Layout::kElastic);
    EXPECT_EQ(plan.endpoint, (Endpoint{"h", 29400}));
    EXPECT_EQ(plan.hosting, Hosting::kByAddress);
    EXPECT_TRUE(plan.joins_if_port_is_taken);
    EXPECT_EQ(plan.listen_host, "h");
    EXPECT_EQ(plan.address, "");
  }
  EXPECT_EQ(Plan({"--rdzv-backend=c10d", "--nnodes=2"}).endpoint, (Endpoint{"localhost", 29400}));
}

TEST(LaunchPlan, ANodeRankIsHonouredInTheElasticLayoutToo) {
  EXPECT_EQ(Plan({"--nnodes=1:4", "--rdzv-endpoint=h"}).node_rank, std::nullopt);
  // It says nothing about who hosts, and may be that of a spare.
  LaunchPlan plan = Plan({"--nnodes=1:4", "--rdzv-endpoint=h", "--node-rank=9"});
  EXPECT_EQ(plan.node_rank, 9);
  EXPECT_EQ(plan.hosting, Hosting::kByAddress);
  EXPECT_FALSE(plan.terms.is_static);
}

TEST(LaunchPlan, TheTermsHoldWhatNodesMustAgreeOn) {
  const JobTerms terms =
      Plan({"--max-restarts=7", "--max-restarts-per-hour=2", "--min-uptime=1.5",
            "--max-early-failures=4", "--max-stuck-restarts=5", "--max-node-failures=6"})
          .terms;
  EXPECT_EQ(terms.max_restarts, 7);
  EXPECT_EQ(terms.max_restarts_per_hour, 2);
  EXPECT_EQ(terms.min_uptime, std::chrono::milliseconds(1500));
  EXPECT_EQ(terms.max_early_failures, 4);
  EXPECT_EQ(terms.max_stuck_restarts, 5);
  EXPECT_EQ(terms.max_node_failures, 6);
  EXPECT_EQ(terms.program, "train.py");
  EXPECT_EQ(Plan({"--allow-other-programs"}).terms.program, "");
}

TEST(LaunchPlan, ANodeThatStandsAloneHasALongerLease) {
  EXPECT_EQ(Plan({"--standalone"}).DefaultLease(), std::chrono::seconds(600));
  EXPECT_EQ(Plan({"--master-port=2000"}).DefaultLease(), std::chrono::seconds(600));
  EXPECT_EQ(Plan({"--nnodes=2", "--master-addr=10.0.0.1"}).DefaultLease(), std::chrono::seconds(3));
  EXPECT_EQ(Plan({"--nnodes=1", "--rdzv-endpoint=h"}).DefaultLease(), std::chrono::seconds(3))
      << "a spare may come";
}

TEST(LaunchPlan, IsHostDecidesWhateverTheAddressesSay) {
  EXPECT_EQ(Plan({"--nnodes=1:2", "--rdzv-endpoint=h", "--rdzv-conf=is_host=1"}).hosting,
            Hosting::kAlways);
  EXPECT_EQ(Plan({"--nnodes=1:2", "--rdzv-endpoint=h", "--rdzv-conf=is_host=0"}).hosting,
            Hosting::kNever);
}

TEST(LaunchPlan, PortZeroIsForOneNode) {
  for (const Words& words : {Words{"--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0"},
                             Words{"--rdzv-backend=c10d"}}) {
    LaunchPlan plan = Plan(words);
    EXPECT_EQ(plan.endpoint, (Endpoint{"localhost", 0}));
    EXPECT_EQ(plan.hosting, Hosting::kAlways);
    EXPECT_FALSE(plan.joins_if_port_is_taken);
  }
  EXPECT_THAT(ErrorOf({"--nnodes=2", "--rdzv-endpoint=localhost:0"}),
              HasSubstr("a port that all nodes know"));
}

TEST(LaunchPlan, LocalAddrIsAdvertised) {
  EXPECT_EQ(Plan({"--local-addr=10.1.1.1"}).address, "10.1.1.1");
  EXPECT_EQ(Plan({"--local-addr=10.1.1.1", "--nnodes=2"}).address, "10.1.1.1");
  EXPECT_EQ(Plan({"--local-addr=10.1.1.1", "--nnodes=1:2", "--rdzv-endpoint=h"}).address,
            "10.1.1.1");
}

TEST(LaunchPlan, CountsWorkers) {
  EXPECT_EQ(Plan({"--nproc-per-node=3"}).worker_count, 3);
  EXPECT_EQ(Plan({"--nproc-per-node=cpu"}).worker_count, 6);
  EXPECT_EQ(Plan({"--nproc-per-node=auto"}).worker_count, 6);
  MachineFacts with_gpus = kFacts;
  with_gpus.gpu_count = 2;
  EXPECT_EQ(Plan({"--nproc-per-node=auto"}, with_gpus).worker_count, 2);
  EXPECT_EQ(Plan({"--nproc-per-node=gpu"}, with_gpus).worker_count, 2);
  EXPECT_THAT(ErrorOf({"--nproc-per-node=gpu"}), HasSubstr("no GPU"));
}

TEST(LaunchPlan, RunsPythonUnlessTold) {
  EXPECT_THAT(Plan({}).argv, ElementsAre("python3", "-u", "train.py"));
  EXPECT_THAT(Plan({"-m"}).argv, ElementsAre("python3", "-u", "-m", "train.py"));
  EXPECT_THAT(Plan({"--no-python"}).argv, ElementsAre("train.py"));
  MachineFacts other_python = kFacts;
  other_python.python_exec = "/opt/python";
  EXPECT_THAT(Plan({}, other_python).argv, ElementsAre("/opt/python", "-u", "train.py"));
}

TEST(LaunchPlan, RefusesWhatDoesNotGoTogether) {
  EXPECT_THAT(ErrorOf({"--standalone", "--nnodes=2"}), HasSubstr("at least 2"));
  EXPECT_THAT(ErrorOf({"--rdzv-backend=static", "--nnodes=1:2"}), HasSubstr("elastic layout"));
  EXPECT_THAT(ErrorOf({"--nnodes=2", "--node-rank=2"}),
              HasSubstr("--node-rank=2 is out of range: with --nnodes=2 it is 0 to 1"));
  EXPECT_THAT(ErrorOf({"--nnodes=2", "--rdzv-endpoint=0.0.0.0"}), HasSubstr("0.0.0.0"));
}

TEST(LaunchPlan, SaysWhichChosenLocalRanksAreNotThere) {
  EXPECT_THAT(
      Plan({"--tee=5:1"}).warnings,
      ElementsAre("--tee names local rank 5 (\"5:1\"), but this node has local ranks 0 to 0; "
                  "nothing comes of it"));
  EXPECT_THAT(Plan({"--nproc-per-node=2", "--redirects=1:3,2:1", "--tee=0:3,4:2"}).warnings,
              ElementsAre(HasSubstr("--redirects names local rank 2"),
                          HasSubstr("--tee names local rank 4")));
  EXPECT_THAT(Plan({"--nproc-per-node=6", "--tee=0:3,5:1"}).warnings, IsEmpty());
}

}  // namespace
}  // namespace muster::launcher
