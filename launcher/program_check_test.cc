#include "launcher/program_check.h"

#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::launcher {
namespace {

using testing::HasSubstr;

class ProgramCheckTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "/program_check";
    std::filesystem::create_directories(folder_);
    Write("tool", 0755);
    Write("text", 0644);
  }

  void Write(const std::string& name, mode_t mode, const std::string& text = "#!/bin/sh\n") const {
    std::ofstream(folder_ + "/" + name) << text;
    ASSERT_EQ(chmod((folder_ + "/" + name).c_str(), mode), 0);
  }

  // Exit code and text, 0 if all is well.
  std::pair<int, std::string> Check(std::vector<std::string> argv, bool is_script = false) const {
    std::optional<Problem> problem = CheckProgram({.argv = std::move(argv),
                                                   .is_python = is_script,
                                                   .is_script = is_script,
                                                   .search_path = folder_.c_str()});
    return problem ? std::pair(problem->exit_code, problem->text) : std::pair(0, std::string());
  }

  std::string folder_;
};

TEST_F(ProgramCheckTest, TellsMissingFromNotExecutable) {
  EXPECT_EQ(Check({folder_ + "/tool"}).first, 0);
  EXPECT_EQ(Check({folder_ + "/absent"}).first, 127);
  EXPECT_THAT(Check({folder_ + "/absent"}).second, HasSubstr(folder_ + "/absent"));
  EXPECT_EQ(Check({folder_ + "/text"}).first, 126);
  EXPECT_EQ(Check({folder_}).first, 126);
}

TEST_F(ProgramCheckTest, SearchesThePath) {
  EXPECT_EQ(Check({"tool"}).first, 0);
  EXPECT_EQ(Check({"text"}).first, 126);
  EXPECT_EQ(Check({"absent"}).first, 127);
  EXPECT_THAT(Check({"absent"}).second, HasSubstr("PATH"));
}

TEST_F(ProgramCheckTest, NamesAnInterpreterThatIsNotThere) {
  Write("odd", 0755, "#!/no/such/interpreter -x\n");
  for (const std::string& name : {std::string("odd"), folder_ + "/odd"}) {
    EXPECT_EQ(Check({name}).first, 127);
    EXPECT_THAT(Check({name}).second, HasSubstr("\"/no/such/interpreter\" of its #! line"));
  }
  Write("odd", 0755, "#!/etc/passwd\n");
  EXPECT_EQ(Check({"odd"}).first, 126);
}

TEST_F(ProgramCheckTest, LooksForTheScript) {
  EXPECT_EQ(Check({"tool", "-u", folder_ + "/text"}, true).first, 0);
  EXPECT_EQ(Check({"tool", "-u", folder_ + "/no.py"}, true).first, 127);
  EXPECT_THAT(Check({"tool", "-u", folder_ + "/no.py"}, true).second, HasSubstr("no.py"));
  EXPECT_EQ(Check({"no-python", "-u", folder_ + "/text"}, true).first, 127);
  EXPECT_THAT(Check({"no-python", "-u", folder_ + "/text"}, true).second, HasSubstr("PYTHON_EXEC"));
}

TEST_F(ProgramCheckTest, MakesTheLogFolderOrSaysWhyNot) {
  EXPECT_EQ(CheckLogFolder(folder_ + "/logs/deep"), std::nullopt);
  EXPECT_TRUE(std::filesystem::is_directory(folder_ + "/logs/deep"));
  EXPECT_THAT(CheckLogFolder(folder_ + "/text").value_or(""), HasSubstr(folder_ + "/text"));
  EXPECT_THAT(CheckLogFolder(folder_ + "/text/below").value_or(""), HasSubstr("--log-dir="));
  EXPECT_NE(CheckLogFolder("/proc/self/logs"), std::nullopt);
}

}  // namespace
}  // namespace muster::launcher
