#include "examples/fashion_mnist/report.h"

namespace fashion_mnist {

void Report::Line(const std::string& text) {
  if (out_ == nullptr) return;
  ClearBar();
  std::fprintf(out_, "%s\n", text.c_str());
  // Into a pipe too: who waits for a checkpoint's line must see it at once.
  std::fflush(out_);
}

void Report::Step(int64_t epoch, uint64_t done, uint64_t total) {
  constexpr uint64_t kWidth = 40;
  const auto percent = static_cast<int64_t>(total == 0 ? 100 : done * 100 / total);
  if (!has_bar_ || percent == percent_) return;
  percent_ = percent;
  const auto filled = static_cast<size_t>(static_cast<uint64_t>(percent) * kWidth / 100);
  const std::string bar = std::string(filled, '#') + std::string(kWidth - filled, '.');
  std::fprintf(out_, "\repoch %ld [%s] %3ld %%", static_cast<long>(epoch), bar.c_str(),
               static_cast<long>(percent));
  std::fflush(out_);
}

void Report::ClearBar() {
  if (percent_ < 0) return;
  std::fputs("\r\033[K", out_);
  percent_ = -1;
}

}  // namespace fashion_mnist
