// A node's agent amid threads: one plays the rendezvous, one breaks its streams, one sends signals,
// one plays the guardian, and each worker is one that talks on the agent's socket. All at once,
// over many rounds; under ThreadSanitizer it shows what of the loop is touched by others.
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "agent/agent.h"
#include "agent/server/raw_client.h"
#include "agent/task_queue.h"
#include "base/clock.h"
#include "base/env.h"
#include "base/mutex.h"
#include "gtest/gtest.h"
#include "rendezvous/client/fake_rendezvous_client.h"

namespace muster::agent {
namespace {

namespace fs = std::filesystem;
using rendezvous::FakeRendezvousClient;

constexpr int kWorkers = 3;
constexpr uint64_t kRounds = 12;
constexpr int kSteps = 20;
// Only a fault makes anybody wait as long.
constexpr Duration kPatience = std::chrono::seconds(60);

std::string ValueOf(const std::vector<std::string>& environment, const std::string& name) {
  for (const std::string& entry : environment)
    if (entry.starts_with(name + "=")) return entry.substr(name.size() + 1);
  return "";
}

// One worker of a round, on a thread of its own. In turn one of them fails, but not in the last
// round; the others go on until the agent says that it is over, or they are stopped.
class PlayedWorker {
 public:
  PlayedWorker(RoundId round, WorkerCommand command, std::function<void(WorkerExit)> on_exit)
      : round_(round),
        command_(std::move(command)),
        client_(ValueOf(command_.environment, env::kAgentSocket)),
        thread_([this, on_exit = std::move(on_exit)] { on_exit(Live()); }) {}
  ~PlayedWorker() {
    Stop();
    thread_.join();
  }

  void Stop() { client_.Shutdown(); }

 private:
  // Returns how it ended.
  WorkerExit Live() {
    Print(command_.stdout_fd, "a line\nand a piece");
    Print(command_.stderr_fd, "a complaint\n");
    client_.Send(worker_channel::Hello{.worker_id = command_.worker_id, .sdk_version = "1"});
    if (!Hear<worker_channel::Welcome>()) return {.signal = SIGTERM};
    const int rank = command_.local_rank.value;
    const std::string own = Key(rank);
    const std::string next = Key((rank + 1) % kWorkers);
    client_.Send(worker_channel::SetKey{.request = 1, .key = own, .value = own});
    client_.Send(worker_channel::GetKey{.request = 2, .key = next, .wait_ms = 60'000});
    for (int step = 0; step < kSteps; ++step) client_.Send(worker_channel::StepDone{step, true});
    for (int i = 0; i < 2; ++i) {
      std::optional<worker_channel::Answer> answer = Hear<worker_channel::Answer>();
      if (!answer) return {.signal = SIGTERM};
      const std::string expected = answer->request == 1 ? "" : next;
      // Refused: the round is over.
      EXPECT_TRUE(answer->code != 0 || answer->value == expected) << answer->value;
    }
    if (round_.value == kRounds) return {};
    if (static_cast<uint64_t>(rank) == round_.value % kWorkers) return {.code = 1};
    Hear<worker_channel::Abort>();
    return {.signal = SIGTERM};
  }
  std::string Key(int rank) const {
    return std::to_string(rank) + " in " + std::to_string(round_.value);
  }
  static void Print(int fd, const std::string& text) {
    EXPECT_EQ(write(fd, text.data(), text.size()), static_cast<ssize_t>(text.size()));
    close(fd);
  }
  // Nothing if the round is over, or the agent has closed the connection.
  template <class Wanted>
  std::optional<Wanted> Hear() {
    while (std::optional<worker_channel::Message> message = client_.Next()) {
      if (auto* wanted = std::get_if<Wanted>(&*message)) return *wanted;
      if (std::holds_alternative<worker_channel::Abort>(*message)) break;
    }
    return std::nullopt;
  }

  const RoundId round_;
  const WorkerCommand command_;
  RawClient client_;
  std::thread thread_;
};

// Plays the guardian: reports what becomes of the workers on a thread of its own.
class ThreadRunner : public ProcessRunner {
 public:
  explicit ThreadRunner(ProcessObserver* observer)
      : observer_(*observer), thread_([this] { Serve(); }) {}
  ~ThreadRunner() override {
    tasks_.Post([this] { is_over_ = true; });
    thread_.join();
  }

  void Preload(PreloadCommand /*command*/) override {}
  void Spawn(RoundId round, std::vector<WorkerCommand> commands) override {
    tasks_.Post([this, round, commands = std::move(commands)] {
      EXPECT_TRUE(workers_.empty()) << "workers of an older round live";
      round_ = round;
      for (const WorkerCommand& command : commands) Start(command);
    });
  }
  void Stop(RoundId round, StopOptions /*options*/) override {
    tasks_.Post([this, round] {
      EXPECT_EQ(round, round_);
      is_stopping_ = true;
      for (const auto& worker : workers_) worker->Stop();
      ReportIfGone();
    });
  }
  void Signal(int signal) override { EXPECT_EQ(signal, SIGUSR1); }
  void SignalWorker(RoundId /*round*/, LocalRank /*local_rank*/, int /*signal*/) override {}
  void RenewDeadline(Instant /*deadline*/) override {}

 private:
  void Serve() {
    while (!is_over_) tasks_.Take(Duration::max())();
  }
  void Start(const WorkerCommand& command) {
    const LocalRank rank = command.local_rank;
    const int64_t pid = ++last_pid_;
    observer_.OnWorkerStarted(round_, rank, pid);
    workers_.push_back(std::make_unique<PlayedWorker>(
        round_, command, [this, round = round_, rank, pid](WorkerExit exit) {
          tasks_.Post([this, round, rank, pid, exit] {
            observer_.OnWorkerExited(round, rank, pid, exit, SystemClock().Now());
            ++exited_;
            ReportIfGone();
          });
        }));
  }
  void ReportIfGone() {
    if (!is_stopping_ || exited_ < workers_.size()) return;
    workers_.clear();
    exited_ = 0;
    is_stopping_ = false;
    observer_.OnGroupGone(round_, {});
  }

  ProcessObserver& observer_;
  TaskQueue tasks_;
  // The thread's own.
  RoundId round_;
  std::vector<std::unique_ptr<PlayedWorker>> workers_;
  size_t exited_ = 0;
  bool is_stopping_ = false;
  int64_t last_pid_ = 1000;
  bool is_over_ = false;
  std::thread thread_;
};

// Plays the rendezvous for this one node; another thread may break its streams. What a broken one
// swallowed is said again.
class PlayedRendezvous {
 public:
  explicit PlayedRendezvous(FakeRendezvousClient* client) : client_(*client) {}

  // Until the test sends a CheckpointStep, which no agent does unasked.
  void Serve() {
    while (!is_over_) {
      std::optional<AgentMessage> message = client_.NextSent(kPatience);
      if (!message) {
        ADD_FAILURE() << "the agent says nothing in round " << round_;
        break;
      }
      std::visit([this](const auto& m) { On(m); }, *message);
      heard_.Post([] {});
    }
    heard_.Post([this] { is_quiet_ = true; });
  }
  // Breaks every stream that lives for `messages` messages, as long as the job runs.
  void BreakStreams(int messages) {
    while (!is_quiet_) {
      for (int i = 0; i < messages && !is_quiet_; ++i) heard_.Take(Duration::max())();
      base::MutexLock lock(mutex_);
      if (std::exchange(is_attached_, false)) client_.Break(absl::UnavailableError("cut"));
    }
  }

 private:
  template <class Message>
  void On(const Message&) {}
  void On(const Attach& attach) {
    EXPECT_LE(attach.highest_round, RoundId(round_));
    {
      base::MutexLock lock(mutex_);
      is_attached_ = true;
    }
    Say(Attached{.lease = kPatience, .reconnect_timeout = kPatience});
    if (!attach.running) return Start(attach.highest_round.value + 1);
    EXPECT_EQ(attach.running->world, WorldOf(round_));
    if (is_stopping_) Stop();
  }
  void On(const Heartbeat& heartbeat) { Say(HeartbeatAck{heartbeat.sequence}); }
  void On(const WorkerFailed& failed) {
    EXPECT_EQ(failed.world, WorldOf(round_));
    Stop();
  }
  void On(const StopDone& done) {
    EXPECT_LE(done.world.round.value, round_);
    // The Attach on a newer stream may have said so before.
    if (done.world == WorldOf(round_)) Start(round_ + 1);
  }
  void On(const NodeSucceeded& succeeded) {
    EXPECT_EQ(succeeded.world, WorldOf(kRounds));
    Say(SuccessNoted{succeeded.world});
    Verdict verdict;
    verdict.succeeded = true;
    Say(JobEnded{verdict});
  }
  void On(const CheckpointStep&) { is_over_ = true; }

  static World WorldOf(uint64_t round) {
    World world;
    world.round = RoundId(round);
    world.id.bytes.fill(static_cast<uint8_t>(round));
    return world;
  }
  void Start(uint64_t round) {
    round_ = round;
    is_stopping_ = false;
    StartRound place;
    place.world = WorldOf(round);
    place.group_world_size = 1;
    place.world_size = kWorkers;
    place.master_address = "127.0.0.1";
    place.master_port = 4711;
    place.attempt = static_cast<int>(round) - 1;
    Say(place);
  }
  void Stop() {
    is_stopping_ = true;
    Say(StopRound{
        .world = WorldOf(round_), .cause = StopCause::kWorkerFailed, .reason = "a worker failed"});
  }
  // Only to an agent whose Attach on this stream was heard.
  void Say(const RendezvousMessage& message) {
    base::MutexLock lock(mutex_);
    if (is_attached_) client_.Deliver(message);
  }

  FakeRendezvousClient& client_;
  uint64_t round_ = 0;
  bool is_stopping_ = false;
  bool is_over_ = false;
  // One task for each message that was heard, for who breaks streams.
  TaskQueue heard_;
  bool is_quiet_ = false;
  base::Mutex mutex_;
  bool is_attached_ MUSTER_GUARDED_BY(mutex_) = false;
};

// What the agent owns; the double behind it lives as long as the test.
class SharedClient : public rendezvous::RendezvousClient {
 public:
  explicit SharedClient(FakeRendezvousClient* client) : client_(*client) {}
  uint64_t Connect() override { return client_.Connect(); }
  bool IsToOwnAddress() const override { return client_.IsToOwnAddress(); }
  void ProbeEndpoint(ProbeCallback done) override { client_.ProbeEndpoint(std::move(done)); }
  void Send(const AgentMessage& message) override { client_.Send(message); }
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
};

class AgentThreadsTest : public testing::Test {
 protected:
  AgentThreadsTest() {
    char name[] = "/tmp/agent_threads_test_XXXXXX";
    folder_ = mkdtemp(name);
    setenv("TMPDIR", folder_.c_str(), 1);
    output_ = open((folder_ / "console").c_str(), O_CREAT | O_TRUNC | O_RDWR | O_APPEND, 0600);
    AgentSettings settings;
    settings.core.attach.node_name = "n0";
    settings.core.attach.address = "127.0.0.1";
    settings.core.attach.worker_count = kWorkers;
    settings.core.attach.terms.run_id = "job";
    settings.core.endpoint = "127.0.0.1:1";
    settings.argv = {"played"};
    settings.program = "played";
    settings.stdout_fd = settings.stderr_fd = output_;
    AgentParts parts;
    // Once, in Run(): `client_` is there for others when the agent has sent its first message.
    parts.make_client = [this](rendezvous::SessionObserver* observer) {
      client_ = std::make_unique<FakeRendezvousClient>(observer);
      made_.Post([] {});
      return std::make_unique<SharedClient>(client_.get());
    };
    parts.make_runner = [](ProcessObserver* observer) {
      return std::make_unique<ThreadRunner>(observer);
    };
    agent_ = std::make_unique<Agent>(std::move(settings), std::move(parts));
  }
  ~AgentThreadsTest() override {
    close(output_);
    fs::remove_all(folder_);
  }

  // Runs the job over streams that break after so many messages; `meanwhile` runs beside it.
  Verdict Run(int messages, const std::function<void()>& meanwhile) {
    Verdict verdict;
    std::thread agent([&] { verdict = agent_->Run(); });
    made_.Take(Duration::max())();
    PlayedRendezvous rendezvous(client_.get());
    std::thread serving([&] { rendezvous.Serve(); });
    std::thread breaking([&] { rendezvous.BreakStreams(messages); });
    meanwhile();
    agent.join();
    client_->Connect();
    client_->Send(CheckpointStep{});
    serving.join();
    breaking.join();
    return verdict;
  }

  std::string Console() const {
    std::ifstream file(folder_ / "console");
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }

  fs::path folder_;
  int output_ = -1;
  TaskQueue made_;
  std::unique_ptr<Agent> agent_;
  // After the agent, which it reports to.
  std::unique_ptr<FakeRendezvousClient> client_;
};

TEST_F(AgentThreadsTest, GoesThroughItsRoundsWhateverElseHappens) {
  Verdict verdict = Run(7, [this] {
    for (int i = 0; i < 1000; ++i) agent_->ForwardSignal(SIGUSR1);
  });
  EXPECT_TRUE(verdict.succeeded) << verdict.reason;
  EXPECT_EQ(agent_->last_place().world.round, RoundId(kRounds));
  const std::string console = Console();
  for (int rank = 0; rank < kWorkers; ++rank) {
    const std::string line = "[default" + std::to_string(rank) + "]:a complaint\n";
    size_t count = 0;
    for (size_t at = 0; (at = console.find(line, at)) != std::string::npos; ++at) ++count;
    EXPECT_EQ(count, kRounds) << "of " << line << console;
  }
}

TEST_F(AgentThreadsTest, EndsWhenItIsToldToInTheMiddle) {
  Verdict verdict = Run(5, [this] {
    // In some round; which one is chance.
    while (!client_->WaitForConnects(4, kPatience)) FAIL() << "no stream was broken";
    std::thread other([this] { agent_->RequestStop(SIGINT); });
    agent_->RequestStop(SIGINT);
    other.join();
  });
  EXPECT_EQ(verdict.exit_code, 128 + SIGINT) << verdict.reason;
}

}  // namespace
}  // namespace muster::agent
