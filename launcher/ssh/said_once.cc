#include "launcher/ssh/said_once.h"

namespace muster::launcher {

bool SaidOnce::IsNews(const std::string& host, const std::string& sentence) {
  if (counts_.size() >= kMostSentences && !counts_.contains(sentence)) counts_.clear();
  Count& count = counts_[sentence];
  if (++count.by_host[host] <= count.shown) return false;
  ++count.shown;
  return true;
}

}  // namespace muster::launcher
