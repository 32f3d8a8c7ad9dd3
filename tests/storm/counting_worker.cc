// The worker of a storm: counts with all-reduce, saves checkpoints, and ends at the goal with a
// count that is the same however often it was interrupted.
//
//   counting_worker FOLDER
//
// Each step shares kItems numbers out among the ranks, whatever their number, and adds up their
// sum. FOLDER/goal, once the storm's driver has written it, is the step to end at. What happens
// goes to FOLDER/events, one line each: "begins", "saved", "done". Ends with 1 when the round is
// over.
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>
#include <thread>

#include "worker_sdk/muster.h"

namespace {

using muster::MutableView;
using muster::Status;

constexpr int64_t kItems = 64;
// A step takes this long, so that eight workers leave a small machine room for everything else.
constexpr auto kPause = std::chrono::milliseconds(2);
constexpr int64_t kStepsPerCheckpoint = 20;

// What is counted. The digest depends on the order of the steps as well.
struct Tally {
  int64_t steps = 0;
  std::array<int64_t, 2> sums = {0, 0};  // count, digest

  void Add(int64_t sum) {
    ++steps;
    sums[0] += sum;
    sums[1] = static_cast<int64_t>(static_cast<uint64_t>(sums[1]) * 6364136223846793005U +
                                   static_cast<uint64_t>(sum));
  }
};

int64_t Item(int64_t step, int64_t item) { return (step * 31 + item * 17) % 101; }

class Counter {
 public:
  Counter(muster::Context& context, muster::ProcessGroup& group, std::string folder)
      : context_(context), group_(group), folder_(std::move(folder)) {}

  Status Run() {
    auto opened = muster::CheckpointStore::Open(context_, group_,
                                                {.directory = folder_ + "/checkpoints", .keep = 2});
    if (!opened.ok()) return opened.status();
    store_ = *std::move(opened);
    auto loaded = store_->Load();
    if (!loaded.ok()) return loaded.status();
    if (loaded->has_value()) {
      tally_.steps = (*loaded)->step();
      Status copied = (*loaded)->CopyTo("sums", MutableView(tally_.sums));
      if (!copied.ok()) return copied;
    }
    Note("begins");
    while (true) {
      auto goal = Goal();
      if (!goal.ok()) return goal.status();
      if (tally_.steps == *goal) break;
      Status counted = CountOneStep();
      if (!counted.ok()) return counted;
      if (tally_.steps % kStepsPerCheckpoint != 0) continue;
      Status saved = Save();
      if (!saved.ok()) return saved;
    }
    Status saved = Save();
    if (saved.ok()) Note("done");
    return saved;
  }

 private:
  // Rank 0's view of it, the same on all ranks; negative: none yet.
  muster::Result<int64_t> Goal() {
    std::array<int64_t, 1> goal = {-1};
    if (group_.rank() == 0) std::ifstream(folder_ + "/goal") >> goal[0];
    Status told = group_.Broadcast(MutableView(goal), 0).Wait();
    if (!told.ok()) return told;
    return goal[0] > 0 ? goal[0] : -1;
  }

  Status CountOneStep() {
    std::array<int64_t, 1> sum = {0};
    for (int64_t i = group_.rank(); i < kItems; i += group_.world_size()) {
      sum[0] += Item(tally_.steps + 1, i);
    }
    Status reduced = group_.AllReduce(MutableView(sum), muster::ReduceOp::kSum).Wait();
    if (!reduced.ok()) return reduced;
    tally_.Add(sum[0]);
    std::this_thread::sleep_for(kPause);
    return {};
  }

  Status Save() {
    Status saved = store_->Save(
        {.step = tally_.steps, .tensors = {{.name = "sums", .data = muster::View(tally_.sums)}}});
    if (saved.ok() && group_.rank() == 0) Note("saved");
    return saved;
  }

  void Note(const char* what) const {
    std::array<char, 256> line{};
    int size = std::snprintf(line.data(), line.size(),
                             "%s round %lu rank %d of %d step %ld count %ld digest %ld\n", what,
                             static_cast<unsigned long>(context_.world().round.value),
                             group_.rank(), group_.world_size(), static_cast<long>(tally_.steps),
                             static_cast<long>(tally_.sums[0]), static_cast<long>(tally_.sums[1]));
    // One write to the end of the file: whole lines, whoever else writes.
    int fd = open((folder_ + "/events").c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    if (write(fd, line.data(), static_cast<size_t>(size)) != size) std::perror("events");
    close(fd);
  }

  muster::Context& context_;
  muster::ProcessGroup& group_;
  const std::string folder_;
  std::unique_ptr<muster::CheckpointStore> store_;
  Tally tally_;
};

int Fail(const Status& status) {
  std::fprintf(stderr, "counting_worker: %s\n", status.message().c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return std::fprintf(stderr, "usage: counting_worker FOLDER\n"), 2;
  auto context = muster::Context::Create();
  if (!context.ok()) return Fail(context.status());
  auto group = muster::CreateProcessGroup(**context);
  if (!group.ok()) return Fail(group.status());
  Status status = Counter(**context, **group, argv[1]).Run();
  return status.ok() ? 0 : Fail(status);
}
