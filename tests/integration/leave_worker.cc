// A training loop without a model, for leave_test.py: counts steps with an all-reduce, and saves
// when it is told to.
//
//   leave_worker FOLDER MODE STEPS PAUSE_MS
//
// MODE: "save" asks at each step whether to save; "never" asks and doesn't; "report" reports only.
// FOLDER gets the checkpoints and, of each rank, `steps.<rank>` with a line "<attempt> <step>" for
// each step it completed and "<attempt> saved <step>" for each checkpoint it was asked for.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include "worker_sdk/muster.h"

namespace {

struct Settings {
  std::string folder;
  std::string mode;
  int64_t steps = 0;
  std::chrono::milliseconds pause{0};
};

muster::Status Train(const Settings& settings) {
  auto context = muster::Context::Create();
  if (!context.ok()) return context.status();
  auto group = muster::CreateProcessGroup(**context);
  if (!group.ok()) return group.status();
  auto store = muster::CheckpointStore::Open(**context, **group,
                                             {.directory = settings.folder + "/checkpoints"});
  if (!store.ok()) return store.status();
  auto loaded = (*store)->Load();
  if (!loaded.ok()) return loaded.status();
  int64_t step = loaded->has_value() ? (**loaded).step() : 0;

  std::ofstream log(settings.folder + "/steps." + std::to_string((*context)->rank()),
                    std::ios::app);
  const std::string attempt = std::to_string((*context)->attempt());
  while (step < settings.steps) {
    std::vector<float> one(1, 1.0F);
    muster::Status reduced =
        (*group)->AllReduce(muster::MutableView(one), muster::ReduceOp::kSum).Wait();
    if (!reduced.ok()) return reduced;
    ++step;
    log << attempt << " " << step << std::endl;
    std::this_thread::sleep_for(settings.pause);
    if (settings.mode == "report") {
      (*context)->StepDone(step);
    } else if ((*context)->ShouldSave(step) && settings.mode == "save") {
      log << attempt << " saved " << step << std::endl;
      const std::vector<float> state(1, static_cast<float>(step));
      muster::Status saved = (*store)->Save(
          {.step = step, .tensors = {{.name = "state", .data = muster::View(state)}}});
      if (!saved.ok()) return saved;
    }
  }
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    std::cerr << "usage: leave_worker FOLDER save|never|report STEPS PAUSE_MS\n";
    return 64;
  }
  const muster::Status done = Train({.folder = argv[1],
                                     .mode = argv[2],
                                     .steps = std::atoll(argv[3]),
                                     .pause = std::chrono::milliseconds(std::atoi(argv[4]))});
  if (done.ok()) return 0;
  std::cerr << "leave_worker: " << done.message() << "\n";
  return 1;
}
