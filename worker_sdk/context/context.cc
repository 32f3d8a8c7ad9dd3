#include "worker_sdk/context/context.h"

#include <cstdlib>
#include <utility>

#include "base/entropy.h"
#include "base/env.h"
#include "worker_sdk/context/agent_channel.h"
#include "worker_sdk/context/environment.h"
#include "worker_sdk/context/memory_store.h"
#include "worker_sdk/context/stack_dump.h"

namespace muster {
namespace {

// A set key is acknowledged by the rendezvous; it may be restarting.
constexpr std::chrono::milliseconds kSetPatience = std::chrono::seconds(60);
// What an answer may take beyond the wait that was asked for.
constexpr std::chrono::milliseconds kAnswerSlack = std::chrono::seconds(60);

// The round's table, over the agent.
class AgentStore : public Store {
 public:
  explicit AgentStore(AgentChannel& channel) : channel_(channel) {}

  Status Set(const std::string& key, const std::string& value) override {
    if (value.size() > MemoryStore::kMaxValue) {
      return {StatusCode::kInvalidArgument,
              "the value of key '" + key + "' has " + std::to_string(value.size()) +
                  " bytes; at most " + std::to_string(MemoryStore::kMaxValue) + " are kept"};
    }
    return channel_.Call(worker_channel::SetKey{0, key, value}, kSetPatience).status();
  }

  Result<std::string> Get(const std::string& key, std::chrono::milliseconds wait) override {
    return channel_.Call(worker_channel::GetKey{0, key, wait.count()}, wait + kAnswerSlack);
  }

 private:
  AgentChannel& channel_;
};

// A worker of `muster run`.
class LaunchedContext : public Context {
 public:
  static Result<std::unique_ptr<Context>> Create(const AgentAddress& agent) {
    std::unique_ptr<LaunchedContext> context(new LaunchedContext);
    Result<std::unique_ptr<AgentChannel>> channel = AgentChannel::Open(agent, context->abort_);
    if (!channel.ok()) return channel.status();
    context->channel_ = *std::move(channel);
    context->device_index_ = agent.device_index.value_or(context->local_rank());
    context->store_ = std::make_unique<AgentStore>(*context->channel_);
    return std::unique_ptr<Context>(std::move(context));
  }

  int rank() const override { return welcome().rank.value; }
  int world_size() const override { return welcome().world_size; }
  int local_rank() const override { return welcome().local_rank.value; }
  int device_index() const override { return device_index_; }
  int local_world_size() const override { return welcome().local_world_size; }
  int attempt() const override { return welcome().attempt; }
  int restarts_charged() const override { return welcome().restarts_charged; }
  bool is_launched() const override { return true; }
  const World& world() const override { return welcome().world; }
  const RoundKey& key() const override { return welcome().key; }
  const std::string& address() const override { return welcome().address; }
  const std::optional<Commit>& resume() const override { return welcome().resume; }
  Store& store() override { return *store_; }
  AbortSignal& abort_signal() override { return abort_; }
  PeerWaits& peer_waits() override { return channel_->peer_waits(); }

  void StepDone(int64_t step) override { (void)channel_->StepDone(step, /*can_save=*/false); }
  bool ShouldSave(int64_t step) override { return channel_->StepDone(step, /*can_save=*/true); }
  Status ReportShard(const Commit& commit, int shard_count) override {
    return channel_->Call(worker_channel::ShardDone{0, shard_count, commit}, std::nullopt).status();
  }
  Status ReportCommit(const Commit& commit) override {
    return channel_->Call(worker_channel::CommitPublished{0, commit}, std::nullopt).status();
  }

 private:
  LaunchedContext() = default;
  const worker_channel::Welcome& welcome() const { return channel_->welcome(); }

  AbortSignal abort_;
  std::unique_ptr<AgentChannel> channel_;
  int device_index_ = 0;
  std::unique_ptr<AgentStore> store_;
};

// A world of one that nobody launched.
class SoloContext : public Context {
 public:
  int rank() const override { return 0; }
  int world_size() const override { return 1; }
  int local_rank() const override { return 0; }
  int device_index() const override { return 0; }
  int local_world_size() const override { return 1; }
  int attempt() const override { return 0; }
  int restarts_charged() const override { return 0; }
  bool is_launched() const override { return false; }
  const World& world() const override { return world_; }
  const RoundKey& key() const override { return key_; }
  const std::string& address() const override { return address_; }
  const std::optional<Commit>& resume() const override { return resume_; }
  Store& store() override { return store_; }
  AbortSignal& abort_signal() override { return abort_; }
  PeerWaits& peer_waits() override { return peer_waits_; }
  void StepDone(int64_t /*step*/) override {}
  bool ShouldSave(int64_t /*step*/) override { return false; }
  Status ReportShard(const Commit& /*commit*/, int /*shard_count*/) override { return {}; }
  Status ReportCommit(const Commit& /*commit*/) override { return {}; }

 private:
  const World world_{RoundId(1), base::FreshId<WorldId>()};
  const RoundKey key_ = base::FreshId<RoundKey>();
  const std::string address_ = "127.0.0.1";
  const std::optional<Commit> resume_;
  MemoryStore store_;
  AbortSignal abort_;
  PeerWaits peer_waits_;
};

}  // namespace

Result<std::unique_ptr<Context>> Context::Create() {
  Result<std::optional<AgentAddress>> agent = ReadEnvironment(std::getenv);
  if (!agent.ok()) return agent.status();
  if (*agent) {
    InstallStackDump(std::getenv(env::kStackSignal));
    return LaunchedContext::Create(**agent);
  }
  return std::unique_ptr<Context>(std::make_unique<SoloContext>());
}

}  // namespace muster
