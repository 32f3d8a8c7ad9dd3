#include "examples/fashion_mnist/options.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

namespace fashion_mnist {
namespace {

std::optional<Options> Parse(std::vector<std::string> arguments, int* exit_code) {
  arguments.insert(arguments.begin(), "fashion_mnist");
  std::vector<char*> argv;
  argv.reserve(arguments.size());
  for (std::string& argument : arguments) argv.push_back(argument.data());
  return ParseOptions(static_cast<int>(argv.size()), argv.data(), exit_code);
}

TEST(Options, HaveDefaultsAndAreRead) {
  int exit_code = 0;
  ASSERT_TRUE(Parse({}, &exit_code).has_value());
  const auto options = Parse({"--epochs=3", "--hidden=20,30", "--checkpoint-dir", "/x",
                              "--checkpoint-every=50", "--learning-rate=0.5"},
                             &exit_code);
  ASSERT_TRUE(options.has_value());
  EXPECT_EQ(options->epochs, 3);
  EXPECT_EQ(options->hidden, (std::vector<int>{20, 30}));
  EXPECT_EQ(options->checkpoint_dir, "/x");
  EXPECT_EQ(options->checkpoint_every, 50);
  EXPECT_EQ(options->learning_rate, 0.5F);
}

TEST(Options, MistakesAreNamedAndEndWithUsageError) {
  for (const char* bad : {"--epochs=0", "--epochs=many", "--batch=-1", "--dropout=1", "--hidden=0",
                          "--keep=0", "--checkpoint-every=0", "--epoch=3", "stray"}) {
    int exit_code = 0;
    testing::internal::CaptureStderr();
    EXPECT_FALSE(Parse({bad}, &exit_code).has_value()) << bad;
    EXPECT_EQ(exit_code, 64) << bad;
    const std::string flag = std::string(bad).substr(0, std::string(bad).find('='));
    EXPECT_NE(testing::internal::GetCapturedStderr().find(flag), std::string::npos) << bad;
  }
}

TEST(Options, HelpIsNoMistake) {
  int exit_code = 1;
  testing::internal::CaptureStdout();
  EXPECT_FALSE(Parse({"--help"}, &exit_code).has_value());
  EXPECT_EQ(exit_code, 0);
  EXPECT_NE(testing::internal::GetCapturedStdout().find("--checkpoint-dir"), std::string::npos);
}

}  // namespace
}  // namespace fashion_mnist
