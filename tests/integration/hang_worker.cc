// A worker for hang_test.py and rules_test.py. It uses the SDK, whose thread answers the agent's
// pings, and reports steps over a connection of its own.
//
//   hang_worker loop N     rank N hangs after step 5; the others make step 6 and wait for it
//   hang_worker fail N     rank N exits 7 after step 5; the others make it too and wait
//   hang_worker go-on      steps for ever
//   hang_worker idle       reports no step and waits
//   hang_worker leave      makes a step, closes the channel, and ends when the file "go" is there
//   hang_worker tell       reports a step in the name of the worker that started it, and waits
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

#include "base/env.h"
#include "base/worker_channel.h"
#include "worker_sdk/muster.h"

namespace {

using namespace muster;

constexpr int kStepMs = 20;
constexpr int64_t kLastStep = 5;

// Reports the steps of this process's worker.
class StepTeller {
 public:
  StepTeller() : fd_(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    std::string name = std::getenv(env::kAgentSocket);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(&address.sun_path[1], name.data(), name.size());
    auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    if (connect(fd_, reinterpret_cast<sockaddr*>(&address), size) != 0) std::abort();
    worker_channel::Hello hello;
    hello.worker_id = std::getenv(env::kWorkerId);
    hello.pid = getpid();
    Send(hello);
  }
  ~StepTeller() { close(fd_); }
  StepTeller(const StepTeller&) = delete;
  StepTeller& operator=(const StepTeller&) = delete;

  void Completed(int64_t step) {
    worker_channel::StepDone done;
    done.step = step;
    Send(done);
    std::printf("step %ld\n", static_cast<long>(step));
    std::fflush(stdout);
  }

 private:
  void Send(const worker_channel::Message& message) const {
    std::string frame = worker_channel::Encode(message);
    if (write(fd_, frame.data(), frame.size()) != static_cast<ssize_t>(frame.size())) std::abort();
  }
  const int fd_;
};

// Not inlined, so that a stack shows it.
[[gnu::noinline]] void HangForEver() {
  volatile bool goes_on = true;
  while (goes_on) poll(nullptr, 0, 100);
}

int WaitForTheOthers(Context& context) {
  pollfd round_is_over{context.abort_signal().fd(), POLLIN, 0};
  while (!context.abort_signal().IsRaised()) poll(&round_is_over, 1, -1);
  std::fprintf(stderr, "%s\n", context.abort_signal().status().message().c_str());
  return 1;
}

int Run(const std::string& mode, int who) {
  auto context = Context::Create();
  if (!context.ok()) {
    std::fprintf(stderr, "%s\n", context.status().message().c_str());
    return 2;
  }
  if (mode == "idle") {
    std::printf("up\n");
    std::fflush(stdout);
    return WaitForTheOthers(**context);
  }
  auto teller = std::make_unique<StepTeller>();
  if (mode == "tell") {
    teller->Completed(1);
    HangForEver();
  }
  if (mode == "leave") {
    teller->Completed(1);
    teller.reset();
    context->reset();
    while (access("go", F_OK) != 0) poll(nullptr, 0, kStepMs);
    return 0;
  }
  for (int64_t step = 1; mode == "go-on" || step <= kLastStep; ++step) {
    poll(nullptr, 0, kStepMs);
    teller->Completed(step);
  }
  if (mode == "fail") return (*context)->rank() == who ? 7 : WaitForTheOthers(**context);
  if ((*context)->rank() == who) HangForEver();
  teller->Completed(kLastStep + 1);
  return WaitForTheOthers(**context);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 64;
  return Run(argv[1], argc > 2 ? std::atoi(argv[2]) : -1);
}
