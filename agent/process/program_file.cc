#include "agent/process/program_file.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>

namespace muster::agent {
namespace {

// As many bytes of a `#!` line as the kernel looks at (BINPRM_BUF_SIZE).
constexpr size_t kHeadBytes = 256;
// An interpreter may be a script itself; the kernel gives up beyond four.
constexpr int kMostInterpreters = 5;
constexpr int kMostProgramHeaders = 64;
constexpr size_t kMostPath = 4096;

struct Interpreter {
  std::string path;
  bool is_script_line = false;
};

// One file that is open for reading at any place.
class Reader {
 public:
  explicit Reader(const std::string& path)
      : fd_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)) {}
  ~Reader() {
    if (fd_ >= 0) close(fd_);
  }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  // At most `size` bytes.
  std::string Read(size_t size, uint64_t from) const {
    std::string bytes(size, '\0');
    ssize_t got = fd_ < 0 ? -1 : pread(fd_, bytes.data(), size, static_cast<off_t>(from));
    bytes.resize(got > 0 ? static_cast<size_t>(got) : 0);
    return bytes;
  }

  template <class T>
  bool Read(T* value, uint64_t from) const {
    std::string bytes = Read(sizeof(T), from);
    if (bytes.size() != sizeof(T)) return false;
    std::memcpy(value, bytes.data(), sizeof(T));
    return true;
  }

 private:
  const int fd_;
};

std::optional<Interpreter> OfScript(std::string_view head) {
  head.remove_prefix(2);
  head = head.substr(0, head.find('\n'));
  size_t begin = head.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return std::nullopt;
  head.remove_prefix(begin);
  return Interpreter{
      .path = std::string(head.substr(0, head.find_first_of(std::string_view(" \t\0", 3)))),
      .is_script_line = true};
}

// Binaries of other machines may be run by an emulator, which finds their loader elsewhere.
bool RunsHere(unsigned machine) {
#if defined(__x86_64__)
  return machine == EM_X86_64 || machine == EM_386;
#elif defined(__aarch64__)
  return machine == EM_AARCH64;
#else
  return false;
#endif
}

template <class Header, class Segment>
std::optional<Interpreter> OfBinary(const Reader& file) {
  Header header{};
  if (!file.Read(&header, 0) || header.e_phentsize != sizeof(Segment)) return std::nullopt;
  if (!RunsHere(header.e_machine)) return std::nullopt;
  for (int i = 0; i < header.e_phnum && i < kMostProgramHeaders; ++i) {
    Segment segment{};
    if (!file.Read(&segment, header.e_phoff + static_cast<uint64_t>(i) * sizeof(Segment))) break;
    if (segment.p_type != PT_INTERP || segment.p_filesz > kMostPath) continue;
    std::string path = file.Read(segment.p_filesz, segment.p_offset);
    return Interpreter{.path = path.substr(0, path.find('\0'))};
  }
  return std::nullopt;
}

std::optional<Interpreter> InterpreterOf(const std::string& path) {
  Reader file(path);
  std::string head = file.Read(kHeadBytes, 0);
  if (head.starts_with("#!")) return OfScript(head);
  // In this machine's byte order; binaries of others fail with a reason of their own.
  if (!head.starts_with(ELFMAG) || head.size() <= EI_CLASS) return std::nullopt;
  if (head[EI_CLASS] == ELFCLASS64) return OfBinary<Elf64_Ehdr, Elf64_Phdr>(file);
  if (head[EI_CLASS] == ELFCLASS32) return OfBinary<Elf32_Ehdr, Elf32_Phdr>(file);
  return std::nullopt;
}

std::string Name(const Interpreter& interpreter) {
  std::string path = interpreter.path;
  bool has_return = path.ends_with('\r');
  if (has_return) path.pop_back();
  std::string text = interpreter.is_script_line ? "the interpreter \"" + path + "\" of its #! line"
                                                : "the loader \"" + path + "\" that it names";
  if (has_return) {
    text += " (which ends with a carriage return: convert the file with `sed -i 's/\\r$//'`)";
  }
  return text;
}

}  // namespace

std::optional<ProgramFlaw> FlawOfProgram(const std::string& path) {
  std::string file = path;
  for (int i = 0; i < kMostInterpreters; ++i) {
    std::optional<Interpreter> interpreter = InterpreterOf(file);
    if (!interpreter) return std::nullopt;
    struct stat status {};
    if (stat(interpreter->path.c_str(), &status) != 0) {
      if (errno == EACCES) return ProgramFlaw{EACCES, Name(*interpreter) + " can't be reached"};
      return ProgramFlaw{ENOENT, Name(*interpreter) + " does not exist"};
    }
    bool is_executable = S_ISREG(status.st_mode) &&
                         faccessat(AT_FDCWD, interpreter->path.c_str(), X_OK, AT_EACCESS) == 0;
    if (!is_executable) return ProgramFlaw{EACCES, Name(*interpreter) + " is not executable"};
    file = interpreter->path;
  }
  return ProgramFlaw{ELOOP, "its #! lines name too many interpreters in turn"};
}

}  // namespace muster::agent
