// What the muster on another host tells `muster run --hosts` beside the workers' output, in the
// same two streams: a greeting as the first line of its stdout, then records. A record is a line
// that begins with the job's mark, which is of random digits, so that no program prints it by
// chance. Texts have any number of lines. Pure.
#ifndef MUSTER_LAUNCHER_SSH_REMOTE_RECORD_H_
#define MUSTER_LAUNCHER_SSH_REMOTE_RECORD_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace muster::launcher {

struct Greeting {
  std::string version{};
  // Free a moment ago on that host.
  uint16_t port = 0;
};

std::string EncodeGreeting(const Greeting& greeting);
// `line` without its newline; nothing if it isn't one.
std::optional<Greeting> ParseGreeting(std::string_view line);

enum class RecordKind : char {
  // A line that is worth saying once for all hosts.
  kNotice = 'n',
  // The same of the agent's, which begins with "muster: " itself.
  kLine = 'l',
  // Why muster can't begin on that host.
  kProblem = 'p',
  // How the job ended: the failure summary and the last sentence.
  kVerdict = 'v',
  // `muster run` has ended there; the text is its exit code.
  kEnded = 'e',
  // Nothing. Writing it is how the other side learns of a connection that is dead.
  kAlive = 'a',
};

struct Record {
  RecordKind kind = RecordKind::kNotice;
  std::string text{};
};

// With its newline.
std::string EncodeRecord(std::string_view mark, const Record& record);

// Takes one stream apart.
class RecordReader {
 public:
  // With `whole_lines` output is given out up to its last newline alone (several hosts share one
  // console), but for lines longer than 1 MiB.
  RecordReader(std::string mark, bool whole_lines)
      : mark_(std::move(mark)), whole_lines_(whole_lines) {}

  using OnRecord = std::function<void(const Record&)>;
  // Appends to `out` what is output, and calls for each record.
  void Feed(std::string_view bytes, std::string& out, const OnRecord& on_record);
  // The stream has ended: what is left is output, but for a record that isn't whole.
  void End(std::string& out);

 private:
  std::string mark_;
  bool whole_lines_;
  // What isn't given out yet.
  std::string rest_;
};

}  // namespace muster::launcher

#endif  // MUSTER_LAUNCHER_SSH_REMOTE_RECORD_H_
