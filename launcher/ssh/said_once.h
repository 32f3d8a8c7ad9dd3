// Hosts of one job say mostly the same: each sentence is worth saying once, and again when one of
// them says it again. A value.
#ifndef MUSTER_LAUNCHER_SSH_SAID_ONCE_H_
#define MUSTER_LAUNCHER_SSH_SAID_ONCE_H_

#include <cstddef>
#include <map>
#include <string>

namespace muster::launcher {

// Sentences that are remembered; then all are forgotten and may be said twice.
inline constexpr size_t kMostSentences = 1000;

class SaidOnce {
 public:
  // Whether no host has said `sentence` as often as this one has by now.
  bool IsNews(const std::string& host, const std::string& sentence);

 private:
  struct Count {
    int shown = 0;
    std::map<std::string, int> by_host;
  };
  std::map<std::string, Count> counts_;
};

}  // namespace muster::launcher

#endif  // MUSTER_LAUNCHER_SSH_SAID_ONCE_H_
