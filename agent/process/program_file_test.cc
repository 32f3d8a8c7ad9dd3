#include "agent/process/program_file.h"

#include <elf.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "gtest/gtest.h"

namespace muster::agent {
namespace {

class ProgramFileTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "/program_file";
    std::filesystem::create_directories(folder_);
  }

  std::string Write(const std::string& name, const std::string& bytes) const {
    std::string path = folder_ + "/" + name;
    std::ofstream(path) << bytes;
    EXPECT_EQ(chmod(path.c_str(), 0755), 0);
    return path;
  }

  // Of a script that begins with this line.
  std::optional<ProgramFlaw> FlawOf(const std::string& line) const {
    return FlawOfProgram(Write("script", line + "\necho\n"));
  }

  std::string folder_;
};

TEST_F(ProgramFileTest, FindsNoFaultWithWhatRuns) {
  EXPECT_FALSE(FlawOfProgram("/bin/sh"));
  EXPECT_FALSE(FlawOf("#!/bin/sh"));
  EXPECT_FALSE(FlawOf("#! \t/bin/sh -e"));
  EXPECT_FALSE(FlawOf("#!/usr/bin/env no-such-program"));  // env's own to say
}

TEST_F(ProgramFileTest, SaysNothingOfWhatItCannotJudge) {
  EXPECT_FALSE(FlawOfProgram("/no/such"));
  EXPECT_FALSE(FlawOfProgram(folder_));
  EXPECT_FALSE(FlawOfProgram(Write("empty", "")));
  EXPECT_FALSE(FlawOf("echo"));
  EXPECT_FALSE(FlawOf("#!"));
  EXPECT_FALSE(FlawOfProgram(Write("cut", ELFMAG)));
}

TEST_F(ProgramFileTest, NamesTheMissingInterpreter) {
  std::optional<ProgramFlaw> flaw = FlawOf("#!/no/such/interpreter -x");
  ASSERT_TRUE(flaw);
  EXPECT_EQ(flaw->error, ENOENT);
  EXPECT_EQ(flaw->text, "the interpreter \"/no/such/interpreter\" of its #! line does not exist");
}

TEST_F(ProgramFileTest, NamesOneThatMayNotBeExecuted) {
  for (const char* path : {"/etc/passwd", "/etc"}) {
    std::optional<ProgramFlaw> flaw = FlawOf(std::string("#!") + path);
    ASSERT_TRUE(flaw) << path;
    EXPECT_EQ(flaw->error, EACCES);
    EXPECT_NE(flaw->text.find(path), std::string::npos) << flaw->text;
  }
}

TEST_F(ProgramFileTest, SaysThatALineEndsAsOnWindows) {
  std::optional<ProgramFlaw> flaw = FlawOf("#!/bin/sh\r");
  ASSERT_TRUE(flaw);
  EXPECT_EQ(flaw->error, ENOENT);
  EXPECT_NE(flaw->text.find("\"/bin/sh\""), std::string::npos) << flaw->text;
  EXPECT_NE(flaw->text.find("carriage return"), std::string::npos) << flaw->text;
}

TEST_F(ProgramFileTest, FollowsInterpretersThatAreScripts) {
  std::string inner = Write("inner", "#!/no/such\n");
  std::optional<ProgramFlaw> flaw = FlawOf("#!" + inner);
  ASSERT_TRUE(flaw);
  EXPECT_NE(flaw->text.find("/no/such"), std::string::npos) << flaw->text;

  std::string loop = folder_ + "/loop";
  Write("loop", "#!" + loop + "\n");
  flaw = FlawOfProgram(loop);
  ASSERT_TRUE(flaw);
  EXPECT_EQ(flaw->error, ELOOP);
}

TEST_F(ProgramFileTest, NamesTheMissingLoaderOfABinary) {
  constexpr char kLoader[] = "/no/such/ld.so";
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  // Of this test itself.
  std::ifstream("/proc/self/exe")
      .seekg(offsetof(Elf64_Ehdr, e_machine))
      .read(reinterpret_cast<char*>(&header.e_machine), sizeof(header.e_machine));
  header.e_phoff = sizeof(header);
  header.e_phentsize = sizeof(Elf64_Phdr);
  header.e_phnum = 1;
  Elf64_Phdr segment{};
  segment.p_type = PT_INTERP;
  segment.p_offset = sizeof(header) + sizeof(segment);
  segment.p_filesz = sizeof(kLoader);
  std::string bytes(reinterpret_cast<const char*>(&header), sizeof(header));
  bytes.append(reinterpret_cast<const char*>(&segment), sizeof(segment));
  bytes.append(kLoader, sizeof(kLoader));
  std::optional<ProgramFlaw> flaw = FlawOfProgram(Write("binary", bytes));
  ASSERT_TRUE(flaw);
  EXPECT_EQ(flaw->error, ENOENT);
  EXPECT_EQ(flaw->text, "the loader \"/no/such/ld.so\" that it names does not exist");

  bytes[offsetof(Elf64_Ehdr, e_machine)] = EM_S390;  // an emulator's
  EXPECT_FALSE(FlawOfProgram(Write("binary", bytes)));
}

}  // namespace
}  // namespace muster::agent
