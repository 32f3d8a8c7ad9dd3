#include "rendezvous/core/natural_order.h"

#include <cstddef>

namespace muster::rendezvous {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Takes the digits at the front of `text` away and returns them without leading zeros.
std::string_view TakeNumber(std::string_view& text) {
  size_t end = 0;
  while (end < text.size() && IsDigit(text[end])) ++end;
  std::string_view number = text.substr(0, end);
  text.remove_prefix(end);
  while (number.size() > 1 && number.front() == '0') number.remove_prefix(1);
  return number;
}

}  // namespace

std::strong_ordering NaturalOrder(std::string_view a, std::string_view b) {
  const std::string_view whole_a = a;
  const std::string_view whole_b = b;
  while (!a.empty() && !b.empty()) {
    if (IsDigit(a.front()) && IsDigit(b.front())) {
      // Of any length, so numbers are never read into an integer.
      const std::string_view x = TakeNumber(a);
      const std::string_view y = TakeNumber(b);
      if (x.size() != y.size()) return x.size() <=> y.size();
      if (x != y) return x.compare(y) <=> 0;
      continue;
    }
    if (a.front() != b.front()) {
      return static_cast<unsigned char>(a.front()) <=> static_cast<unsigned char>(b.front());
    }
    a.remove_prefix(1);
    b.remove_prefix(1);
  }
  if (a.size() != b.size()) return a.size() <=> b.size();
  if (whole_a.size() != whole_b.size()) return whole_a.size() <=> whole_b.size();
  return whole_a.compare(whole_b) <=> 0;
}

}  // namespace muster::rendezvous
