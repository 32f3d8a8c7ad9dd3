#include "agent/process/line_assembler.h"

#include <algorithm>
#include <utility>

namespace muster::agent {

LineAssembler::LineAssembler(Options options) : options_(std::move(options)) {}

void LineAssembler::Feed(Instant now, std::string_view bytes, std::string* out) {
  std::string_view stops = options_.is_terminal ? "\n\r" : "\n";
  while (!bytes.empty()) {
    if (std::exchange(has_return_, false)) {
      // "\r\n" is a plain end of line.
      if (bytes[0] == '\n') {
        line_.push_back('\r');
      } else {
        TakeUpdate(now, out);
      }
    }
    size_t stop = bytes.find_first_of(stops);
    Append(bytes.substr(0, stop), out);
    if (stop == std::string_view::npos) break;
    if (bytes[stop] == '\n') {
      EndLine(out);
    } else {
      has_return_ = true;
    }
    bytes.remove_prefix(stop + 1);
  }
  if (options_.shows_unfinished && !line_.empty() && show_unfinished_at_.IsNever()) {
    show_unfinished_at_ = now + kUpdatePause;
  }
}

void LineAssembler::Append(std::string_view piece, std::string* out) {
  while (line_.size() + piece.size() > kMaxLineBytes) {
    size_t room = kMaxLineBytes - line_.size();
    line_ += piece.substr(0, room);
    piece.remove_prefix(room);
    EndLine(out);
  }
  line_ += piece;
}

void LineAssembler::EndLine(std::string* out) {
  ShowUpdate(out);
  if (!is_begun_) *out += options_.prefix;
  *out += line_;
  out->push_back('\n');
  line_.clear();
  is_begun_ = false;
  show_unfinished_at_ = Instant::Never();
}

void LineAssembler::TakeUpdate(Instant now, std::string* out) {
  update_ = is_begun_ ? std::string() : options_.prefix;
  update_ += line_;
  update_.push_back('\r');
  line_.clear();
  is_begun_ = false;
  show_unfinished_at_ = Instant::Never();
  if (now >= next_update_) {
    ShowUpdate(out);
    next_update_ = now + kUpdatePause;
  }
}

void LineAssembler::ShowUpdate(std::string* out) {
  *out += update_;
  update_.clear();
}

void LineAssembler::Tick(Instant now, std::string* out) {
  if (!update_.empty() && now >= next_update_) {
    ShowUpdate(out);
    next_update_ = now + kUpdatePause;
  }
  if (now >= show_unfinished_at_) {
    ShowUpdate(out);
    if (!is_begun_) *out += options_.prefix;
    *out += line_;
    line_.clear();
    is_begun_ = true;
    show_unfinished_at_ = Instant::Never();
  }
}

Instant LineAssembler::NextWakeup() const {
  return std::min(update_.empty() ? Instant::Never() : next_update_, show_unfinished_at_);
}

void LineAssembler::End(std::string* out) {
  if (std::exchange(has_return_, false)) line_.push_back('\r');
  if (!line_.empty() || is_begun_) {
    EndLine(out);
  } else if (!update_.empty()) {
    ShowUpdate(out);
    out->push_back('\n');
  }
}

}  // namespace muster::agent
