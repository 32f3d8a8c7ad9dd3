#include "launcher/ssh/ssh_plan.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "launcher/parse_run_options.h"

namespace muster::launcher {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;
using Words = std::vector<std::string>;

const SshFacts kFacts{.host_name = "here",
                      .executable = "/opt/mu ster",
                      .folder = "/home/me",
                      .environment = {"PATH=/bin", "HOME=/home/me", "PET_MAX_RESTARTS=1",
                                      "PET_HOSTS=x", "PET_SSH_COMMAND=y", "MUSTER_A=1",
                                      "MUSTER_WORKER_ID=1/2/3", "LOGLEVEL=INFO", "DATA=d=e"},
                      .fresh_id = "1f"};

struct Made {
  RunOptions options;
  SshPlan plan;
  std::string problem;

  Words WordsFor(size_t place) const {
    return PlanForHost(options, kFacts, plan, place, 4711).words;
  }
};

Made Make(const Words& words, const std::map<std::string, std::string>& variables = {}) {
  Made made;
  auto options = ParseRunOptions(words, [&](const char* name) -> const char* {
    auto it = variables.find(name);
    return it == variables.end() ? nullptr : it->second.c_str();
  });
  EXPECT_TRUE(options.ok()) << options.status().message();
  if (!options.ok()) return made;
  made.options = *options;
  auto plan = MakeSshPlan(made.options, made.options.ssh.hosts, kFacts);
  if (plan.ok()) {
    made.plan = *plan;
  } else {
    made.problem = std::string(plan.status().message());
  }
  return made;
}

TEST(SshPlan, EachHostGetsItsPlaceAndItsSlots) {
  Made made = Make({"-H", "a,bob@b:4", "--nproc-per-node=2", "--max-restarts=1", "p.py", "-v"});
  EXPECT_THAT(made.WordsFor(0),
              ElementsAre("--max-restarts=1", "--nproc-per-node=2", "--nnodes=2", "--node-rank=0",
                          "--rdzv-id=1f", "--rdzv-backend=c10d", "--rdzv-endpoint=a:4711",
                          "--rdzv-conf=is_host=1,is_new=1", "--", "p.py", "-v"));
  EXPECT_THAT(made.WordsFor(1),
              ElementsAre("--max-restarts=1", "--nproc-per-node=4", "--nnodes=2", "--node-rank=1",
                          "--rdzv-id=1f", "--rdzv-backend=c10d", "--rdzv-endpoint=a:4711",
                          "--rdzv-conf=is_host=0", "--", "p.py", "-v"));
  EXPECT_EQ(made.plan.min_hosts, 2);
}

TEST(SshPlan, StartsMusterThereByAnAbsolutePathInQuotes) {
  Made made = Make({"-H", "a", "--ssh-command=ssh -p 2222 -i 'my key'", "p"});
  EXPECT_THAT(made.plan.hosts[0].command,
              ElementsAre("ssh", "-p", "2222", "-i", "my key", "-T", "-o", "BatchMode=yes", "-o",
                          "ConnectTimeout=30", "-o", "ServerAliveInterval=15", "a",
                          "'/opt/mu ster' remote"));
  made = Make({"-H", "a", "--remote-muster=/it's", "p"});
  EXPECT_EQ(made.plan.hosts[0].command.back(), "'/it'\\''s' remote");
  EXPECT_THAT(Make({"-H", "a", "--ssh-command=ssh 'x", "p"}).problem, HasSubstr("--ssh-command"));
}

TEST(SshPlan, ThisHostNeedsNoSshAndIsCalledByItsName) {
  Made made = Make({"-H", "localhost,b", "p"});
  EXPECT_TRUE(made.plan.hosts[0].is_local);
  EXPECT_THAT(made.plan.hosts[0].command, ElementsAre("/opt/mu ster", "remote"));
  EXPECT_FALSE(made.plan.hosts[1].is_local);
  EXPECT_THAT(made.WordsFor(1), Contains("--rdzv-endpoint=here:4711"));
  EXPECT_TRUE(Make({"-H", "here", "p"}).plan.hosts[0].is_local);
  EXPECT_FALSE(Make({"-H", "bob@here", "p"}).plan.hosts[0].is_local);
  EXPECT_FALSE(Make({"-H", "127.0.0.11", "p"}).plan.hosts[0].is_local);
}

TEST(SshPlan, OneHostIsAJobOfItsOwn) {
  EXPECT_THAT(Make({"-H", "a:2", "p"}).WordsFor(0),
              ElementsAre("--nproc-per-node=2", "--nnodes=1", "--rdzv-id=1f", "--", "p"));
  EXPECT_THAT(Make({"-H", "a:2", "--master-port=5", "p"}).WordsFor(0), Contains("--master-port=5"));
}

TEST(SshPlan, TheUsersWordsAboutTheMeetingPlaceCount) {
  Words words =
      Make({"-H", "a,b", "--master-port=5", "--rdzv-id=j", "--rdzv-conf=lease=5", "p"}).WordsFor(1);
  EXPECT_THAT(words, Contains("--rdzv-endpoint=a:5"));
  EXPECT_THAT(words, Contains("--rdzv-id=j"));
  EXPECT_THAT(words, Contains("--rdzv-conf=lease=5,is_host=0"));

  words = Make({"-H", "a,b", "--rdzv-backend=static", "--master-addr=x", "p"}).WordsFor(1);
  EXPECT_THAT(words, Contains("--master-addr=x"));
  EXPECT_THAT(words, Contains("--master-port=4711"));
  EXPECT_THAT(words, Not(Contains(StartsWith("--rdzv-endpoint"))));

  words = Make({"-H", "a,b", "--rdzv-endpoint=r:1", "p"}).WordsFor(1);
  EXPECT_THAT(words, Contains("--rdzv-endpoint=r:1"));
  EXPECT_THAT(words, Contains("--node-rank=1"));
  EXPECT_THAT(words, Not(Contains(HasSubstr("is_host"))));
}

TEST(SshPlan, ElasticJobsSayHowManyHostsTheyNeed) {
  Made made = Make({"-H", "a,b,c", "--nnodes=2:3", "p"});
  EXPECT_EQ(made.plan.min_hosts, 2);
  EXPECT_THAT(made.WordsFor(2), Contains("--nnodes=2:3"));
  EXPECT_THAT(Make({"-H", "a", "--nnodes=2", "p"}).problem,
              HasSubstr("at least 2 nodes, but there are 1 hosts"));
}

TEST(SshPlan, NpFillsTheHostsInOrder) {
  Made made = Make({"-H", "a:2,b:2,c:2", "-np", "3", "p"});
  ASSERT_EQ(made.plan.hosts.size(), 2U);
  EXPECT_EQ(made.plan.hosts[0].workers, "2");
  EXPECT_EQ(made.plan.hosts[1].workers, "1");
  EXPECT_THAT(Make({"-H", "a", "-np", "3", "p"}).problem, HasSubstr("-np 3"));
  EXPECT_THAT(Make({"-H", "a", "-np", "3", "--nproc-per-node=gpu", "p"}).problem,
              HasSubstr("give numbers"));
  EXPECT_EQ(Make({"-H", "a", "p"}, {{"PET_NPROC_PER_NODE", "gpu"}}).plan.hosts[0].workers, "gpu");
}

TEST(SshPlan, PassesOnWhatMusterReadsAndWhatIsAskedFor) {
  Made made = Make({"-H", "a", "-x", "DATA", "-x", "NEW=a b", "-x", "EMPTY=", "p"});
  EXPECT_THAT(made.plan.environment, ElementsAre("PATH=/bin", "PET_MAX_RESTARTS=1", "MUSTER_A=1",
                                                 "LOGLEVEL=INFO", "DATA=d=e", "NEW=a b", "EMPTY="));
  EXPECT_THAT(made.plan.warnings, IsEmpty());
  made = Make({"-H", "a", "-x", "NONE", "p"});
  EXPECT_THAT(made.plan.warnings, ElementsAre(HasSubstr("-x NONE: there is no such variable")));
  EXPECT_THAT(Make({"-H", "a", "-x", "=1", "p"}).problem, HasSubstr("NAME=VALUE"));
  for (const char* bad : {"DATA,LOGLEVEL", "DATA,LOGLEVEL=1", "D*", "DATA LOGLEVEL"}) {
    EXPECT_THAT(Make({"-H", "a", "-x", bad, "p"}).problem,
                testing::AllOf(HasSubstr(bad), HasSubstr("-x A -x B=1")));
  }
  EXPECT_EQ(Make({"-H", "a", "-x", "LIST=a,b *", "p"}).plan.environment.back(), "LIST=a,b *");
  EXPECT_THAT(Make({"-H", "a", "-x", "PET_HOSTS=b", "p"}).problem, HasSubstr("\"PET_HOSTS\""));
}

TEST(SshPlan, TheFolderIsThisOneUnlessAnotherIsNamed) {
  EXPECT_EQ(Make({"-H", "a", "p"}).plan.folder, "/home/me");
  EXPECT_EQ(Make({"-H", "a", "--wdir=/data", "p"}).plan.folder, "/data");
  EXPECT_EQ(Make({"-H", "a", "-wd", "sub", "p"}).plan.folder, "/home/me/sub");
}

}  // namespace
}  // namespace muster::launcher
