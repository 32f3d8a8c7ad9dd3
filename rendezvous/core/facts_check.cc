#include "rendezvous/core/facts_check.h"

#include <chrono>
#include <cstdlib>

namespace muster::rendezvous {
namespace {

using std::chrono::milliseconds;

// The rendezvous' clock may run off by 100 ppm while a job of weeks waits for a newcomer.
constexpr int kDriftDivisor = 10'000;

class Differences {
 public:
  Differences(const NodeOnRecord& earlier, const NodeOnRecord& newcomer)
      : earlier_(earlier), newcomer_(newcomer) {}

  // A version that one node lacks is no difference of versions: the number of GPUs tells that.
  void AddVersion(const std::string& what, std::string NodeFacts::*version) {
    const std::string& here = newcomer_.facts.*version;
    const std::string& there = earlier_.facts.*version;
    if (!here.empty() && !there.empty() && here != there) AddPair(what + " ", here, there);
  }

  void AddGpus() {
    const auto text = [](int count) {
      return std::to_string(count) + (count == 1 ? " GPU" : " GPUs");
    };
    if (newcomer_.facts.gpu_count == earlier_.facts.gpu_count) return;
    AddPair("", text(newcomer_.facts.gpu_count), text(earlier_.facts.gpu_count));
  }

  void AddClock() {
    const Duration apart = newcomer_.received - earlier_.received;
    const Duration ahead = milliseconds(newcomer_.facts.wall_time_ms) -
                           milliseconds(earlier_.facts.wall_time_ms) - apart;
    const Duration off = ahead < Duration(0) ? -ahead : ahead;
    if (off <= kClockTolerance + apart / kDriftDivisor) return;
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(off).count();
    Add("the clock of node " + newcomer_.name + " is " + std::to_string(seconds) + " s " +
        (ahead < Duration(0) ? "behind" : "ahead of") + " that of node " + earlier_.name);
  }

  const std::string& text() const { return text_; }

 private:
  void AddPair(const std::string& what, const std::string& here, const std::string& there) {
    Add(what + here + " on node " + newcomer_.name + " and " + there + " on node " + earlier_.name);
  }
  void Add(const std::string& difference) {
    text_ += (text_.empty() ? "nodes differ (the job goes on): " : "; ") + difference;
  }

  const NodeOnRecord& earlier_;
  const NodeOnRecord& newcomer_;
  std::string text_;
};

}  // namespace

std::string DifferencesOf(const NodeOnRecord& earlier, const NodeOnRecord& newcomer) {
  // Whoever knows its facts knows the time.
  if (earlier.facts.wall_time_ms == 0 || newcomer.facts.wall_time_ms == 0) return "";
  Differences differences(earlier, newcomer);
  differences.AddVersion("CUDA", &NodeFacts::cuda_version);
  differences.AddVersion("driver", &NodeFacts::driver_version);
  differences.AddVersion("NCCL", &NodeFacts::nccl_version);
  differences.AddGpus();
  differences.AddClock();
  return differences.text();
}

}  // namespace muster::rendezvous
