// Prints the tables of docs/goodput.md: how much of a large job's time is useful, by the interval
// of its checkpoints, its spares, and how soon a failure is noticed.
//   goodput_table [--nodes=100000] [--failures=30]
#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <future>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tests/simulation/goodput.h"
#include "tests/simulation/large_job.h"

namespace muster::simulation {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// 419 unexpected interruptions in 54 days on 16,384 GPUs, 8 to a node (Llama 3, 2024).
constexpr double kNodeMtbfDays = 54.0 * (16384 / 8.0) / 419;

struct Settings {
  int nodes = 100'000;
  int failures = 30;
  double repair_hours = 1;
  double restart_s = 30;
  double pause_s = 0.5;
  double commit_s = 5;
  uint64_t seed = 1;
};

Duration Seconds(double s) { return Duration(static_cast<int64_t>(s * 1e9)); }

LargeJobOptions OptionsOf(const Settings& settings, int spares, std::optional<Duration> lease) {
  LargeJobOptions options;
  options.nodes = settings.nodes;
  options.min_nodes = settings.nodes * 9 / 10;
  options.spares = spares;
  options.node_mtbf = Seconds(kNodeMtbfDays * 86400);
  options.repair = Seconds(settings.repair_hours * 3600);
  options.lease = lease;
  options.horizon = options.node_mtbf / settings.nodes * settings.failures;
  options.seed = settings.seed;
  return options;
}

CheckpointCosts CostsOf(const Settings& settings, int interval_s) {
  return {.interval = seconds(interval_s),
          .pause = Seconds(settings.pause_s),
          .until_committed = Seconds(settings.commit_s),
          .restart = Seconds(settings.restart_s)};
}

struct Column {
  std::string name;
  LargeJobOptions options;
};

// Two at a time, since each takes hundreds of megabytes.
std::vector<LargeJobResult> RunAll(const std::vector<Column>& columns) {
  std::vector<LargeJobResult> results(columns.size());
  auto every_other = [&](size_t first) {
    for (size_t i = first; i < columns.size(); i += 2) {
      results[i] = LargeJob(columns[i].options).Run();
    }
  };
  auto second = std::async(std::launch::async, every_other, 1);
  every_other(0);
  second.get();
  return results;
}

bool PrintTable(const Settings& settings, const char* title, const std::vector<Column>& columns) {
  const std::vector<LargeJobResult> results = RunAll(columns);
  std::printf("\n%s\n\n| checkpoint every |", title);
  for (const Column& column : columns) std::printf(" %s |", column.name.c_str());
  std::printf("\n|---|");
  for (size_t i = 0; i < columns.size(); ++i) std::printf("---|");
  for (int interval_s : {15, 30, 60, 120, 300}) {
    std::printf("\n| %d s |", interval_s);
    for (const LargeJobResult& result : results) {
      std::printf(" %.3f |",
                  UsefulFraction(result.timeline, settings.nodes, CostsOf(settings, interval_s)));
    }
  }
  std::printf("\n| *failures; rounds* |");
  for (const LargeJobResult& r : results) std::printf(" %d; %d |", r.failures, r.rounds);
  std::printf("\n| *failure to all informed again, s* |");
  for (const LargeJobResult& result : results) {
    std::printf(" %.1f |", std::chrono::duration<double>(result.outage).count());
  }
  std::printf("\n");
  for (const LargeJobResult& result : results) {
    if (result.broken.empty()) continue;
    std::fprintf(stderr, "goodput_table: broken: %s\n", result.broken.c_str());
    return false;
  }
  return true;
}

int Main(int argc, char** argv) {
  Settings settings;
  CLI::App app("How much of a large job's time is useful");
  app.add_option("--nodes", settings.nodes, "MAX of the job; 8 GPUs each");
  app.add_option("--failures", settings.failures, "How many to expect in each run");
  app.add_option("--repair-hours", settings.repair_hours, "Until a node that failed is back");
  app.add_option("--restart", settings.restart_s, "Seconds from a round's start to training");
  app.add_option("--pause", settings.pause_s, "Seconds that a checkpoint takes from training");
  app.add_option("--commit", settings.commit_s, "Seconds until a checkpoint is committed");
  app.add_option("--seed", settings.seed, "Of the failures");
  CLI11_PARSE(app, argc, argv);
  const auto begin = std::chrono::steady_clock::now();
  const LargeJobOptions sample = OptionsOf(settings, 0, std::nullopt);
  const double every_s = std::chrono::duration<double>(sample.node_mtbf).count() / settings.nodes;
  const int away = static_cast<int>(settings.repair_hours * 3600 / every_s);
  std::printf("%d nodes, one failure every %.0f s, %d nodes in repair, %.1f h simulated\n",
              settings.nodes, every_s, away,
              std::chrono::duration<double>(sample.horizon).count() / 3600);

  const int ample = 4 * away + 8;
  std::vector<Column> noticed = {
      {"stream ends", OptionsOf(settings, ample, std::nullopt)},
      {"lease 1 s", OptionsOf(settings, ample, seconds(1))},
      {"lease 3 s", OptionsOf(settings, ample, seconds(3))},
      {"lease 10 s", OptionsOf(settings, ample, seconds(10))},
      {"lease 30 s", OptionsOf(settings, ample, seconds(30))},
  };
  std::vector<Column> spares;
  for (int count : std::set<int>{0, away / 2, away, 2 * away, ample}) {
    spares.push_back({std::to_string(count) + " spares", OptionsOf(settings, count, seconds(3))});
  }
  bool is_good = PrintTable(settings, "How a failure is noticed, with ample spares:", noticed) &&
                 PrintTable(settings, "Spares, with a lease of 3 s:", spares);
  std::fprintf(stderr, "goodput_table: %.0f s\n",
               std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  return is_good ? 0 : 1;
}

}  // namespace
}  // namespace muster::simulation

int main(int argc, char** argv) {
  try {
    return muster::simulation::Main(argc, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "goodput_table: %s\n", e.what());
    return 70;
  }
}
