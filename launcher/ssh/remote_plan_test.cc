#include "launcher/ssh/remote_plan.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::launcher {
namespace {

using testing::HasSubstr;

RemotePlan Sample() {
  return {
      .host = "b",
      .mark = "mark",
      .folder = "/a folder/with 'quotes'",
      .environment = {"A=1", "EMPTY=", "B=two\nlines \"quoted\" \xff\xfe", "\xc3\xbc=\xe2\x82\xac"},
      .words = {"--nnodes=2", "--", "p", "", "$HOME `x` ;", std::string("n\0l", 3)}};
}

TEST(RemotePlan, ArrivesByteForByte) {
  const std::string sent = EncodeRemotePlan(Sample());
  absl::StatusOr<size_t> size = PlanSize(std::string_view(sent).substr(0, kPlanHeaderBytes));
  ASSERT_TRUE(size.ok());
  ASSERT_EQ(sent.size(), kPlanHeaderBytes + *size);
  absl::StatusOr<RemotePlan> plan =
      DecodeRemotePlan(std::string_view(sent).substr(kPlanHeaderBytes));
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(*plan, Sample());
}

TEST(RemotePlan, RefusesWhatIsNoHeader) {
  for (const std::string& header :
       {std::string(), std::string("hello\n"), std::string(kPlanHeaderBytes, 'x'),
        std::string("muster plan 2 0000000000000001\n"),
        std::string("muster plan 1 000000000000000x\n"),
        std::string("muster plan 1 0000099999999999\n")}) {
    EXPECT_THAT(std::string(PlanSize(header).status().message()), HasSubstr("by hand")) << header;
  }
}

TEST(RemotePlan, RefusesAGarbledOne) {
  const std::string bytes = EncodeRemotePlan(Sample()).substr(kPlanHeaderBytes);
  EXPECT_FALSE(DecodeRemotePlan(bytes.substr(0, bytes.size() - 1)).ok());
  EXPECT_FALSE(DecodeRemotePlan("w3:ab\n").ok());
  EXPECT_FALSE(DecodeRemotePlan("w99999999999999999999:a\n").ok());
  EXPECT_FALSE(DecodeRemotePlan("nonsense").ok());
}

TEST(RemotePlan, SignalsComeOneByOneAndInPieces) {
  std::string received = EncodeSignal(2) + "what\nsignal 0\nsignal x\n" + EncodeSignal(15) + "sig";
  EXPECT_EQ(TakeSignal(received), 2);
  EXPECT_EQ(TakeSignal(received), 15);
  EXPECT_EQ(TakeSignal(received), std::nullopt);
  received += "nal 10\n";
  EXPECT_EQ(TakeSignal(received), 10);
  EXPECT_EQ(received, "");
}

}  // namespace
}  // namespace muster::launcher
