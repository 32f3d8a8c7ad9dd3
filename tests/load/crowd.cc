// One process full of light nodes: reads `add COUNT` on its standard input and says on its standard
// output what they hear (tally.h). Ends at the end of its input, or with its parent.
//   crowd --port=29400 --nodes=8:10 --name=crowd0 [--bare]
#include "tests/load/crowd.h"

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <iostream>
#include <memory>
#include <string>

#include "absl/synchronization/mutex.h"
#include "agent/guardian/descriptor_limit.h"
#include "tests/load/tally.h"

namespace muster::load {
namespace {

int Main(int argc, char** argv) {
  CrowdOptions options;
  bool is_bare = false;
  CLI::App app("Many light nodes in one process");
  app.add_option("--port", options.port, "Of the rendezvous, on 127.0.0.1")->required();
  app.add_option("--name", options.name, "Begins the nodes' names")->required();
  app.add_option("--min-nodes", options.min_nodes, "MIN of the job")->required();
  app.add_option("--max-nodes", options.max_nodes, "MAX of the job")->required();
  app.add_flag("--bare", is_bare, "A bare gRPC program in place of muster's client");
  CLI11_PARSE(app, argc, argv);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  agent::guardian::RaiseDescriptorLimit();
  // As in launcher/main.cc.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  Tally tally(stdout);
  std::unique_ptr<Crowd> crowd =
      is_bare ? NewBareCrowd(options, &tally) : NewAgentCrowd(options, &tally);
  std::string word;
  int count = 0;
  while (std::cin >> word >> count && word == "add" && count > 0) crowd->Add(count);
  // Not by unwinding: nodes that are killed don't say goodbye.
  _exit(std::cin.eof() ? 0 : 64);
}

}  // namespace
}  // namespace muster::load

int main(int argc, char** argv) {
  try {
    return muster::load::Main(argc, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "crowd: %s\n", e.what());
    return 70;
  }
}
