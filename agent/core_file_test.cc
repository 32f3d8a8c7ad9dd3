#include "agent/core_file.h"

#include <elf.h>
#include <sys/procfs.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "gtest/gtest.h"

namespace muster::agent {
namespace {

namespace fs = std::filesystem;

// A core file with the headers and the one note that matter.
std::string CoreOf(int pid) {
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_type = ET_CORE;
  header.e_phoff = sizeof header;
  header.e_phnum = 1;
  Elf64_Nhdr other{.n_namesz = 5, .n_descsz = 2, .n_type = NT_PRSTATUS};
  Elf64_Nhdr note{.n_namesz = 5, .n_descsz = sizeof(prpsinfo_t), .n_type = NT_PRPSINFO};
  prpsinfo_t process{};
  process.pr_pid = pid;
  auto bytes = [](const auto& value) {
    return std::string(reinterpret_cast<const char*>(&value), sizeof value);
  };
  std::string name("CORE\0\0\0\0", 8);
  std::string notes =
      bytes(other) + name + "xx" + std::string(2, '\0') + bytes(note) + name + bytes(process);
  Elf64_Phdr program{};
  program.p_type = PT_NOTE;
  program.p_offset = sizeof header + sizeof program;
  program.p_filesz = notes.size();
  return bytes(header) + bytes(program) + notes;
}

class CoreFileTest : public testing::Test {
 protected:
  CoreFileTest() {
    char name[] = "/tmp/core_file_XXXXXX";
    folder_ = mkdtemp(name);
    question_ = {.pid = 4711, .signal = 11, .folder = folder_ + "/cwd", .proc = folder_ + "/proc"};
    SetPattern("core.%p");
    Write("proc/sys/kernel/core_uses_pid", "0\n");
  }
  ~CoreFileTest() override { fs::remove_all(folder_); }

  void Write(const std::string& name, const std::string& text) const {
    fs::create_directories(fs::path(folder_ + "/" + name).parent_path());
    std::ofstream(folder_ + "/" + name) << text;
  }
  void SetPattern(const std::string& pattern) const {
    Write("proc/sys/kernel/core_pattern", pattern + "\n");
  }
  std::string folder_;
  DumpQuestion question_;
};

TEST_F(CoreFileTest, IsFoundByThePattern) {
  Write("cwd/core.4711", CoreOf(4711));
  DumpAnswer answer = FindCoreFile(question_);
  EXPECT_EQ(answer.path, folder_ + "/cwd/core.4711");
  EXPECT_EQ(answer.remark, "");
}

TEST_F(CoreFileTest, ThePidWithinDecides) {
  SetPattern(folder_ + "/cores/%t.core");
  Write("cores/1.core", CoreOf(4710));
  Write("cores/2.core", CoreOf(4711));
  Write("cores/3.core", "no core");
  EXPECT_EQ(FindCoreFile(question_).path, folder_ + "/cores/2.core");
  // A reused name, with another process's dump.
  SetPattern("core.%p");
  Write("cwd/core.4711", CoreOf(4712));
  EXPECT_EQ(FindCoreFile(question_).path, "");
}

TEST_F(CoreFileTest, AnOldFileIsAnotherProcesss) {
  Write("cwd/core.4711", CoreOf(4711));
  question_.not_before_s = time(nullptr) + 1000;
  DumpAnswer answer = FindCoreFile(question_);
  EXPECT_EQ(answer.path, "");
  EXPECT_EQ(answer.remark, "its core dump isn't at " + folder_ +
                               "/cwd/core.4711: the program may have changed its working "
                               "directory");
}

TEST_F(CoreFileTest, WhoGotItIsSaid) {
  SetPattern("|/usr/share/apport/apport %p %s");
  EXPECT_EQ(FindCoreFile(question_).remark, "its core dump was handed to /usr/share/apport/apport");
  SetPattern("|/usr/lib/systemd/systemd-coredump %P");
  EXPECT_EQ(FindCoreFile(question_).remark,
            "its core dump was handed to /usr/lib/systemd/systemd-coredump: `coredumpctl info "
            "4711` shows it");
  question_.proc = folder_ + "/none";
  EXPECT_EQ(FindCoreFile(question_).path, "");
  EXPECT_EQ(FindCoreFile(question_).remark, "");
}

TEST(PidOfCore, TakesNoOtherFile) {
  std::string path = testing::TempDir() + "/odd_core";
  for (const std::string& text :
       {std::string(), std::string("x"), CoreOf(1).substr(0, 100), CoreOf(1).substr(0, 140)}) {
    std::ofstream(path) << text;
    EXPECT_FALSE(PidOfCore(path)) << text.size();
  }
  EXPECT_FALSE(PidOfCore(path + "/none"));
}

}  // namespace
}  // namespace muster::agent
