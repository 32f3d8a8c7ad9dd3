#include "agent/core_file.h"

#include <elf.h>
#include <fcntl.h>
#include <glob.h>
#include <sys/procfs.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <sstream>
#include <vector>

#include "agent/core/core_pattern.h"

namespace muster::agent {
namespace {

constexpr char kFirstPidNamespace[] = "pid:[4026531836]";
// Candidates looked at: a folder may hold thousands of old dumps.
constexpr size_t kMostCandidates = 256;
// Of a core file, before its memory: program headers and notes.
constexpr uint16_t kMostHeaders = 64;
constexpr size_t kMostNoteBytes = 1 << 20;

std::string ReadText(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

std::string LinkTarget(const std::string& path) {
  std::array<char, 256> target;
  ssize_t size = readlink(path.c_str(), target.data(), target.size());
  return size > 0 ? std::string(target.data(), static_cast<size_t>(size)) : "";
}

bool ReadAt(int fd, uint64_t offset, void* to, size_t size) {
  return pread(fd, to, size, static_cast<off_t>(offset)) == static_cast<ssize_t>(size);
}

// Notes: {name size, description size, type}, then both, each padded to four bytes.
std::optional<int64_t> PidInNotes(const std::string& notes) {
  size_t at = 0;
  auto padded = [](uint64_t size) { return (size + 3) & ~uint64_t{3}; };
  while (at + sizeof(Elf64_Nhdr) <= notes.size()) {
    Elf64_Nhdr header;
    std::memcpy(&header, notes.data() + at, sizeof header);
    uint64_t description = at + sizeof header + padded(header.n_namesz);
    if (description + header.n_descsz > notes.size()) return std::nullopt;
    if (header.n_type == NT_PRPSINFO && header.n_descsz >= sizeof(prpsinfo_t)) {
      prpsinfo_t process;
      std::memcpy(&process, notes.data() + description, sizeof process);
      return process.pr_pid;
    }
    at = static_cast<size_t>(description + padded(header.n_descsz));
  }
  return std::nullopt;
}

std::optional<int64_t> PidOfOpenCore(int fd) {
  Elf64_Ehdr header{};
  bool is_core = ReadAt(fd, 0, &header, sizeof header) &&
                 std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 &&
                 header.e_ident[EI_CLASS] == ELFCLASS64 && header.e_type == ET_CORE;
  if (!is_core) return std::nullopt;
  // The notes come first.
  for (uint16_t i = 0; i < std::min(header.e_phnum, kMostHeaders); ++i) {
    Elf64_Phdr program{};
    if (!ReadAt(fd, header.e_phoff + i * sizeof program, &program, sizeof program)) break;
    if (program.p_type != PT_NOTE) continue;
    std::string notes(std::min<uint64_t>(program.p_filesz, kMostNoteBytes), '\0');
    if (!ReadAt(fd, program.p_offset, notes.data(), notes.size())) return std::nullopt;
    return PidInNotes(notes);
  }
  return std::nullopt;
}

std::vector<std::string> Candidates(const std::string& pattern) {
  glob_t found{};
  std::vector<std::string> paths;
  if (glob(pattern.c_str(), GLOB_NOSORT, nullptr, &found) == 0) {
    size_t count = std::min<size_t>(found.gl_pathc, kMostCandidates);
    paths.assign(found.gl_pathv, found.gl_pathv + count);
  }
  globfree(&found);
  return paths;
}

bool IsOf(const std::string& path, const DumpQuestion& question, bool names_pid) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return false;
  // The file's clock may be a server's: a second of tolerance.
  if (status.st_mtime + 1 < question.not_before_s) return false;
  std::optional<int64_t> pid = PidOfCore(path);
  // What can't be read is believed by its name.
  return pid ? *pid == question.pid : names_pid;
}

}  // namespace

std::optional<int64_t> PidOfCore(const std::string& path) {
  int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return std::nullopt;
  std::optional<int64_t> pid = PidOfOpenCore(fd);
  close(fd);
  return pid;
}

DumpAnswer FindCoreFile(const DumpQuestion& question) {
  std::string pattern = ReadText(question.proc + "/sys/kernel/core_pattern");
  bool uses_pid = ReadText(question.proc + "/sys/kernel/core_uses_pid").starts_with('1');
  DumpFacts facts;
  facts.pid = question.pid;
  facts.pid_is_global = LinkTarget(question.proc + "/self/ns/pid") == kFirstPidNamespace;
  facts.uid = getuid();
  facts.gid = getgid();
  facts.signal = question.signal;
  facts.folder = question.folder;
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) == 0) facts.host_name = host.data();

  DumpPlace place = FindDumpPlace(pattern, uses_pid, facts);
  if (!place.receiver.empty()) {
    std::string program = place.receiver.substr(0, place.receiver.find(' '));
    std::string remark = "its core dump was handed to " + program;
    if (program.find("systemd-coredump") != std::string::npos) {
      remark += ": `coredumpctl info " + std::to_string(question.pid) + "` shows it";
    }
    return {.path = {}, .remark = remark};
  }
  for (const std::string& path : Candidates(place.glob)) {
    if (IsOf(path, question, place.names_pid)) return {.path = path, .remark = {}};
  }
  if (place.glob.empty()) return {};
  return {.path = {},
          .remark = "its core dump isn't at " + place.glob +
                    ": the program may have changed its working directory"};
}

}  // namespace muster::agent
