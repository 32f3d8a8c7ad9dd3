// Trains on Fashion-MNIST with as many ranks as `muster run` starts, or alone.

#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "examples/fashion_mnist/image_set.h"
#include "examples/fashion_mnist/options.h"
#include "examples/fashion_mnist/report.h"
#include "examples/fashion_mnist/trainer.h"
#include "worker_sdk/muster.h"

namespace fashion_mnist {
namespace {

using muster::Status;
using muster::StatusCode;

// Whether all ranks have the same parameters: all added the same gradients.
Status CheckAgreement(muster::ProcessGroup& group, const std::string& mine) {
  const std::vector<uint8_t> text(mine.begin(), mine.end());
  std::vector<uint8_t> all(text.size() * static_cast<size_t>(group.world_size()));
  Status gathered = group.AllGather(muster::View(text), muster::MutableView(all)).Wait();
  if (!gathered.ok()) return gathered;
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i] != text[i % text.size()]) {
      return {StatusCode::kInternal, "rank " + std::to_string(i / text.size()) +
                                         " ended with other parameters than rank " +
                                         std::to_string(group.rank())};
    }
  }
  return {};
}

Status Train(const Options& options) {
  const auto training = LoadImages(options.data, Part::kTraining);
  if (!training.ok()) return training.status();
  const auto test = LoadImages(options.data, Part::kTest);
  if (!test.ok()) return test.status();

  auto context = muster::Context::Create();
  if (!context.ok()) return context.status();
  auto group = muster::CreateProcessGroup(**context);
  if (!group.ok()) return group.status();
  const bool is_first = (*group)->rank() == 0;
  // muster shows our output on its terminal: then it says how wide that is.
  const bool is_watched =
      isatty(STDOUT_FILENO) == 1 || std::getenv("MUSTER_CONSOLE_COLUMNS") != nullptr;
  Report report(is_first ? stdout : nullptr, is_watched);

  auto trainer = Trainer::Create({.context = **context,
                                  .group = **group,
                                  .training = *training,
                                  .test = *test,
                                  .report = report},
                                 options);
  if (!trainer.ok()) return trainer.status();
  Status done = (*trainer)->Run();
  if (!done.ok()) return done;
  const auto accuracy = (*trainer)->Evaluate();
  if (!accuracy.ok()) return accuracy.status();
  const std::string params = (*trainer)->Fingerprint();
  done = CheckAgreement(**group, params);
  if (!done.ok()) return done;

  const auto resumed = (*trainer)->resumed_step();
  char shown[16];
  std::snprintf(shown, sizeof shown, "%.4f", *accuracy);
  report.Line("fashion_mnist: accuracy=" + std::string(shown) +
              " world=" + std::to_string((*group)->world_size()) +
              " restarts=" + std::to_string((*context)->restarts_charged()) + " resumed_step=" +
              (resumed.has_value() ? std::to_string(*resumed) : "none") + " params=" + params);
  return {};
}

}  // namespace
}  // namespace fashion_mnist

int main(int argc, char** argv) {
  int exit_code = 0;
  const auto options = fashion_mnist::ParseOptions(argc, argv, &exit_code);
  if (!options.has_value()) return exit_code;
  const muster::Status done = fashion_mnist::Train(*options);
  if (done.ok()) return 0;
  std::fprintf(stderr, "fashion_mnist: %s\n", done.message().c_str());
  return 1;
}
