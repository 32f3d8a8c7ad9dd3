#include "launcher/parse_run_options.h"

#include <csignal>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::launcher {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using Words = std::vector<std::string>;
using Variables = std::map<std::string, std::string>;

GetEnv Environment(const Variables& variables) {
  return [&variables](const char* name) -> const char* {
    auto it = variables.find(name);
    return it == variables.end() ? nullptr : it->second.c_str();
  };
}

RunOptions Parse(const Words& words, const Variables& variables = {}) {
  absl::StatusOr<RunOptions> options = ParseRunOptions(words, Environment(variables));
  EXPECT_TRUE(options.ok()) << options.status().message();
  return options.value_or(RunOptions{});
}

std::string ErrorOf(const Words& words, const Variables& variables = {}) {
  absl::StatusOr<RunOptions> options = ParseRunOptions(words, Environment(variables));
  EXPECT_EQ(options.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(options.status().message());
}

TEST(RunOptions, DefaultsAreTorchruns) {
  RunOptions options = Parse({"train.py", "--lr", "1"});
  EXPECT_FALSE(options.standalone);
  EXPECT_EQ(options.min_nodes, 1);
  EXPECT_EQ(options.max_nodes, 1);
  EXPECT_EQ(options.workers, WorkerCount{});
  EXPECT_EQ(options.node_rank, std::nullopt);
  EXPECT_EQ(options.master_addr, "127.0.0.1");
  EXPECT_EQ(options.master_port, std::nullopt);
  EXPECT_EQ(options.master_store, StoreChoice::kAgent);
  EXPECT_EQ(options.backend, std::nullopt);
  EXPECT_EQ(options.max_restarts, 0);
  EXPECT_EQ(options.join_timeout, seconds(600));
  EXPECT_EQ(options.last_call_timeout, seconds(30));
  EXPECT_EQ(options.shutdown_timeout, seconds(30));
  EXPECT_EQ(options.role, "default");
  EXPECT_EQ(options.log_dir, "");
  EXPECT_EQ(options.tee.Of(0), 0);
  EXPECT_THAT(options.program, ElementsAre("train.py", "--lr", "1"));
}

TEST(RunOptions, TakesEveryFlag) {
  RunOptions options =
      Parse({"--standalone",
             "--nnodes=2:4",
             "--nproc-per-node=auto",
             "--node-rank=3",
             "--master-addr=h",
             "--master-port=1234",
             "--master-store=worker",
             "--rdzv-backend=c10d",
             "--rdzv-endpoint=h:1",
             "--rdzv-id=job",
             "--rdzv-conf=join_timeout=5, last_call_timeout=0.5,lease=2,is_host=0,is_new=1",
             "--local-addr=10.0.0.1",
             "--role=trainer",
             "-m",
             "--log-dir=d e",
             "-r",
             "0:1,2:3",
             "-t",
             "3",
             "--shutdown-timeout=1.5",
             "--lost-peer-grace=2",
             "--hang-timeout=300",
             "--stack-signal=USR2",
             "--result-file=r.json",
             "--reconnect-timeout=7",
             "--lost-contact=go-on",
             "--monitor-interval=0.1",
             "--start-method=fork",
             "--max-restarts=3",
             "--prefix=never",
             "pkg.train"});
  EXPECT_TRUE(options.standalone && options.is_module);
  EXPECT_EQ(options.min_nodes, 2);
  EXPECT_EQ(options.max_nodes, 4);
  EXPECT_EQ(options.workers.kind, WorkerCount::Kind::kAuto);
  EXPECT_EQ(options.node_rank, 3);
  EXPECT_EQ(options.master_addr, "h");
  EXPECT_EQ(options.master_port, 1234);
  EXPECT_EQ(options.master_store, StoreChoice::kWorker);
  EXPECT_EQ(options.backend, Backend::kElastic);
  EXPECT_EQ(options.rdzv_endpoint, "h:1");
  EXPECT_EQ(options.run_id, "job");
  EXPECT_EQ(options.join_timeout, seconds(5));
  EXPECT_EQ(options.last_call_timeout, milliseconds(500));
  EXPECT_EQ(options.lease, Duration(seconds(2)));
  EXPECT_EQ(options.is_host, false);
  EXPECT_TRUE(options.is_new);
  EXPECT_EQ(options.local_addr, "10.0.0.1");
  EXPECT_EQ(options.role, "trainer");
  EXPECT_EQ(options.log_dir, "d e");
  EXPECT_EQ(options.redirects.Of(0), 1);
  EXPECT_EQ(options.redirects.Of(1), 0);
  EXPECT_EQ(options.redirects.Of(2), 3);
  EXPECT_EQ(options.tee.Of(7), 3);
  EXPECT_EQ(options.shutdown_timeout, milliseconds(1500));
  EXPECT_EQ(options.lost_peer_grace, seconds(2));
  EXPECT_EQ(options.hang_timeout, seconds(300));
  EXPECT_EQ(options.stack_signal, SIGUSR2);
  EXPECT_EQ(options.result_file, "r.json");
  EXPECT_EQ(options.reconnect_timeout, seconds(7));
  EXPECT_EQ(options.lost_contact, agent::LostContact::kGoOn);
  EXPECT_EQ(options.max_restarts, 3);
  EXPECT_EQ(options.prefix, PrefixChoice::kNever);
}

TEST(RunOptions, TakesWhatIsSaidOfWorkers) {
  RunOptions options = Parse({"p"});
  EXPECT_EQ(options.threads, ThreadChoice{});
  EXPECT_EQ(options.numa_binding, NumaBinding::kNone);
  EXPECT_EQ(options.input, agent::InputChoice{});
  options = Parse({"--omp-threads=4", "--numa-binding=core-complex", "--virtual-local-rank",
                   "--stdin=3", "--run-path", "--no-python", "p"});
  EXPECT_EQ(options.threads, (ThreadChoice{ThreadChoice::Kind::kNumber, 4}));
  EXPECT_EQ(options.numa_binding, NumaBinding::kCoreComplex);
  EXPECT_TRUE(options.virtual_local_rank);
  EXPECT_EQ(options.input, (agent::InputChoice{agent::InputChoice::Kind::kRank, Rank(3)}));
  // As torchrun: --run-path counts.
  EXPECT_TRUE(options.run_path);
  EXPECT_FALSE(options.no_python);
  options = Parse({"--omp_threads", "auto", "--stdin=all", "p"});
  EXPECT_EQ(options.threads.kind, ThreadChoice::Kind::kAuto);
  EXPECT_EQ(options.input.kind, agent::InputChoice::Kind::kAll);
  EXPECT_EQ(Parse({"--stdin=none", "p"}).input.kind, agent::InputChoice::Kind::kNone);
  options = Parse({"--bind-to=core", "p"});
  EXPECT_EQ(options.numa_binding, NumaBinding::kCore);
  EXPECT_EQ(options.binding_flag, "--bind-to");
  EXPECT_EQ(Parse({"--bind-to", "numa", "p"}).numa_binding, NumaBinding::kNode);
  EXPECT_EQ(Parse({"--bind-to=none", "--numa-binding=node", "p"}).binding_flag, "--numa-binding");
  EXPECT_EQ(ErrorOf({"--bind-to=core", "--numa-binding=node", "p"}),
            "--numa-binding and --bind-to both bind workers to processors; give one");
}

TEST(RunOptions, TakesSignalsByName) {
  EXPECT_THAT(Parse({"p"}).stop_signals, ElementsAre(SIGTERM, SIGINT, SIGHUP, SIGQUIT));
  EXPECT_THAT(Parse({"--signals-to-handle=SIGTERM, USR1,SIGTERM", "p"}).stop_signals,
              ElementsAre(SIGTERM, SIGUSR1));
}

TEST(RunOptions, TakesWhatIsSaidOfOutput) {
  RunOptions options = Parse({"--local-ranks-filter=0,2", "--log-max-bytes=100M",
                              "--duplicate-stdout-filters=apple,,pie,orange",
                              "--duplicate-stderr-filters", "", "p"});
  EXPECT_THAT(options.shown_ranks, ElementsAre(0, 2));
  EXPECT_EQ(options.log_max_bytes, 100 << 20);
  EXPECT_THAT(options.stdout_filters, ElementsAre("apple,pie", "orange"));
  EXPECT_THAT(options.stderr_filters, testing::IsEmpty());
  EXPECT_EQ(Parse({"--log-max-bytes=65536", "p"}).log_max_bytes, 65536);
  EXPECT_EQ(Parse({"--log-max-bytes=3g", "p"}).log_max_bytes, int64_t{3} << 30);
}

TEST(RunOptions, NotesWhatHasNoEffect) {
  EXPECT_THAT(Parse({"p"}).idle, testing::IsEmpty());
  EXPECT_THAT(Parse({"--monitor-interval=1", "--event-log-handler=console",
                     "--rdzv-conf=read_timeout=60,timeout=9", "p"},
                    {{"PET_START_METHOD", "spawn"}})
                  .idle,
              ElementsAre("--rdzv-conf read_timeout", "PET_START_METHOD", "--monitor-interval",
                          "--event-log-handler"));
  EXPECT_THAT(Parse({"--event-log-handler=null", "p"}).idle, testing::IsEmpty());
}

TEST(RunOptions, TwoOfTorchrunsHaveNoVariable) {
  const Variables variables = {{"PET_LOGS_SPECS", "x"}, {"PET_NUMA_BINDING", "node"}};
  EXPECT_EQ(Parse({"p"}, variables).numa_binding, NumaBinding::kNone);
  EXPECT_EQ(Parse({"--logs-specs=default", "p"}).log_dir, "");
  EXPECT_THAT(ErrorOf({"--logs-specs=mine", "p"}),
              HasSubstr("--logs-specs=\"mine\" names a class of a Python package"));
}

TEST(RunOptions, EveryFlagHasItsVariable) {
  const Variables variables = {{"PET_OMP_THREADS", "2"},
                               {"PET_VIRTUAL_LOCAL_RANK", "2"},
                               {"PET_RUN_PATH", "00"},
                               {"PET_LOCAL_RANKS_FILTER", "1"},
                               {"PET_SIGNALS_TO_HANDLE", "SIGUSR2"}};
  RunOptions options = Parse({"p"}, variables);
  EXPECT_EQ(options.threads.number, 2);
  EXPECT_TRUE(options.virtual_local_rank);
  EXPECT_FALSE(options.run_path);
  EXPECT_THAT(options.shown_ranks, ElementsAre(1));
  EXPECT_THAT(options.stop_signals, ElementsAre(SIGUSR2));
}

TEST(RunOptions, NamesTheBoundOfWhatIsTooLarge) {
  const struct {
    std::string word, error;
  } kCases[] = {
      {"--max-restarts=1000001", "is too large, the most is 1000000; allowed: a whole number"},
      {"--nnodes=2:2000000", "\"2:2000000\" is too large, the most is 1000000; allowed: N or"},
      {"--nproc-per-node=99999999999999999999", "is too large, the most is 4096; allowed: 1 to"},
      {"--shutdown-timeout=1e12", "is too large, the most is 31536000; allowed: seconds"},
      {"--redirects=5000:1", "RANK:V"},
      {"--log-max-bytes=99999999999G", "is too large, the most is 2147483647; allowed: bytes"},
  };
  for (const auto& c : kCases) EXPECT_THAT(ErrorOf({c.word, "p"}), HasSubstr(c.error)) << c.word;
}

TEST(RunOptions, TakesTheRulesOfRestartsAndNodes) {
  RunOptions options = Parse({"p"});
  EXPECT_EQ(options.max_restarts_per_hour, 0);
  EXPECT_EQ(options.min_uptime, seconds(1));
  EXPECT_EQ(options.max_early_failures, 10);
  EXPECT_EQ(options.max_stuck_restarts, 3);
  EXPECT_EQ(options.max_node_failures, 0);
  EXPECT_EQ(options.topology_key, "");
  EXPECT_FALSE(options.allow_other_programs);
  options = Parse({"--max-restarts-per-hour=4", "--min-uptime=0.5", "--max-early-failures=0",
                   "--max-stuck-restarts=1", "--max-node-failures=2", "--topology-key=rack2-n7",
                   "--allow-other-programs", "p"});
  EXPECT_EQ(options.max_restarts_per_hour, 4);
  EXPECT_EQ(options.min_uptime, milliseconds(500));
  EXPECT_EQ(options.max_early_failures, 0);
  EXPECT_EQ(options.max_stuck_restarts, 1);
  EXPECT_EQ(options.max_node_failures, 2);
  EXPECT_EQ(options.topology_key, "rack2-n7");
  EXPECT_TRUE(options.allow_other_programs);
}

TEST(RunOptions, TheTopologyKeyMayComeFromTheNodesEnvironment) {
  const Variables variables = {{"MUSTER_TOPOLOGY_KEY", "rack1"}};
  EXPECT_EQ(Parse({"p"}, variables).topology_key, "rack1");
  EXPECT_EQ(Parse({"--topology-key=rack2", "p"}, variables).topology_key, "rack2");
  EXPECT_THAT(ErrorOf({"p"}, {{"MUSTER_TOPOLOGY_KEY", "rack 1"}}),
              HasSubstr("MUSTER_TOPOLOGY_KEY: \"rack 1\""));
}

TEST(RunOptions, ItMayBeSaidInEachWayThatRank0HostsTheStore) {
  const Variables torchruns = {{"TORCH_DISABLE_SHARE_RDZV_TCP_STORE", "1"}};
  EXPECT_EQ(Parse({"p"}, torchruns).master_store, StoreChoice::kWorker);
  EXPECT_EQ(Parse({"--master-store=agent", "p"}, torchruns).master_store, StoreChoice::kAgent);
  EXPECT_EQ(Parse({"p"}, {{"TORCH_DISABLE_SHARE_RDZV_TCP_STORE", "0"}}).master_store,
            StoreChoice::kAgent);
  EXPECT_EQ(Parse({"p"}, {{"PET_MASTER_STORE", "worker"}}).master_store, StoreChoice::kWorker);
  EXPECT_THAT(ErrorOf({"--master-store=rank0", "p"}),
              AllOf(HasSubstr("--master-store: \"rank0\""), HasSubstr("agent or worker")));
}

TEST(RunOptions, RulesMayComeFromTheEnvironment) {
  const Variables variables = {{"PET_ALLOW_OTHER_PROGRAMS", "1"}, {"PET_MAX_STUCK_RESTARTS", "0"}};
  EXPECT_TRUE(Parse({"p"}, variables).allow_other_programs);
  EXPECT_EQ(Parse({"p"}, variables).max_stuck_restarts, 0);
  EXPECT_THAT(ErrorOf({"p"}, {{"PET_ALLOW_OTHER_PROGRAMS", "maybe"}}), HasSubstr("1 or 0"));
  EXPECT_THAT(ErrorOf({"p"}, {{"PET_MAX_NODE_FAILURES", "x"}}),
              HasSubstr("PET_MAX_NODE_FAILURES: \"x\""));
}

TEST(RunOptions, ReadsVariablesBelowTheCommandLine) {
  Variables variables = {{"PET_NNODES", "2"},      {"PET_NPROC_PER_NODE", "4"},
                         {"PET_STANDALONE", "0"},  {"PET_NO_PYTHON", "1"},
                         {"PET_MAX_RESTARTS", ""}, {"TORCH_ELASTIC_SHUTDOWN_TIMEOUT", "9"},
                         {"PET_HELP", "1"}};
  RunOptions options = Parse({"--nproc-per-node=1", "p"}, variables);
  EXPECT_EQ(options.max_nodes, 2);
  EXPECT_EQ(options.workers.number, 1);
  EXPECT_FALSE(options.standalone);
  EXPECT_TRUE(options.no_python);
  EXPECT_EQ(options.max_restarts, 0);
  EXPECT_EQ(options.shutdown_timeout, seconds(9));
  EXPECT_EQ(Parse({"--shutdown-timeout=1", "p"}, variables).shutdown_timeout, seconds(1));
  EXPECT_THAT(ErrorOf({"p"}, {{"PET_NNODES", "x"}}), HasSubstr("PET_NNODES: \"x\""));
}

TEST(RunOptions, NamesFlagValueAndWhatIsAllowed) {
  const struct {
    std::string flag, value, allowed;
  } kCases[] = {
      {"--nnodes", "3:2", "1 <= MIN <= MAX"},
      {"--nnodes", "0", "MIN:MAX"},
      {"--nnodes", "0:2", "MIN:MAX"},
      {"--nnodes", "abc", "MIN:MAX"},
      {"--nnodes", "1:2:3", "MIN:MAX"},
      {"--nnodes", "", "MIN:MAX"},
      {"--nproc-per-node", "-1", "1 to 4096, cpu, gpu or auto"},
      {"--nproc-per-node", "0", "1 to 4096"},
      {"--nproc-per-node", "99999999999999999999", "1 to 4096"},
      {"--nproc-per-node", "2x", "1 to 4096"},
      {"--node-rank", "-1", "0 or more"},
      {"--master-port", "0", "1 to 65535"},
      {"--master-port", "65536", "1 to 65535"},
      {"--master-port", "http", "1 to 65535"},
      {"--master-addr", "a b", "without blanks"},
      {"--rdzv-backend", "etcd", "static or c10d"},
      {"--rdzv-endpoint", "h:99999", "HOST:PORT"},
      {"--rdzv-id", "a/b", "without blanks, slashes and control characters"},
      {"--rdzv-conf", "join_timeout", "KEY=VALUE"},
      {"--rdzv-conf", "=1", "KEY=VALUE"},
      {"--redirects", "4", "0 (none)"},
      {"--redirects", "0:1,x", "RANK:V"},
      {"--tee", "0:9", "RANK:V"},
      {"--shutdown-timeout", "-1", "seconds, 0 or more"},
      {"--shutdown-timeout", "inf", "seconds, 0 or more"},
      {"--shutdown-timeout", "soon", "seconds, 0 or more"},
      {"--monitor-interval", "x", "seconds"},
      {"--max-restarts-per-hour", "-1", "0 or more"},
      {"--min-uptime", "-1", "seconds, 0 or more"},
      {"--max-early-failures", "few", "0 or more"},
      {"--max-stuck-restarts", "1e9", "0 or more"},
      {"--max-node-failures", "2.5", "0 or more"},
      {"--topology-key", "rack 2", "without blanks and control characters"},
      {"--max-restarts", "1.5", "0 or more"},
      {"--start-method", "x", "spawn, fork or forkserver"},
      {"--prefix", "maybe", "auto, always or never"},
      {"--scale-up", "", "auto, immediate or checkpoint"},
      {"--scale-up", "now", "auto, immediate or checkpoint"},
      {"--preemption-file", "", "the path of a file; leave the option out for none"},
      {"--preemption-file", "/run/", "the path of a file"},
      {"--preemption-signal", "", "USR1 or USR2"},
      {"--preemption-signal", "TERM", "SIGTERM announces one anyway"},
      {"--preemption-signal", "10", "USR1 or USR2"},
      {"--result-file", "", "the path of a file; leave the option out for none"},
      {"--result-file", "results/", "the path of a file"},
      {"--lost-contact", "", "auto, go-on or stop"},
      {"--lost-contact", "goon", "auto, go-on or stop"},
      {"--max-node-failures", "", "0 or more"},
      {"--max-node-failures", "-1", "0 or more"},
      {"--max-node-failures", "1000001", "the most is 1000000"},
      {"--hang-timeout", "", "seconds, 0 or more"},
      {"--hang-timeout", "-1", "seconds, 0 or more"},
      {"--hang-timeout", "0.5", "0 (off), or at least 1 second"},
      {"--hang-timeout", "nan", "seconds, 0 or more"},
      {"--stack-signal", "KILL", "a signal that can be caught, or none"},
      {"--stack-signal", "", "a signal that can be caught, or none"},
      {"--omp-threads", "0", "1 to 65536, or auto"},
      {"--numa-binding", "socket2", "node, socket, exclusive or core-complex"},
      {"--bind-to", "cores", "none, core, socket or numa"},
      {"--stdin", "-1", "none, all, or the rank that reads it"},
      {"--signals-to-handle", "SIGTERM,SIGKILL", "names of signals that can stop a job"},
      {"--signals-to-handle", "SIGCHLD", "names of signals that can stop a job"},
      {"--signals-to-handle", "", "names of signals that can stop a job"},
      {"--local-ranks-filter", "0,x", "local ranks, such as 0,1,2"},
      {"--log-max-bytes", "10", "at least 64K"},
      {"--log-max-bytes", "M", "at least 64K"},
  };
  for (const auto& c : kCases) {
    EXPECT_THAT(ErrorOf({c.flag + "=" + c.value, "p"}),
                AllOf(HasSubstr(c.flag + ": \"" + c.value + "\""), HasSubstr(c.allowed)))
        << c.flag << "=" << c.value;
  }
}

TEST(RunOptions, ShowsTheBeginningOfALongValue) {
  for (const char* flag : {"--topology-key", "--scale-up", "--lost-contact", "--rdzv-id"}) {
    const std::string error = ErrorOf({std::string(flag) + "=" + std::string(100'000, 'k'), "p"});
    EXPECT_THAT(error, AllOf(HasSubstr(std::string(flag) + ": \"kkk"),
                             HasSubstr("kkk...\" (100000 bytes) is not valid; allowed: ")));
    EXPECT_LT(error.size(), 300u);
  }
  EXPECT_THAT(ErrorOf({"--topology-key=" + std::string(257, 'k'), "p"}),
              HasSubstr("(257 bytes) is not valid; allowed: a name of at most 256 bytes"));
  EXPECT_THAT(ErrorOf({"--topology-key=rack\n2", "p"}), HasSubstr("\"rack\\x0a2\" is not valid"));
  EXPECT_THAT(ErrorOf({"--local-addr=h\x1b[2J", "p"}),
              HasSubstr("--local-addr: \"h\\x1b[2J\" is not valid"));
  EXPECT_THAT(ErrorOf({"--rdzv-id=\x01\x1b[31m", "p"}),
              HasSubstr("--rdzv-id: \"\\x01\\x1b[31m\" is not valid"));
  EXPECT_LT(ErrorOf({"--rdzv-conf=" + std::string(100'000, 'k') + "=1", "p"}).size(), 300u);
}

// A script's way of not setting them.
TEST(RunOptions, EmptyVariablesOfFilesAreNone) {
  const Variables variables = {{"PET_RESULT_FILE", ""}, {"PET_PREEMPTION_FILE", ""}};
  EXPECT_EQ(Parse({"p"}, variables).result_file, "");
  EXPECT_EQ(Parse({"p"}, variables).preemption_file, "");
}

TEST(RunOptions, ChecksTheRendezvousConfiguration) {
  EXPECT_THAT(ErrorOf({"--rdzv-conf=join_timout=5", "p"}),
              HasSubstr("unknown key \"join_timout\"; did you mean join_timeout?"));
  EXPECT_THAT(ErrorOf({"--rdzv-conf=join_timeout=x", "p"}),
              HasSubstr("--rdzv-conf join_timeout: \"x\""));
  EXPECT_THAT(ErrorOf({"--rdzv-conf=lease=0.1", "p"}), HasSubstr("at least 1 second"));
  EXPECT_THAT(ErrorOf({"--rdzv-conf=is_host=maybe", "p"}), HasSubstr("1 or 0"));
  EXPECT_EQ(Parse({"--rdzv-conf=read_timeout=60,use_libuv=1,timeout=9", "p"}).join_timeout,
            seconds(9));
}

TEST(RunOptions, PreloadsModulesThatPythonCouldImport) {
  EXPECT_EQ(Parse({"--preload=torch,numpy.linalg", "p"}).preload, "torch,numpy.linalg");
  EXPECT_EQ(Parse({"p"}, {{"PET_PRELOAD", "torch"}}).preload, "torch");
  for (const char* bad : {"a,,b", "a,", "a b", "../a", "a=b"}) {
    EXPECT_THAT(ErrorOf({std::string("--preload=") + bad, "p"}), HasSubstr("MODULE,MODULE"));
  }
}

TEST(RunOptions, APreloadOfTheEnvironmentIsNotInTheWayOfOtherPrograms) {
  const Variables variables = {{"PET_PRELOAD", "torch"}};
  RunOptions options = Parse({"--no-python", "p"}, variables);
  EXPECT_EQ(options.preload, "");
  EXPECT_THAT(options.ignored,
              ElementsAre("PET_PRELOAD=torch is ignored, as --no-python runs a program that isn't "
                          "Python; unset it for such jobs"));
  EXPECT_THAT(Parse({"p"}, variables).ignored, testing::IsEmpty());
  EXPECT_EQ(Parse({"--run-path", "--no-python", "p"}, variables).preload, "torch");
  // Beside a flag that says so for this very job it is one slip or the other.
  EXPECT_THAT(ErrorOf({"--preload=os", "--no-python", "p"}, variables),
              HasSubstr("--preload and --no-python"));
  EXPECT_THAT(ErrorOf({"--preload=os", "p"}, {{"PET_NO_PYTHON", "1"}}),
              HasSubstr("--preload and --no-python"));
}

TEST(RunOptions, ChecksWhatExcludesEachOther) {
  EXPECT_THAT(ErrorOf({"-m", "--no-python", "x"}), HasSubstr("-m and --no-python"));
  EXPECT_THAT(ErrorOf({"--preload=os", "--no-python", "x"}),
              HasSubstr("--preload and --no-python"));
  EXPECT_THAT(ErrorOf({"--standalone"}), HasSubstr("no program was named"));
  EXPECT_THAT(ErrorOf({""}), HasSubstr("is empty"));
}

TEST(RunOptions, HelpAndVersionNeedNothingElse) {
  EXPECT_TRUE(Parse({"--help"}).wants_help);
  EXPECT_TRUE(Parse({"--nnodes=x", "-h"}).wants_help);
  EXPECT_TRUE(Parse({"--version"}).wants_version);
  EXPECT_THAT(RunHelp(), AllOf(HasSubstr("--nproc-per-node"), HasSubstr("PET_<NAME>")));
}

TEST(RunOptions, TakesTheHostsAndKeepsTheOtherFlagsForThem) {
  RunOptions options =
      Parse({"-H", "a,b:4", "-x", "A=1", "-x", "B", "-np", "5", "--wdir=/w", "--remote-muster=/m",
             "--ssh-command=ssh -p 2222", "-mr3", "--max_restarts", "2", "p.q", "-x"},
            {{"PET_NNODES", "2"}, {"PET_REMOTE_MUSTER", "/other"}});
  EXPECT_THAT(options.ssh.hosts, ElementsAre(HostSlots{"a", 0}, HostSlots{"b", 4}));
  EXPECT_THAT(options.ssh.variables, ElementsAre("A=1", "B"));
  EXPECT_EQ(options.ssh.workers, 5);
  EXPECT_EQ(options.ssh.folder, "/w");
  EXPECT_EQ(options.ssh.remote_muster, "/m");
  EXPECT_EQ(options.ssh.command, "ssh -p 2222");
  EXPECT_THAT(options.ssh.flags, ElementsAre("--module", "--redirects=3", "--max-restarts=2"));
  EXPECT_THAT(options.ssh.given,
              ElementsAre(std::pair("max-restarts", "2"), std::pair("module", "1"),
                          std::pair("nnodes", "2"), std::pair("redirects", "3")));
  EXPECT_THAT(options.program, ElementsAre("p.q", "-x"));
}

TEST(RunOptions, SaysWhatToWriteInsteadOfMpirunsOptions) {
  const struct {
    Words words;
    const char* instead;
  } kCases[] = {
      {{"-genv", "A", "1", "p"}, "-genv is mpirun's; write -x NAME=VALUE"},
      {{"-env", "A", "1", "p"}, "-env is mpirun's; write -x NAME=VALUE"},
      {{"-genvlist", "A,B", "p"}, "write -x NAME, one for each"},
      {{"-genvall", "p"}, "what -x names"},
      {{"-ppn", "4", "p"}, "write --nproc-per-node=N"},
      {{"-N", "4", "p"}, "write --nproc-per-node=N"},
      {{"--npernode", "4", "p"}, "write --nproc-per-node=N"},
      {{"-f", "hosts", "p"}, "write --hostfile=FILE"},
      {{"--map-by", "ppr:1:node", "p"}, "--map-by is mpirun's; leave it out"},
      {{"--map_by=core", "p"}, "--map_by is mpirun's; leave it out"},
      {{"--oversubscribe", "p"}, "leave it out: each host gets"},
      {{"--allow-run-as-root", "p"}, "leave it out: muster runs for root"},
      {{"--mca", "btl", "tcp", "p"}, "there is no MPI"},
      {{"-launcher", "ssh", "p"}, "--ssh-command"},
  };
  for (const auto& c : kCases) EXPECT_THAT(ErrorOf(c.words), HasSubstr(c.instead)) << c.words[0];
  // Those that are taken as they are, and a program's own.
  RunOptions options = Parse({"-np", "2", "-hosts", "a:2", "--env", "A=1", "-bind-to", "core",
                              "-wd", "/w", "p", "-genv", "-f"});
  EXPECT_EQ(options.numa_binding, NumaBinding::kCore);
  EXPECT_THAT(options.ssh.variables, ElementsAre("A=1"));
  EXPECT_THAT(options.program, ElementsAre("p", "-genv", "-f"));
}

TEST(RunOptions, RefusesWhatDoesNotGoWithHosts) {
  EXPECT_THAT(ErrorOf({"-x", "A=1", "p"}), HasSubstr("-x belongs to --hosts or --hostfile"));
  EXPECT_THAT(ErrorOf({"-np", "4", "p"}), HasSubstr("--nproc-per-node"));
  EXPECT_THAT(ErrorOf({"--wdir=/", "p"}), HasSubstr("--wdir belongs to"));
  EXPECT_THAT(ErrorOf({"--remote-muster=/", "p"}), HasSubstr("--remote-muster belongs to"));
  EXPECT_THAT(ErrorOf({"--hosts=a", "--hostfile=f", "p"}), HasSubstr("exclude each other"));
  EXPECT_THAT(ErrorOf({"--hosts=a", "--standalone", "p"}),
              HasSubstr("--standalone is of one node"));
  EXPECT_THAT(ErrorOf({"--hosts=a", "p"}, {{"PET_NODE_RANK", "1"}}), HasSubstr("--node-rank"));
  EXPECT_THAT(ErrorOf({"--hosts=a", "--local-addr=b", "p"}), HasSubstr("--local-addr"));
  EXPECT_THAT(ErrorOf({"--hosts=a", "--rdzv-conf=is_host=1", "p"}), HasSubstr("is_host"));
  EXPECT_THAT(ErrorOf({"--hosts=a", "--stdin=0", "p"}), HasSubstr("--stdin"));
  EXPECT_THAT(ErrorOf({"--hosts=a:x", "p"}), HasSubstr("--hosts: \"a:x\""));
  EXPECT_THAT(ErrorOf({"--hosts=a", "--ssh-command= ", "p"}), HasSubstr("--ssh-command"));
  EXPECT_THAT(ErrorOf({"--hosts=a", "-x", "", "p"}), HasSubstr("NAME=VALUE"));
}

}  // namespace
}  // namespace muster::launcher
