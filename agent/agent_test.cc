// The whole agent with a real guardian and real workers; the test plays the rendezvous.
#include "agent/agent.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "agent/guardian/guardian.h"
#include "agent/process/guardian_runner.h"
#include "agent/task_queue.h"
#include "agent/torch_store/store_listener.h"
#include "agent/torch_store/wire_bytes.h"
#include "gtest/gtest.h"
#include "rendezvous/client/fake_rendezvous_client.h"

namespace muster::agent {
namespace {

namespace fs = std::filesystem;
using rendezvous::FakeRendezvousClient;

constexpr int kShellWorkers = 2;

// What the agent owns; the double behind it lives as long as the test.
class SharedClient : public rendezvous::RendezvousClient {
 public:
  // Whoever holds `gate` stops what sends.
  SharedClient(FakeRendezvousClient* client, std::mutex* gate) : client_(*client), gate_(*gate) {}
  uint64_t Connect() override { return client_.Connect(); }
  bool IsToOwnAddress() const override { return client_.IsToOwnAddress(); }
  void ProbeEndpoint(ProbeCallback done) override { client_.ProbeEndpoint(std::move(done)); }
  void Send(const AgentMessage& message) override {
    std::lock_guard passed(gate_);
    client_.Send(message);
  }
  void Disconnect() override { client_.Disconnect(); }
  void SetKey(const rendezvous::RoundScope& scope, const std::string& key, const std::string& value,
              SetCallback done) override {
    client_.SetKey(scope, key, value, std::move(done));
  }
  void GetKey(const rendezvous::RoundScope& scope, const std::string& key, Duration wait,
              GetCallback done) override {
    client_.GetKey(scope, key, wait, std::move(done));
  }

 private:
  FakeRendezvousClient& client_;
  std::mutex& gate_;
};

class AgentTest : public testing::Test {
 protected:
  AgentTest() {
    // Not by pid: sandboxes have pids of their own and share this folder.
    char name[] = "/tmp/agent_test_XXXXXX";
    folder_ = mkdtemp(name);
    setenv("TMPDIR", folder_.c_str(), 1);
    output_ = open((folder_ / "console").c_str(), O_CREAT | O_TRUNC | O_RDWR | O_APPEND, 0600);
  }
  ~AgentTest() override {
    if (thread_.joinable()) {
      agent_->RequestStop(SIGTERM);
      agent_->RequestStop(SIGTERM);
      thread_.join();
    }
    close(output_);
    fs::remove_all(folder_);
  }

  AgentSettings ShellSettings(const std::string& script) const {
    AgentSettings settings;
    settings.core.attach.node_name = "n0";
    settings.core.attach.address = "127.0.0.1";
    settings.core.attach.worker_count = kShellWorkers;
    settings.core.attach.terms.run_id = "a/job";
    settings.core.endpoint = "127.0.0.1:1";
    settings.core.shutdown_timeout = std::chrono::seconds(5);
    settings.argv = {"sh", "-c", script};
    settings.environment = {"PATH=/usr/bin:/bin"};
    settings.program = "the program";
    settings.stdout_fd = output_;
    settings.stderr_fd = output_;
    return settings;
  }

  void Start(AgentSettings settings) {
    GuardianLink link = StartGuardian();
    ASSERT_EQ(link.error, 0);
    guardian_ = link.pid;
    AgentParts parts;
    parts.make_client = [this](rendezvous::SessionObserver* observer) {
      std::unique_lock lock(mutex_);
      client_ = std::make_unique<FakeRendezvousClient>(observer);
      made_.notify_all();
      return std::make_unique<SharedClient>(client_.get(), &gate_);
    };
    parts.make_runner = [link](ProcessObserver* observer) {
      return std::make_unique<GuardianRunner>(link, observer);
    };
    agent_ = std::make_unique<Agent>(std::move(settings), std::move(parts));
    thread_ = std::thread([this] { verdict_ = agent_->Run(); });
  }

  FakeRendezvousClient& client() {
    std::unique_lock lock(mutex_);
    made_.wait_for(lock, std::chrono::seconds(20), [this] { return client_ != nullptr; });
    return *client_;
  }

  // The next message of this kind; heartbeats and others in between are skipped.
  template <class Message>
  std::optional<Message> Sent() {
    while (std::optional<AgentMessage> message = client().NextSent(std::chrono::seconds(20))) {
      if (auto* wanted = std::get_if<Message>(&*message)) return *wanted;
    }
    return std::nullopt;
  }

  void LetIn() {
    std::optional<Attach> attach = Sent<Attach>();
    ASSERT_TRUE(attach);
    EXPECT_NE(attach->candidate_port, 0);
    EXPECT_FALSE(attach->incarnation.IsNone());
    client().Deliver(Attached{.lease = std::chrono::seconds(30)});
  }

  static StartRound PlaceIn(uint64_t round) {
    StartRound place;
    place.world.round = RoundId(round);
    place.world.id.bytes.fill(static_cast<uint8_t>(round));
    place.group_world_size = 1;
    place.world_size = kShellWorkers;
    place.master_address = "127.0.0.1";
    place.master_port = 4711;
    place.attempt = static_cast<int>(round) - 1;
    return place;
  }

  void EndJob(const Verdict& verdict) { client().Deliver(JobEnded{verdict}); }

  const Verdict& Result() {
    thread_.join();
    return verdict_;
  }

  std::string Console() const {
    std::ifstream file(folder_ / "console");
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }

  fs::path folder_;
  int output_ = -1;
  pid_t guardian_ = -1;
  std::mutex gate_;
  std::mutex mutex_;
  std::condition_variable made_;
  std::unique_ptr<Agent> agent_;
  // After the agent, which it reports to.
  std::unique_ptr<FakeRendezvousClient> client_;
  std::thread thread_;
  Verdict verdict_;
};

Verdict Success() {
  Verdict verdict;
  verdict.succeeded = true;
  return verdict;
}

TEST_F(AgentTest, RunsWorkersToTheirGoodEnd) {
  Start(ShellSettings("echo rank $RANK of $WORLD_SIZE"));
  LetIn();
  client().Deliver(PlaceIn(1));
  ASSERT_TRUE(Sent<NodeSucceeded>());
  EndJob(Success());
  EXPECT_TRUE(Result().succeeded);
  EXPECT_NE(Console().find("[default0]:rank 0 of 2\n"), std::string::npos) << Console();
  EXPECT_NE(Console().find("[default1]:rank 1 of 2\n"), std::string::npos) << Console();
  // Nothing is left in the temporary folder but the console.
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 1);
}

TEST_F(AgentTest, ReportsAFailureAndStartsAgain) {
  Start(
      ShellSettings("if [ $TORCHELASTIC_RESTART_COUNT = 1 ]; then exit 0; fi\n"
                    "if [ $RANK = 1 ]; then echo oops >&2\n"
                    "printf '{\"message\": {\"message\": \"why\"}}' > $TORCHELASTIC_ERROR_FILE\n"
                    "exit 3; fi\n"
                    "while :; do read line < /dev/zero; done"));
  LetIn();
  client().Deliver(PlaceIn(1));
  std::optional<WorkerFailed> failed = Sent<WorkerFailed>();
  ASSERT_TRUE(failed);
  EXPECT_EQ(failed->failure.rank, Rank(1));
  EXPECT_EQ(failed->failure.exit, (WorkerExit{.code = 3}));
  EXPECT_EQ(failed->failure.message, "why");
  EXPECT_EQ(failed->failure.stderr_tail, "oops\n");
  EXPECT_EQ(failed->failure.node_name, "n0");
  client().Deliver(StopRound{.world = PlaceIn(1).world, .reason = "rank 1 failed"});
  ASSERT_TRUE(Sent<StopDone>());
  client().Deliver(PlaceIn(2));
  std::optional<NodeSucceeded> succeeded = Sent<NodeSucceeded>();
  ASSERT_TRUE(succeeded);
  EXPECT_EQ(succeeded->world.round, RoundId(2));
  EndJob(Success());
  EXPECT_TRUE(Result().succeeded);
}

TEST_F(AgentTest, ShowsTheFailureThatEndedTheJob) {
  Start(ShellSettings("kill -9 $$"));
  LetIn();
  client().Deliver(PlaceIn(1));
  std::optional<WorkerFailed> failed = Sent<WorkerFailed>();
  ASSERT_TRUE(failed);
  EXPECT_EQ(failed->failure.exit.signal, SIGKILL);
  Verdict verdict;
  verdict.exit_code = 137;
  verdict.reason = "job a/job failed";
  verdict.failures = {failed->failure};
  EndJob(verdict);
  EXPECT_EQ(Result().exit_code, 137);
  std::string console = Console();
  EXPECT_NE(console.find("the program FAILED\n"), std::string::npos) << console;
  EXPECT_NE(console.find("Signal 9 (SIGKILL) received by PID"), std::string::npos) << console;
  EXPECT_NE(console.find("\nmuster: the program: job a/job failed\n"), std::string::npos)
      << console;
}

TEST_F(AgentTest, ANodeThatRanNothingOfAJobDoesntSayThatItsProgramFailed) {
  Start(ShellSettings("exit 0"));
  ASSERT_TRUE(Sent<Attach>());
  WorkerFailure failure;
  failure.node_name = "n\x1b[31m";
  failure.exit.code = 7;
  Verdict verdict;
  verdict.exit_code = 7;
  verdict.reason = "job a/job failed on n\x1b[31m";
  verdict.failures = {failure};
  EndJob(verdict);
  EXPECT_EQ(Result().exit_code, 7);
  const std::string console = Console();
  EXPECT_NE(console.find("\njob a/job FAILED\n"), std::string::npos) << console;
  EXPECT_NE(console.find("\nmuster: job a/job failed on n\\x1b[31m\n"), std::string::npos)
      << console;
  EXPECT_EQ(console.find("the program"), std::string::npos) << console;
  EXPECT_EQ(console.find('\x1b'), std::string::npos) << console;
}

TEST_F(AgentTest, TheCauseIsLeftWhereALauncherAboveLooks) {
  AgentSettings settings = ShellSettings(
      "printf '{\"message\": \"why %s\"}' $RANK > "
      "$TORCHELASTIC_ERROR_FILE; exit 3");
  settings.core.attach.worker_count = 1;
  settings.error_file = folder_ / "ours.json";
  Start(settings);
  LetIn();
  client().Deliver(PlaceIn(1));
  ASSERT_TRUE(Sent<WorkerFailed>());
  Verdict verdict;
  verdict.exit_code = 3;
  EndJob(verdict);
  EXPECT_EQ(Result().exit_code, 3);
  std::stringstream left;
  left << std::ifstream(folder_ / "ours.json").rdbuf();
  EXPECT_EQ(left.str(), R"({"message": "why 0"})");
}

TEST_F(AgentTest, AProgramThatIsNotThereIsNoWorkersFailure) {
  AgentSettings settings = ShellSettings("");
  settings.argv = {"/no/such/program"};
  Start(settings);
  LetIn();
  client().Deliver(PlaceIn(1));
  std::optional<WorkerFailed> failed = Sent<WorkerFailed>();
  ASSERT_TRUE(failed);
  EXPECT_TRUE(failed->failure.failed_to_start);
  EXPECT_EQ(failed->failure.exit.code, 127);
  EXPECT_EQ(failed->failure.message,
            "'/no/such/program' can't be executed: No such file or directory");
}

TEST_F(AgentTest, AUsersSignalReachesTheWorkersAndEndsTheAgent) {
  Start(ShellSettings("trap 'echo got it; exit 0' INT; echo ready; while :; do sleep 0.01; done"));
  LetIn();
  client().Deliver(PlaceIn(1));
  // The worker's first line proves that its trap is set.
  auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  auto is_ready = [&](const char* rank) {
    return Console().find(rank + std::string(":ready")) != std::string::npos;
  };
  while (std::chrono::steady_clock::now() < deadline &&
         !(is_ready("[default0]") && is_ready("[default1]"))) {
    std::this_thread::yield();
  }
  agent_->RequestStop(SIGINT);
  std::optional<Leave> leave = Sent<Leave>();
  ASSERT_TRUE(leave);
  EXPECT_EQ(leave->reason, "stopped by SIGINT");
  EXPECT_EQ(Result().exit_code, 130);
  EXPECT_NE(Console().find("got it"), std::string::npos) << Console();
}

TEST_F(AgentTest, ASignalWhileItWaitsForOthersEndsItAtOnce) {
  Start(ShellSettings("exit 0"));
  LetIn();
  agent_->RequestStop(SIGTERM);
  EXPECT_EQ(Result().exit_code, 143);
}

TEST_F(AgentTest, ALogFolderThatCannotBeWrittenEndsItBeforeAnythingStarts) {
  AgentSettings settings = ShellSettings("exit 0");
  settings.log_dir = "/proc/nowhere";
  Start(settings);
  EXPECT_EQ(Result().exit_code, 73);
  EXPECT_NE(Console().find("muster: the log folder /proc/nowhere can't be written"),
            std::string::npos)
      << Console();
}

TEST_F(AgentTest, RedirectedStreamsAreInTheAttemptsFolder) {
  AgentSettings settings = ShellSettings("echo out; echo err >&2; exit 4");
  settings.log_dir = folder_ / "logs";
  settings.streams.assign(kShellWorkers, {.redirect_stdout = true, .tee_stderr = true});
  Start(settings);
  LetIn();
  client().Deliver(PlaceIn(1));
  std::optional<WorkerFailed> failed = Sent<WorkerFailed>();
  ASSERT_TRUE(failed);
  fs::path log = failed->failure.log_path;
  EXPECT_EQ(log.filename(), "stderr.log");
  EXPECT_EQ(log.parent_path().parent_path().filename(), "attempt_0");
  EXPECT_TRUE(
      log.parent_path().parent_path().parent_path().filename().string().starts_with("a_job_"));
  EndJob(Verdict{});
  Result();
  EXPECT_EQ(fs::file_size(log), 4u);
  EXPECT_EQ(fs::file_size(log.parent_path() / "stdout.log"), 4u);
  EXPECT_EQ(Console().find("out\n"), std::string::npos) << Console();
}

// A fifo without a reader, where the second attempt's log belongs, plays a file server that doesn't
// answer: opening it blocks.
TEST_F(AgentTest, ADiskThatDoesNotAnswerHoldsUpNeitherReportsNorRestarts) {
  AgentSettings settings = ShellSettings(
      "echo \"attempt $TORCHELASTIC_RESTART_COUNT\" >&2\n"
      "run=$(dirname $TORCHELASTIC_ERROR_FILE)/../..\n"
      "[ $TORCHELASTIC_RESTART_COUNT = 0 ] && mkdir -p $run/attempt_1/0 &&"
      "  mkfifo $run/attempt_1/0/stderr.log\n"
      "[ $TORCHELASTIC_RESTART_COUNT = 2 ] && exit 0\n"
      "exit 3");
  settings.core.attach.worker_count = 1;
  settings.log_dir = folder_ / "logs";
  settings.streams.assign(1, {.tee_stderr = true});
  Start(settings);
  LetIn();
  for (uint64_t round = 1; round <= 2; ++round) {
    client().Deliver(PlaceIn(round));
    std::optional<WorkerFailed> failed = Sent<WorkerFailed>();
    ASSERT_TRUE(failed);
    EXPECT_EQ(failed->world.round, RoundId(round));
    EXPECT_EQ(failed->failure.stderr_tail, "attempt " + std::to_string(round - 1) + "\n");
    client().Deliver(StopRound{.world = PlaceIn(round).world, .reason = "rank 0 failed"});
    ASSERT_TRUE(Sent<StopDone>());
  }
  client().Deliver(PlaceIn(3));
  ASSERT_TRUE(Sent<NodeSucceeded>());
  EndJob(Success());
  EXPECT_TRUE(Result().succeeded);
  EXPECT_NE(Console().find("attempt_1/0/stderr.log (its disk doesn't answer)"), std::string::npos)
      << Console();
}

TEST_F(AgentTest, ARendezvousThatSaysMoreThanCanBeTakenInIsAskedAnew) {
  Start(ShellSettings("exit 0"));
  LetIn();
  {
    std::lock_guard hold(gate_);
    // The answer to this waits at the gate, and the loop with it.
    client().Deliver(StopRound{.world = PlaceIn(9).world, .reason = ""});
    for (size_t i = 0; i <= TaskQueue::kMostOffered + 1; ++i) client().Deliver(Notice{.text = "x"});
  }
  EXPECT_TRUE(client().WaitForConnects(2, std::chrono::seconds(20)));
  LetIn();
  EndJob(Success());
  EXPECT_TRUE(Result().succeeded);
}

TEST_F(AgentTest, LeavesWhenItsGuardianIsKilled) {
  Start(ShellSettings("while :; do sleep 0.01; done"));
  LetIn();
  client().Deliver(PlaceIn(1));
  client().Deliver(Notice{.text = "go on"});
  kill(guardian_, SIGKILL);
  ASSERT_TRUE(Sent<Leave>());
  EXPECT_EQ(Result().exit_code, 70);
}

TEST_F(AgentTest, StartsNoWorkerWhoseOutputItCouldNotTake) {
  Start(ShellSettings("echo it runs"));
  LetIn();
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlimit none{3, limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  client().Deliver(PlaceIn(1));
  std::optional<WorkerFailed> failed = Sent<WorkerFailed>();
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  ASSERT_TRUE(failed);
  EXPECT_TRUE(failed->failure.failed_to_start);
  EXPECT_FALSE(failed->failure.IsHopeless());
  EXPECT_EQ(failed->failure.exit.code, 71);
  EXPECT_NE(failed->failure.message.find("ulimit -n"), std::string::npos);
  client().Deliver(StopRound{PlaceIn(1).world, StopCause::kWorkerFailed, "it failed", Rank(0)});
  ASSERT_TRUE(Sent<StopDone>());
  client().Deliver(PlaceIn(2));
  ASSERT_TRUE(Sent<NodeSucceeded>());
  EndJob(Success());
  EXPECT_TRUE(Result().succeeded);
  // In the second round alone.
  const std::string console = Console();
  size_t first = console.find("it runs");
  size_t second = console.find("it runs", first + 1);
  ASSERT_NE(second, std::string::npos) << console;
  EXPECT_EQ(console.find("it runs", second + 1), std::string::npos) << console;
}

int ConnectTo(uint16_t port) {
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  timeval patience{.tv_sec = 20, .tv_usec = 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) return fd;
  close(fd);
  return -1;
}

// Sets a key of PyTorch's store; how many there are then, -1 where the other end closes.
int SetAndCount(int fd, const std::string& key) {
  using torch_store::Byte, torch_store::Text;
  const std::string request = Byte(0) + Text(key) + Text("v") + Byte(6);
  if (send(fd, request.data(), request.size(), MSG_NOSIGNAL) <= 0) return -1;
  char answer[8];
  return recv(fd, answer, sizeof answer, MSG_WAITALL) == sizeof answer ? answer[0] : -1;
}

TEST_F(AgentTest, ServesAStoreOfItsOwnInEachRoundAsGroupRank0) {
  AgentSettings settings = ShellSettings(
      "echo $MASTER_PORT $TORCHELASTIC_USE_AGENT_STORE; [ $TORCHELASTIC_RESTART_COUNT = 2 ] || "
      "exec sleep 100");
  settings.master_store = MasterStore::kAgent;
  Start(std::move(settings));
  std::optional<Attach> attach = Sent<Attach>();
  ASSERT_TRUE(attach);
  client().Deliver(Attached{.lease = std::chrono::seconds(30)});
  StartRound place = PlaceIn(1);
  place.master_port = attach->candidate_port;
  client().Deliver(place);
  int first = ConnectTo(place.master_port);
  EXPECT_EQ(SetAndCount(first, "a"), 1);
  client().Deliver(StopRound{place.world, StopCause::kPeerLost, "a node was lost", Rank(3)});
  std::optional<StopDone> done = Sent<StopDone>();
  ASSERT_TRUE(done);
  EXPECT_NE(done->candidate_port, place.master_port);
  // Workers of other nodes may be left.
  EXPECT_EQ(SetAndCount(first, "b"), 2);

  StartRound next = PlaceIn(2);
  next.master_port = done->candidate_port;
  client().Deliver(next);
  char byte = 0;
  EXPECT_LE(recv(first, &byte, 1, 0), 0);
  EXPECT_EQ(ConnectTo(place.master_port), -1);
  int second = ConnectTo(next.master_port);
  EXPECT_EQ(SetAndCount(second, "c"), 1);
  client().Deliver(StopRound{next.world, StopCause::kPeerLost, "a node was lost", Rank(3)});
  ASSERT_TRUE(Sent<StopDone>());

  // Another node is the first one now.
  StartRound last = PlaceIn(3);
  last.group_rank = GroupRank(1);
  client().Deliver(last);
  EXPECT_LE(recv(second, &byte, 1, 0), 0);
  ASSERT_TRUE(Sent<NodeSucceeded>());
  EndJob(Success());
  EXPECT_TRUE(Result().succeeded);
  EXPECT_NE(Console().find("4711 True"), std::string::npos) << Console();
  close(first);
  close(second);
}

TEST_F(AgentTest, AStoreThatCannotBeServedIsAFailureToStart) {
  AgentSettings settings = ShellSettings("echo it runs");
  settings.master_store = MasterStore::kAgent;
  Start(std::move(settings));
  std::optional<Attach> attach = Sent<Attach>();
  ASSERT_TRUE(attach);
  client().Deliver(Attached{.lease = std::chrono::seconds(30)});
  int error = 0;
  auto taken = torch_store::StoreListener::Open("127.0.0.1", 0, &error);
  StartRound place = PlaceIn(1);
  place.master_port = taken.port();
  client().Deliver(place);
  std::optional<WorkerFailed> failed = Sent<WorkerFailed>();
  ASSERT_TRUE(failed);
  EXPECT_TRUE(failed->failure.failed_to_start);
  EXPECT_EQ(failed->failure.exit.code, 71);
  EXPECT_NE(failed->failure.message.find("--master-store=worker"), std::string::npos);
  client().Deliver(StopRound{place.world, StopCause::kWorkerFailed, "it failed", Rank(0)});
  std::optional<StopDone> done = Sent<StopDone>();
  ASSERT_TRUE(done);
  StartRound next = PlaceIn(2);
  next.master_port = done->candidate_port;
  client().Deliver(next);
  ASSERT_TRUE(Sent<NodeSucceeded>());
  EndJob(Success());
  EXPECT_TRUE(Result().succeeded);
}

}  // namespace
}  // namespace muster::agent
