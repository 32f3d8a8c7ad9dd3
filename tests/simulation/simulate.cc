// Runs the simulation over many seeds, or shows one.
//
//   simulate --seeds=10000            medians of the faults, and how many rules were broken
//   simulate --seed=42 --trace        one seed, with all that happened
//   simulate --planted                plants each fault in turn and says which seed finds it
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "base/planted_fault.h"
#include "tests/simulation/planted_faults.h"
#include "tests/simulation/sim_world.h"

namespace muster::simulation {
namespace {

// Lines of a failed run's trace that are shown.
constexpr size_t kLastLines = 60;

struct Options {
  uint64_t first = 1;
  uint64_t seeds = 10000;
  uint64_t seed = 0;
  bool is_traced = false;
  bool is_planted = false;
};

int Median(std::vector<int> values) {
  if (values.empty()) return 0;
  auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

void PrintLines(const std::deque<std::string>& lines, size_t most) {
  size_t first = lines.size() > most ? lines.size() - most : 0;
  for (size_t i = first; i < lines.size(); ++i) std::printf("%s\n", lines[i].c_str());
}

void ReportBroken(uint64_t seed, const RunResult& result) {
  RunResult traced = RunSeed({.seed = seed, .is_traced = true});
  PrintLines(traced.trace, kLastLines);
  std::printf("seed %llu: broken: %s\n  again: simulate --seed=%llu --trace\n",
              static_cast<unsigned long long>(seed), result.broken.c_str(),
              static_cast<unsigned long long>(seed));
}

int RunOne(const Options& options) {
  RunResult result = RunSeed({.seed = options.seed, .is_traced = options.is_traced});
  PrintLines(result.trace, result.trace.size());
  std::printf(
      "seed %llu: %s; kills %d, partitions %d, stalls %d, rendezvous restarts %d, rounds %d, "
      "%lld events\n",
      static_cast<unsigned long long>(options.seed),
      result.broken.empty() ? "no broken invariant" : result.broken.c_str(), result.kills,
      result.partitions, result.stalls, result.rendezvous_restarts, result.rounds,
      static_cast<long long>(result.events));
  return result.broken.empty() ? 0 : 1;
}

int RunMany(const Options& options) {
  constexpr int kShownFailures = 3;
  std::vector<int> kills, partitions, stalls, freezes, restarts, rounds;
  int broken = 0;
  int succeeded = 0;
  int64_t events = 0;
  auto start = std::chrono::steady_clock::now();
  for (uint64_t seed = options.first; seed < options.first + options.seeds; ++seed) {
    RunResult result = RunSeed({.seed = seed});
    kills.push_back(result.kills);
    partitions.push_back(result.partitions);
    stalls.push_back(result.stalls);
    freezes.push_back(result.freezes);
    restarts.push_back(result.rendezvous_restarts);
    rounds.push_back(result.rounds);
    events += result.events;
    succeeded += result.succeeded ? 1 : 0;
    if (result.broken.empty()) continue;
    if (++broken <= kShownFailures) ReportBroken(seed, result);
    if (broken > kShownFailures) {
      std::printf("seed %llu: %s\n", static_cast<unsigned long long>(seed), result.broken.c_str());
    }
  }
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::printf(
      "medians per seed: kills %d, partitions %d, stalls %d, rendezvous restarts %d, rounds %d; "
      "frozen agents %d\n",
      Median(kills), Median(partitions), Median(stalls), Median(restarts), Median(rounds),
      Median(freezes));
  std::printf("%d jobs succeeded; %lld events, %.1f s\n", succeeded, static_cast<long long>(events),
              seconds);
  std::printf("%llu seeds, %d broken invariants\n", static_cast<unsigned long long>(options.seeds),
              broken);
  return broken == 0 ? 0 : 1;
}

int RunPlanted(const Options& options) {
  int missed = 0;
  for (const PlantedFaultName& planted : kPlantedFaults) {
    Finding finding = FindPlanted(planted.fault, options.first, options.seeds);
    if (finding.seed == 0) ++missed;
    std::printf("%-26s %6s  %s\n", planted.name,
                finding.seed == 0 ? "-" : std::to_string(finding.seed).c_str(),
                finding.broken.c_str());
  }
  return missed == 0 ? 0 : 1;
}

int Main(int argc, char** argv) {
  Options options;
  CLI::App app("Runs a simulated muster cluster over many seeds");
  app.add_option("--seeds", options.seeds, "How many seeds to run");
  app.add_option("--first", options.first, "The first seed");
  app.add_option("--seed", options.seed, "Run this one alone");
  app.add_flag("--trace", options.is_traced, "Print all that happened in --seed");
  app.add_flag("--planted", options.is_planted, "Plant each fault and find it");
  CLI11_PARSE(app, argc, argv);
  if (options.seed != 0) return RunOne(options);
  if (options.is_planted) {
    options.seeds = std::min<uint64_t>(options.seeds, 1000);
    return RunPlanted(options);
  }
  return RunMany(options);
}

}  // namespace
}  // namespace muster::simulation

int main(int argc, char** argv) {
  try {
    return muster::simulation::Main(argc, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "simulate: %s\n", e.what());
    return 70;
  }
}
