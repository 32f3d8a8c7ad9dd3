#include "agent/run_record.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>

#include "gtest/gtest.h"

namespace muster::agent {
namespace {

namespace fs = std::filesystem;

class RunRecordTest : public testing::Test {
 protected:
  RunRecordTest() : folder_(testing::TempDir() + "/run_record_XXXXXX") {
    EXPECT_NE(mkdtemp(folder_.data()), nullptr);
  }
  ~RunRecordTest() override { fs::remove_all(folder_); }

  std::string folder_;
};

TEST_F(RunRecordTest, IsReadAsItWasWritten) {
  EXPECT_FALSE(ReadRunRecord(folder_));
  const RunRecord::Attempt first = {0, 4, 2, 8, 4, "0123"}, second = {1, 0, 2, 4, 2, "4567"};
  RunRecordWriter writer(folder_, "node 1\n(10.0.0.1)");
  writer.Note(first);
  writer.Note(second);
  std::optional<RunRecord> record = ReadRunRecord(folder_);
  ASSERT_TRUE(record);
  EXPECT_EQ(record->node, "node 1 (10.0.0.1)");
  EXPECT_EQ(record->boot_id, BootId());
  EXPECT_TRUE(record->is_locked);
  EXPECT_EQ(record->attempts, (std::vector{first, second}));
  EXPECT_FALSE(record->end);
  writer.Note(RunRecord::End{.exit_code = 75});
  EXPECT_EQ(ReadRunRecord(folder_)->end, (RunRecord::End{75, false}));
  EXPECT_FALSE(fs::exists(folder_ + "/.muster_run.new"));
}

TEST_F(RunRecordTest, IsLetGoByAWriterThatIsGone) {
  EXPECT_FALSE(IsRunRecordLetGo(folder_));
  auto writer = std::make_unique<RunRecordWriter>(folder_, "n");
  EXPECT_FALSE(IsRunRecordLetGo(folder_));
  writer.reset();
  EXPECT_TRUE(IsRunRecordLetGo(folder_));
  // Looking takes nothing.
  EXPECT_TRUE(IsRunRecordLetGo(folder_));
}

TEST_F(RunRecordTest, AFolderThatCannotBeWrittenCostsTheRecordAlone) {
  RunRecordWriter writer("/proc/nowhere", "n");
  writer.Note(RunRecord::Attempt{});
  EXPECT_FALSE(ReadRunRecord("/proc/nowhere"));
}

TEST(RunRecord, HalfALineAndWhatIsUnknownAreSkipped) {
  RunRecord record = ParseRunRecord(
      "format 1\nnode a\nattempt 3 0 1\nlater word\n\nattempt 0 0 2 2 1 ab\nattempt 0 2 2 4 2 "
      "cd\nended 1 jo");
  EXPECT_FALSE(record.is_locked);
  EXPECT_FALSE(record.end);
  ASSERT_EQ(record.attempts.size(), 2u);
  // The newest of a number that came again.
  EXPECT_EQ(record.Find(0)->world, "cd");
  EXPECT_EQ(record.Find(3), nullptr);
}

TEST(RunRecord, IsMadeOfWhatTheRendezvousSaid) {
  StartRound place;
  place.world.id.bytes = {0x01, 0xab};
  place.first_rank = Rank(4);
  place.world_size = 8;
  place.group_world_size = 3;
  place.attempt = 2;
  EXPECT_EQ(AttemptOf(place, 2), (RunRecord::Attempt{2, 4, 2, 8, 3, "01ab000000000000"}));
  Verdict verdict;
  verdict.exit_code = 75;
  EXPECT_EQ(EndOf(verdict), (RunRecord::End{75, false}));
  verdict.failures.emplace_back();
  EXPECT_TRUE(EndOf(verdict).is_of_job);
  verdict = {};
  verdict.succeeded = true;
  EXPECT_TRUE(EndOf(verdict).is_of_job);
}

}  // namespace
}  // namespace muster::agent
