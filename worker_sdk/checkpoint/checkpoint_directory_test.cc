#include "worker_sdk/checkpoint/checkpoint_directory.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "worker_sdk/checkpoint/fake_file_system.h"
#include "worker_sdk/data/random_stream.h"

namespace muster {
namespace {

constexpr char kPath[] = "/shared/run";
constexpr char kShard[] = "shard-00000-of-00001.safetensors";
constexpr size_t kElements = 50;

WorldId WorldOf(uint8_t number) {
  WorldId id;
  id.bytes.fill(number);
  return id;
}

// One life of rank 0 in round `round`, world `round`.
class Life {
 public:
  Life(FakeFileSystem& files, uint8_t round, uint8_t world = 0)
      : round_(round), world_(WorldOf(world == 0 ? round : world)) {
    auto opened = CheckpointDirectory::Open(
        files, kPath, world_, [this](const std::string& text) { warnings += text + "\n"; });
    status = opened.status();
    if (opened.ok()) directory = *std::move(opened);
  }

  std::string NameOf(int64_t step) const {
    return CheckpointName{.step = step, .round = RoundId(round_), .world_id = world_}.ToString();
  }
  std::string PathOf(int64_t step) const { return std::string(kPath) + "/" + NameOf(step); }

  // Two tensors, every element of both the step: a mix of two steps shows.
  Status Save(int64_t step, int keep = 2) {
    if (directory == nullptr) return status;
    Status saved = Write(step);
    directory->Discard();
    if (saved.ok()) directory->RemoveOld(keep);
    return saved;
  }
  // The newest step, -1 for none, -2 for an error (in `status`), -3 for a mix.
  int64_t Newest(const std::string& preferred = "") {
    if (directory == nullptr) return -2;
    const auto found = directory->FindNewest(preferred);
    status = found.status();
    if (!found.ok()) return -2;
    if (!found->has_value()) return -1;
    for (const char* name : {"a", "b"}) {
      std::vector<int64_t> values(kElements);
      if (!(*found)->CopyTo(name, MutableView(values)).ok()) return -3;
      if (values != std::vector<int64_t>(kElements, (*found)->step())) return -3;
    }
    return (*found)->step();
  }

  std::unique_ptr<CheckpointDirectory> directory;
  Status status;
  std::string warnings;

 private:
  Status Write(int64_t step) {
    const CheckpointName name{.step = step, .round = RoundId(round_), .world_id = world_};
    Status done = directory->Begin(name);
    if (!done.ok()) return done;
    std::string header;
    const auto layout = safetensors::Plan({{.name = "a", .dtype = "I64", .shape = {kElements}},
                                           {.name = "b", .dtype = "I64", .shape = {kElements}}},
                                          &header);
    const std::vector<int64_t> values(kElements, step);
    auto shard = directory->WriteShard(kShard, header, *layout, {values.data(), values.data()});
    if (!shard.ok()) return shard.status();
    done = directory->SealShards();
    if (!done.ok()) return done;
    Manifest manifest;
    manifest.name = name.ToString();
    manifest.step = step;
    manifest.generation = directory->generation();
    manifest.round = round_;
    manifest.shards = {*std::move(shard)};
    return directory->Publish(manifest);
  }

  uint8_t round_;
  WorldId world_;
};

std::vector<std::string> NamesIn(FakeFileSystem& files) {
  const auto names = files.ListDirectory(kPath);
  return names.ok() ? *names : std::vector<std::string>{};
}

TEST(CheckpointDirectory, IsMadeWithItsParentsAndEmptyAtFirst) {
  FakeFileSystem files;
  Life life(files, 1);
  ASSERT_TRUE(life.status.ok()) << life.status.message();
  EXPECT_EQ(life.Newest(), -1);
  EXPECT_TRUE(NamesIn(files).empty());
}

TEST(CheckpointDirectory, FindsTheNewestOfAWorld) {
  FakeFileSystem files;
  Life life(files, 1);
  ASSERT_TRUE(life.Save(90).ok());
  ASSERT_TRUE(life.Save(100).ok());
  EXPECT_EQ(life.Newest(), 100);
  EXPECT_EQ(life.warnings, "");
}

TEST(CheckpointDirectory, ALaterRoundIsNewerThanALaterStep) {
  FakeFileSystem files;
  ASSERT_TRUE(Life(files, 1).Save(400).ok());
  ASSERT_TRUE(Life(files, 2).Save(350).ok());
  EXPECT_EQ(Life(files, 3).Newest(), 350);
}

// A new job's rounds begin again at 1; what it trained on from round 7 is newer all the same.
TEST(CheckpointDirectory, ALaterJobIsNewerThanALaterRound) {
  FakeFileSystem files;
  ASSERT_TRUE(Life(files, 7).Save(400).ok());
  ASSERT_TRUE(Life(files, 1, /*world=*/77).Save(410).ok());
  EXPECT_EQ(Life(files, 1, /*world=*/78).Newest(), 410);
}

TEST(CheckpointDirectory, TheCommittedOneIsPreferred) {
  FakeFileSystem files;
  Life first(files, 1);
  ASSERT_TRUE(first.Save(300).ok());
  ASSERT_TRUE(first.Save(400).ok());
  Life second(files, 2);
  EXPECT_EQ(second.Newest(first.NameOf(300)), 300);
  EXPECT_EQ(second.warnings, "");
}

TEST(CheckpointDirectory, KeepsTheNewestValidOnes) {
  FakeFileSystem files;
  Life life(files, 1);
  for (int64_t step : {10, 20, 30, 40}) ASSERT_TRUE(life.Save(step, /*keep=*/2).ok());
  EXPECT_EQ(NamesIn(files), (std::vector<std::string>{life.NameOf(30), life.NameOf(40)}));
}

TEST(CheckpointDirectory, DamagedOnesDontCountAsKept) {
  FakeFileSystem files;
  Life life(files, 1);
  for (int64_t step : {10, 20, 30}) ASSERT_TRUE(life.Save(step, /*keep=*/3).ok());
  files.Contents(life.PathOf(30) + "/" + kShard).pop_back();
  files.Contents(life.PathOf(20) + "/manifest.json").pop_back();
  life.directory->RemoveOld(1);
  EXPECT_TRUE(files.Exists(life.PathOf(10)));
  EXPECT_EQ(life.Newest(), 10);
}

TEST(CheckpointDirectory, LeavesForeignThingsAlone) {
  FakeFileSystem files;
  Life life(files, 1);
  ASSERT_TRUE(life.Save(10, 1).ok());
  files.Put(std::string(kPath) + "/notes.txt", "mine");
  ASSERT_TRUE(files.CreateDirectory(std::string(kPath) + "/step-5").ok());
  ASSERT_TRUE(files.CreateDirectory(std::string(kPath) + "/other.tmp").ok());
  files.Put(life.PathOf(10) + "/notes.txt", "mine too");
  ASSERT_TRUE(life.Save(20, 1).ok());
  ASSERT_TRUE(life.Save(30, 1).ok());
  Life(files, 2).Newest();
  EXPECT_EQ(NamesIn(files), (std::vector<std::string>{"notes.txt", "other.tmp", life.NameOf(10),
                                                      life.NameOf(30), "step-5"}));
  EXPECT_TRUE(files.Exists(life.PathOf(10) + "/" + kShard));
}

TEST(CheckpointDirectory, AnUnfinishedOneWithForeignFilesStaysWithAWarning) {
  FakeFileSystem files;
  Life first(files, 1);
  const std::string stale = first.PathOf(5) + ".tmp";
  ASSERT_TRUE(files.CreateDirectory(stale).ok());
  files.Put(stale + "/notes.txt", "mine");
  Life second(files, 2);
  EXPECT_TRUE(files.Exists(stale + "/notes.txt"));
  EXPECT_NE(second.warnings.find("notes.txt"), std::string::npos) << second.warnings;
}

TEST(CheckpointDirectory, NeverWritesANameTwice) {
  FakeFileSystem files;
  Life life(files, 1);
  ASSERT_TRUE(life.Save(10).ok());
  EXPECT_EQ(life.Save(10).code(), StatusCode::kAlreadyExists);
  EXPECT_EQ(life.Newest(), 10);
}

TEST(CheckpointDirectory, ARenamedCopyIsNotTakenForAnother) {
  FakeFileSystem files;
  Life life(files, 1);
  ASSERT_TRUE(life.Save(10).ok());
  ASSERT_TRUE(files.Rename(life.PathOf(10), life.PathOf(99)).ok());
  EXPECT_EQ(life.Newest(), -2);
  EXPECT_NE(life.status.message().find("renamed copy"), std::string::npos);
}

// Every byte of both files, one bit each.
TEST(CheckpointDirectory, AFlippedBitAnywhereIsNamedAndTheOlderOneIsUsed) {
  FakeFileSystem files;
  Life life(files, 1);
  ASSERT_TRUE(life.Save(10).ok());
  ASSERT_TRUE(life.Save(20).ok());
  for (const char* file : {kShard, "manifest.json"}) {
    const std::string path = life.PathOf(20) + "/" + file;
    for (size_t i = 0; i < files.Contents(path).size(); ++i) {
      char& byte = files.Contents(path)[i];
      byte = static_cast<char>(byte ^ (1 << i % 8));
      Life reader(files, 2);
      ASSERT_EQ(reader.Newest(), 10) << path << " at " << i;
      ASSERT_NE(reader.warnings.find(path), std::string::npos) << reader.warnings;
      byte = static_cast<char>(byte ^ (1 << i % 8));
    }
  }
  std::string& shard = files.Contents(life.PathOf(20) + "/" + kShard);
  shard.back() = 'x';
  Life reader(files, 2);
  EXPECT_EQ(reader.Newest(), 10);
  EXPECT_NE(reader.warnings.find("damaged in tensor \"b\""), std::string::npos) << reader.warnings;
  EXPECT_NE(reader.warnings.find("restore it from a copy or remove it"), std::string::npos);
  EXPECT_NE(reader.warnings.find("going on from checkpoint " + life.NameOf(10)),
            std::string::npos);
}

TEST(CheckpointDirectory, CutOffAndMissingFilesAreNamed) {
  FakeFileSystem files;
  Life life(files, 1);
  ASSERT_TRUE(life.Save(10).ok());
  files.Contents(life.PathOf(10) + "/" + kShard).pop_back();
  EXPECT_EQ(life.Newest(), -2);
  EXPECT_EQ(life.status.code(), StatusCode::kDataLoss);
  EXPECT_NE(life.status.message().find("cut off"), std::string::npos);
  files.Contents(life.PathOf(10) + "/" + kShard) += "xyz";
  EXPECT_EQ(life.Newest(), -2);
  ASSERT_TRUE(files.RemoveFile(life.PathOf(10) + "/" + kShard).ok());
  EXPECT_EQ(life.Newest(), -2);
  EXPECT_NE(life.status.message().find("start anew in another directory"), std::string::npos);
}

TEST(CheckpointDirectory, ACommittedOneThatIsGoneIsNotPassedOverInSilence) {
  FakeFileSystem files;
  Life life(files, 1);
  EXPECT_EQ(life.Newest("step-9.r1-gone"), -2);
  EXPECT_EQ(life.status.code(), StatusCode::kDataLoss);
  EXPECT_NE(life.status.message().find("step-9.r1-gone"), std::string::npos);
  ASSERT_TRUE(life.Save(5).ok());
  EXPECT_EQ(life.Newest("step-9.r1-gone"), 5);
  EXPECT_NE(life.warnings.find("step-9.r1-gone"), std::string::npos);
}

TEST(CheckpointDirectory, ADirectoryThatCantBeWrittenIsSaidAtOnce) {
  FakeFileSystem files;
  files.FailAt(0, FakeFileSystem::ReadOnly());
  const Life life(files, 1);
  EXPECT_EQ(life.status.code(), StatusCode::kFailedPrecondition);
  EXPECT_NE(life.status.message().find("the checkpoint directory /shared/run can't be used"),
            std::string::npos);
  EXPECT_NE(life.status.message().find("Read-only file system"), std::string::npos);

  FakeFileSystem with_file;
  with_file.Put("/shared", "a file");
  EXPECT_EQ(Life(with_file, 1).status.code(), StatusCode::kFailedPrecondition);
}

// What a run has when it is disturbed at call `at`: steps 10..50, keeping two.
struct Disturbed {
  FakeFileSystem files;
  bool was_reached = false;
  int64_t last_saved = -1;
  int64_t last_tried = -1;
  StatusCode failed = StatusCode::kOk;

  void Run(uint64_t at, const FakeFileSystem::Fault& fault) {
    files.FailAt(at, fault);
    Life life(files, 1);
    if (life.status.ok()) {
      life.Newest();
      for (int64_t step : {10, 20, 30, 40, 50}) {
        last_tried = step;
        const Status saved = life.Save(step);
        if (saved.ok()) last_saved = step;
        if (!saved.ok()) failed = saved.code();
        if (!saved.ok() && fault.is_fatal) break;
      }
    }
    was_reached = files.operations() > at;
    files.Revive();
  }
  // The next world finds the last one that was reported saved, or the one that was being published;
  // goes on from there, and leaves nothing unfinished behind.
  void ExpectSound() {
    Life next(files, 2);
    ASSERT_TRUE(next.status.ok()) << next.status.message();
    const int64_t newest = next.Newest();
    ASSERT_TRUE(newest == last_saved || (newest == last_tried && last_tried > last_saved))
        << newest << " after " << last_saved << ", " << next.status.message() << next.warnings;
    ASSERT_EQ(next.warnings, "");
    ASSERT_TRUE(next.Save(60).ok());
    ASSERT_EQ(next.Newest(), 60);
    for (const std::string& name : NamesIn(files)) {
      ASSERT_TRUE(CheckpointName::Parse(name).has_value()) << name;
    }
    ASSERT_LE(NamesIn(files).size(), 2U);
  }
};

TEST(CheckpointDirectory, SurvivesAKillBetweenAnyTwoCalls) {
  uint64_t at = 0;
  for (bool was_reached = true; was_reached; ++at) {
    for (const auto& fault : {FakeFileSystem::Killed(), FakeFileSystem::KilledHalfway()}) {
      SCOPED_TRACE(at);
      Disturbed run;
      run.Run(at, fault);
      was_reached = run.was_reached;
      run.ExpectSound();
      if (HasFatalFailure()) return;
    }
  }
  EXPECT_GT(at, 80U);
}

TEST(CheckpointDirectory, SurvivesAPowerCutBetweenAnyTwoCalls) {
  uint64_t at = 0;
  for (bool was_reached = true; was_reached; ++at) {
    for (uint64_t seed = 0; seed < 20; ++seed) {
      SCOPED_TRACE(testing::Message() << "call " << at << " seed " << seed);
      Disturbed run;
      run.Run(at, FakeFileSystem::KilledHalfway());
      was_reached = run.was_reached;
      RandomStream random(seed, at);
      run.files.LosePower(random);
      run.ExpectSound();
      if (HasFatalFailure()) return;
    }
  }
}

TEST(CheckpointDirectory, SurvivesAnErrorInAnyCall) {
  uint64_t at = 0;
  for (bool was_reached = true; was_reached; ++at) {
    for (const auto& fault :
         {FakeFileSystem::NoSpace(), FakeFileSystem::IoError(), FakeFileSystem::ReadOnly()}) {
      SCOPED_TRACE(testing::Message() << "call " << at << " " << fault.reason);
      Disturbed run;
      run.Run(at, fault);
      was_reached = run.was_reached;
      ASSERT_TRUE(run.failed == StatusCode::kOk || run.failed == fault.code);
      run.ExpectSound();
      if (HasFatalFailure()) return;
    }
  }
}

}  // namespace
}  // namespace muster
