#include "worker_sdk/checkpoint/checkpoint_store.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/entropy.h"
#include "worker_sdk/checkpoint/fake_file_system.h"
#include "worker_sdk/collectives/cpu/group_rig.h"
#include "worker_sdk/context/memory_store.h"

namespace muster {
namespace {

// A worker of a world of `ranks`, whose rendezvous answers what the test says.
class FakeContext : public Context {
 public:
  FakeContext(int rank, int ranks, World world) : rank_(rank), ranks_(ranks), world_(world) {}

  int rank() const override { return rank_; }
  int world_size() const override { return ranks_; }
  int local_rank() const override { return rank_; }
  int device_index() const override { return rank_; }
  int local_world_size() const override { return ranks_; }
  int attempt() const override { return 0; }
  int restarts_charged() const override { return 0; }
  bool is_launched() const override { return true; }
  const World& world() const override { return world_; }
  const RoundKey& key() const override { return key_; }
  const std::string& address() const override { return address_; }
  const std::optional<Commit>& resume() const override { return resume_; }
  Store& store() override { return store_; }
  AbortSignal& abort_signal() override { return abort_; }
  PeerWaits& peer_waits() override { return peer_waits_; }
  void StepDone(int64_t /*step*/) override {}
  bool ShouldSave(int64_t /*step*/) override { return false; }
  Status ReportShard(const Commit& commit, int shard_count) override {
    calls += "shard " + std::to_string(commit.step) + " of " + std::to_string(shard_count) + "\n";
    last_commit = commit;
    return grant;
  }
  Status ReportCommit(const Commit& commit) override {
    calls += "commit " + std::to_string(commit.step) + "\n";
    return commit == last_commit ? note : Status(StatusCode::kInternal, "another commit");
  }

  Status grant;
  Status note;
  std::string calls;
  Commit last_commit;
  std::optional<Commit> resume_;

 private:
  int rank_;
  int ranks_;
  World world_;
  RoundKey key_;
  std::string address_ = "127.0.0.1";
  MemoryStore store_;
  AbortSignal abort_;
  PeerWaits peer_waits_;
};

// What one rank of the test's job has, and does with its store.
struct RankRun {
  FakeContext& context;
  ProcessGroup& group;
  CheckpointStore& store;

  Status Save(int64_t step) {
    const std::vector<float> weights(10, static_cast<float>(step));
    const std::vector<int64_t> count = {step};
    return store.Save({.step = step,
                       .epoch = step / 100,
                       .tensors = {{.name = "weights", .data = View(weights), .shape = {2, 5}},
                                   {.name = "count", .data = View(count)}},
                       .sampler = SamplerState{.seed = 5, .epoch = 1, .position = 64},
                       .random_state = "random of " + std::to_string(group.rank()),
                       .extras = {{"learning_rate", "0.125"}}});
  }
};

class CheckpointStoreTest : public testing::Test {
 protected:
  // Runs `body` on every rank of a new round, with a store opened on `files_`.
  void Round(int ranks, const std::function<void(RankRun)>& body) {
    ++round_;
    const World world{.round = RoundId(round_), .id = base::FreshId<WorldId>()};
    cpu::GroupRig rig(ranks);
    rig.Run([&](ProcessGroup& group) {
      FakeContext context(group.rank(), ranks, world);
      context.resume_ = resume_;
      auto store = CheckpointStore::Open(context, group, Options());
      ASSERT_TRUE(store.ok()) << store.status().message();
      body({context, group, **store});
    });
  }
  CheckpointStore::Options Options() {
    return {.directory = "/run",
            .keep = 2,
            .file_system = &files_,
            .warn = [this](const std::string& text) { warnings_ += text + "\n"; }};
  }

  FakeFileSystem files_;
  std::string warnings_;
  std::optional<Commit> resume_;
  uint64_t round_ = 0;
};

TEST_F(CheckpointStoreTest, EveryRankLoadsWhatWasSaved) {
  Round(3, [](RankRun run) {
    const auto nothing = run.store.Load();
    ASSERT_TRUE(nothing.ok()) << nothing.status().message();
    EXPECT_FALSE(nothing->has_value());
    ASSERT_TRUE(run.Save(100).ok());
    const Status saved = run.Save(200);
    ASSERT_TRUE(saved.ok()) << saved.message();
    EXPECT_EQ(run.context.calls, run.group.rank() == 0
                                     ? "shard 100 of 1\ncommit 100\nshard 200 of 1\ncommit 200\n"
                                     : "");
  });
  Round(4, [](RankRun run) {
    auto loaded = run.store.Load();
    ASSERT_TRUE(loaded.ok()) << loaded.status().message();
    ASSERT_TRUE(loaded->has_value());
    const LoadedCheckpoint& checkpoint = **loaded;
    EXPECT_EQ(checkpoint.step(), 200);
    EXPECT_EQ(checkpoint.epoch(), 2);
    EXPECT_EQ(checkpoint.world_size(), 3);
    EXPECT_EQ(checkpoint.sampler()->position, 64U);
    EXPECT_EQ(checkpoint.extras().at("learning_rate"), "0.125");
    EXPECT_EQ(checkpoint.random_state(2), "random of 2");
    EXPECT_EQ(checkpoint.random_state(3), "");
    std::vector<float> weights(10);
    ASSERT_TRUE(checkpoint.CopyTo("weights", MutableView(weights)).ok());
    EXPECT_EQ(weights, std::vector<float>(10, 200));
    std::vector<int64_t> count(1);
    ASSERT_TRUE(checkpoint.CopyTo("count", MutableView(count)).ok());
    EXPECT_EQ(count[0], 200);
  });
  EXPECT_EQ(warnings_, "");
}

TEST_F(CheckpointStoreTest, TheManifestNamesTheAncestor) {
  Round(1, [](RankRun run) { ASSERT_TRUE(run.Save(100).ok()); });
  Round(2, [](RankRun run) {
    auto first = run.store.Load();
    ASSERT_TRUE(first.ok() && first->has_value());
    EXPECT_EQ((*first)->manifest().parent, "");
    ASSERT_TRUE(run.Save(150).ok());
    auto second = run.store.Load();
    ASSERT_TRUE(second.ok() && second->has_value());
    EXPECT_EQ((*second)->step(), 150);
    EXPECT_EQ((*second)->manifest().parent, (*first)->name());
  });
}

TEST_F(CheckpointStoreTest, ARefusedGrantPublishesNothing) {
  Round(2, [](RankRun run) {
    ASSERT_TRUE(run.Save(100).ok());
    run.context.grant = Status::PeerLost(1, "round 1 is over");
    const Status refused = run.Save(200);
    EXPECT_EQ(refused.code(), StatusCode::kAborted) << run.group.rank();
    EXPECT_EQ(refused.lost_rank(), 1) << run.group.rank();
    EXPECT_NE(refused.message().find("step 200"), std::string::npos);
    EXPECT_NE(refused.message().find("round 1 is over"), std::string::npos);
    auto loaded = run.store.Load();
    ASSERT_TRUE(loaded.ok() && loaded->has_value());
    EXPECT_EQ((*loaded)->step(), 100);
  });
  EXPECT_EQ(files_.ListDirectory("/run")->size(), 1U);
}

TEST_F(CheckpointStoreTest, AnUnnotedCommitIsAnError) {
  Round(2, [](RankRun run) {
    run.context.note = Status(StatusCode::kAborted, "round 1 is over");
    EXPECT_EQ(run.Save(100).code(), StatusCode::kAborted);
  });
}

TEST_F(CheckpointStoreTest, TheCommittedOneIsLoaded) {
  std::string committed;
  Round(2, [&](RankRun run) {
    ASSERT_TRUE(run.Save(100).ok());
    if (run.group.rank() == 0) committed = run.context.last_commit.directory;
    ASSERT_TRUE(run.Save(200).ok());
  });
  EXPECT_EQ(committed.find("/run/step-100.r1-"), 0U);
  resume_ = Commit{.step = 100, .directory = committed};
  Round(2, [](RankRun run) {
    auto loaded = run.store.Load();
    ASSERT_TRUE(loaded.ok() && loaded->has_value());
    EXPECT_EQ((*loaded)->step(), 100);
  });
}

TEST_F(CheckpointStoreTest, AllRanksHearThatNothingIsValid) {
  resume_ = Commit{.step = 5, .directory = "/run/step-5.r1-lost"};
  Round(3, [](RankRun run) {
    const auto loaded = run.store.Load();
    EXPECT_EQ(loaded.status().code(), StatusCode::kDataLoss);
    EXPECT_NE(loaded.status().message().find("step-5.r1-lost"), std::string::npos);
  });
}

TEST_F(CheckpointStoreTest, SavingAStepAgainDoesNothing) {
  Round(2, [](RankRun run) {
    ASSERT_TRUE(run.Save(100).ok());
    EXPECT_TRUE(run.Save(100).ok());
    EXPECT_EQ(run.context.calls, run.group.rank() == 0 ? "shard 100 of 1\ncommit 100\n" : "");
  });
}

TEST_F(CheckpointStoreTest, AFullDiskLeavesTheOlderOnesAndIsSaidToAll) {
  Round(2, [&](RankRun run) {
    ASSERT_TRUE(run.Save(100).ok());
    ASSERT_TRUE(run.group.Barrier().Wait().ok());
    // The second call of a save after its listing makes the directory, then come shard and bytes.
    if (run.group.rank() == 0) files_.FailAt(files_.operations() + 3, FakeFileSystem::NoSpace());
    const Status full = run.Save(200);
    EXPECT_EQ(full.code(), StatusCode::kResourceExhausted) << full.message();
    EXPECT_NE(full.message().find("No space left on device"), std::string::npos);
    ASSERT_TRUE(run.Save(300).ok());
    auto loaded = run.store.Load();
    ASSERT_TRUE(loaded.ok() && loaded->has_value());
    EXPECT_EQ((*loaded)->step(), 300);
  });
  EXPECT_EQ(files_.ListDirectory("/run")->size(), 2U);
}

TEST_F(CheckpointStoreTest, RefusesSnapshotsThatCantBe) {
  Round(1, [](RankRun run) {
    const std::vector<float> data(4);
    const auto code = [&](const Snapshot& snapshot) { return run.store.Save(snapshot).code(); };
    EXPECT_EQ(code({.step = -1}), StatusCode::kInvalidArgument);
    EXPECT_EQ(code({.step = 1, .tensors = {{.name = "", .data = View(data)}}}),
              StatusCode::kInvalidArgument);
    EXPECT_EQ(code({.step = 1, .tensors = {{.name = "a", .data = View(data), .shape = {5}}}}),
              StatusCode::kInvalidArgument);
    EXPECT_EQ(code({.step = 1, .tensors = {}, .random_state = std::string(70000, 'x')}),
              StatusCode::kInvalidArgument);
  });
  EXPECT_TRUE(files_.ListDirectory("/run")->empty());
}

TEST_F(CheckpointStoreTest, AnUnusableDirectoryIsSaidToAllRanks) {
  files_.Put("/run", "a file");
  cpu::GroupRig rig(3);
  rig.Run([&](ProcessGroup& group) {
    FakeContext context(group.rank(), 3, {.round = RoundId(1), .id = base::FreshId<WorldId>()});
    const auto store = CheckpointStore::Open(context, group, Options());
    EXPECT_EQ(store.status().code(), StatusCode::kFailedPrecondition);
    EXPECT_NE(store.status().message().find("/run can't be used"), std::string::npos);
    CheckpointStore::Options unnamed;
    EXPECT_EQ(CheckpointStore::Open(context, group, unnamed).status().code(),
              StatusCode::kInvalidArgument);
    EXPECT_EQ(CheckpointStore::Open(context, group, {.directory = "/x", .keep = 0}).status().code(),
              StatusCode::kInvalidArgument);
  });
}

TEST_F(CheckpointStoreTest, ALostPeerEndsASave) {
  cpu::GroupRig rig(2);
  rig.Run([&](ProcessGroup& group) {
    FakeContext context(group.rank(), 2, {.round = RoundId(1), .id = base::FreshId<WorldId>()});
    auto store = CheckpointStore::Open(context, group, Options());
    ASSERT_TRUE(store.ok());
    // Who is there has opened it; opening takes part in collectives, which an abort would end.
    (void)group.Barrier().Wait();
    if (group.rank() == 1) return;  // Gone before the save.
    rig.abort(0).Raise(1, "rank 1 was killed");
    EXPECT_EQ((*store)->Save({.step = 1}).code(), StatusCode::kAborted);
    EXPECT_EQ((*store)->Load().status().code(), StatusCode::kAborted);
  });
  EXPECT_TRUE(files_.ListDirectory("/run")->empty());
}

// On the machine's own files, with a relative path.
TEST_F(CheckpointStoreTest, WorksOnRealFiles) {
  std::string root = std::string(std::getenv("TEST_TMPDIR")) + "/store.XXXXXX";
  ASSERT_NE(mkdtemp(root.data()), nullptr);
  cpu::GroupRig rig(2);
  rig.Run([&](ProcessGroup& group) {
    FakeContext context(group.rank(), 2, {.round = RoundId(1), .id = base::FreshId<WorldId>()});
    const std::string relative = std::filesystem::relative(root).string() + "/a/b/";
    auto store = CheckpointStore::Open(context, group, {.directory = relative});
    ASSERT_TRUE(store.ok()) << store.status().message();
    RankRun run{context, group, **store};
    ASSERT_TRUE(run.Save(100).ok());
    const std::string directory = context.last_commit.directory;
    EXPECT_TRUE(group.rank() != 0 || directory.starts_with(root + "/a/b/step-100")) << directory;
    auto loaded = (*store)->Load();
    ASSERT_TRUE(loaded.ok() && loaded->has_value());
    EXPECT_EQ((*loaded)->step(), 100);
  });
  std::filesystem::remove_all(root);
}

}  // namespace
}  // namespace muster
