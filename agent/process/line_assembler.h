// Turns the bytes of one stream into what the console shows: whole lines behind a prefix, progress
// bars (`\r`) at a bounded rate. Content is bytes; nothing is decoded. A value; time is an
// argument.
#ifndef MUSTER_AGENT_PROCESS_LINE_ASSEMBLER_H_
#define MUSTER_AGENT_PROCESS_LINE_ASSEMBLER_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "base/instant.h"

namespace muster::agent {

// A longer line is cut into several.
inline constexpr size_t kMaxLineBytes = 1 << 20;
// Between two showings of a line that is being rewritten, and before an unfinished one is shown.
inline constexpr Duration kUpdatePause = std::chrono::milliseconds(100);

class LineAssembler {
 public:
  struct Options {
    std::string prefix;
    // A carriage return rewrites the line on the screen: only the newest state is worth showing.
    // Elsewhere it is a byte like others.
    bool is_terminal = false;
    // Show a line before it is finished (a prompt, a row of dots): nobody else writes between.
    bool shows_unfinished = false;
  };
  explicit LineAssembler(Options options);

  // Appends to `out` what can be shown now.
  void Feed(Instant now, std::string_view bytes, std::string* out);
  // To be called at NextWakeup().
  void Tick(Instant now, std::string* out);
  Instant NextWakeup() const;
  // The stream has ended: an unfinished line is shown, and ended.
  void End(std::string* out);

 private:
  void Append(std::string_view piece, std::string* out);
  void EndLine(std::string* out);
  void TakeUpdate(Instant now, std::string* out);
  void ShowUpdate(std::string* out);

  Options options_;
  // Of the current line, what isn't shown yet.
  std::string line_;
  // The prefix of the current line is shown already, and maybe a part of it.
  bool is_begun_ = false;
  // The last byte was a carriage return: the next tells whether it ends a line.
  bool has_return_ = false;
  // The newest rewriting that isn't shown yet, with its carriage return.
  std::string update_;
  Instant next_update_;
  Instant show_unfinished_at_ = Instant::Never();
};

}  // namespace muster::agent

#endif  // MUSTER_AGENT_PROCESS_LINE_ASSEMBLER_H_
