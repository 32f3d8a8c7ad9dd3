#include "launcher/say.h"

#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/visible_text.h"
#include "launcher/ssh/remote_record.h"
#include "launcher/text.h"

namespace muster::launcher {
namespace {

bool WriteAll(int fd, std::string_view text) {
  while (!text.empty()) {
    ssize_t count = write(fd, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    text.remove_prefix(static_cast<size_t>(count));
  }
  return true;
}

// What others have named or told of is often part of it.
std::string Shown(std::string_view sentence) { return VisibleText(sentence, "\n\t"); }

// Set before there are threads.
std::string& Mark() {
  static std::string mark;
  return mark;
}

}  // namespace

void Say(std::string_view sentence) {
  const std::string line = Mark().empty()
                               ? Cat("muster: ", Shown(sentence), "\n")
                               : EncodeRecord(Mark(), {RecordKind::kNotice, Shown(sentence)});
  // Nobody is left to be told if stderr is gone.
  [[maybe_unused]] bool is_written = WriteAll(STDERR_FILENO, line);
}

void SayProblem(std::string_view sentence) {
  if (Mark().empty()) return Say(sentence);
  [[maybe_unused]] bool is_written =
      WriteAll(STDERR_FILENO, EncodeRecord(Mark(), {RecordKind::kProblem, Shown(sentence)}));
}

void SayAsRecords(std::string mark) { Mark() = std::move(mark); }
const std::string& RecordMark() { return Mark(); }

bool Print(std::string_view text) { return WriteAll(STDOUT_FILENO, text); }

}  // namespace muster::launcher
