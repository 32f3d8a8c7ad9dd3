#include "agent/core/process_status.h"

#include <charconv>

namespace muster::agent {

ProcessStatus ParseProcessStatus(std::string_view text) {
  ProcessStatus status;
  while (!text.empty()) {
    size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    size_t tab = line.find(":\t");
    if (tab == std::string_view::npos) continue;
    std::string_view key = line.substr(0, tab);
    std::string_view value = line.substr(tab + 2);
    if (key == "Name") {
      status.name = value;
    } else if (key == "State" && !value.empty()) {
      status.state = value.front();
    } else if (key == "SigCgt") {
      std::from_chars(value.data(), value.data() + value.size(), status.caught, 16);
    }
  }
  return status;
}

std::string StateText(char state, std::string_view place) {
  std::string_view words = "is in a state unknown to muster";
  bool is_in_kernel = false;
  switch (state) {
    case 'R':
      words = "runs";
      break;
    case 'S':
      words = "waits";
      is_in_kernel = true;
      break;
    case 'D':
      words = "is stuck";
      is_in_kernel = true;
      break;
    case 'T':
      words = "is stopped by a signal";
      break;
    case 't':
      words = "is stopped by a debugger";
      break;
    case 'Z':
    case 'X':
      words = "has ended";
      break;
    default:
      break;
  }
  std::string text(words);
  if (is_in_kernel) {
    text += " in the kernel";
    if (!place.empty() && place != "0") text += " at " + std::string(place);
  }
  return text + " (" + state + ")";
}

}  // namespace muster::agent
