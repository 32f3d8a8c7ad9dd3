// Picks the lines of one stream that hold one of some texts, for a file that gathers those of all
// workers (--duplicate-stdout-filters). Content is bytes; nothing is decoded. A value.
#ifndef MUSTER_AGENT_PROCESS_LINE_FILTER_H_
#define MUSTER_AGENT_PROCESS_LINE_FILTER_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace muster::agent {

// Of a longer line the first part alone is looked at and kept.
inline constexpr size_t kMaxFilteredLine = 1 << 20;

class LineFilter {
 public:
  // `prefix` stands before each line that is kept; a line is kept if it holds one of `texts`.
  LineFilter(std::string prefix, std::vector<std::string> texts);

  // Appends to `out` the lines that are whole now and kept, each with its newline.
  void Feed(std::string_view bytes, std::string* out);
  // The stream has ended: an unfinished line counts as one.
  void End(std::string* out);

 private:
  void TakeLine(std::string* out);

  std::string prefix_;
  std::vector<std::string> texts_;
  std::string line_;
};

}  // namespace muster::agent

#endif  // MUSTER_AGENT_PROCESS_LINE_FILTER_H_
