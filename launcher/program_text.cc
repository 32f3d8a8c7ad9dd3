#include "launcher/program_text.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <string_view>

#include "launcher/text.h"

namespace muster::launcher {
namespace {

// Below what a message carries, with room for the hash.
constexpr size_t kMostBytes = 4000;
constexpr char kHexDigits[] = "0123456789abcdef";

bool IsPlain(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
         std::string_view("_-./=:,+@%").find(c) != std::string_view::npos;
}

bool IsControl(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

std::string Quoted(std::string_view word) {
  if (!word.empty() && std::all_of(word.begin(), word.end(), IsPlain)) return std::string(word);
  // A sentence that shows it must stay one line.
  const bool has_controls = std::any_of(word.begin(), word.end(), IsControl);
  std::string text = has_controls ? "$'" : "'";
  for (char c : word) {
    if (IsControl(c)) {
      text += {'\\', 'x', kHexDigits[(c >> 4) & 15], kHexDigits[c & 15]};
    } else if (c == '\'') {
      text += has_controls ? "\\'" : "'\\''";
    } else if (c == '\\' && has_controls) {
      text += "\\\\";
    } else {
      text += c;
    }
  }
  return text + "'";
}

// FNV-1a, 64 bits.
std::string Hash(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  std::string hex;
  for (int shift = 60; shift >= 0; shift -= 4) hex += kHexDigits[(hash >> shift) & 15];
  return hex;
}

}  // namespace

std::string ProgramText(const RunOptions& options) {
  std::string text = options.is_module ? "-m" : "";
  for (const std::string& word : options.program) {
    if (!text.empty()) text += ' ';
    text += Quoted(word);
  }
  if (text.size() <= kMostBytes) return text;
  return Cat(text.substr(0, kMostBytes), "... (", text.size(), " bytes, hash ", Hash(text), ")");
}

}  // namespace muster::launcher
