// Takes the signals that stop a job (SIGTERM and others) and those that are passed on to the
// workers (SIGUSR1, SIGUSR2) and calls a function on a thread of its own, where everything is
// allowed. What was ignored when the process started stays ignored (nohup, background jobs of a
// script). Make it after the guardian was forked and before any other thread exists, since every
// thread has to inherit the blocked mask.
#ifndef MUSTER_LAUNCHER_STOP_SIGNALS_H_
#define MUSTER_LAUNCHER_STOP_SIGNALS_H_

#include <csignal>
#include <functional>
#include <span>
#include <thread>

namespace muster::launcher {

class StopSignals {
 public:
  // Blocks `signals` in the calling thread; SIGPIPE is ignored from now on.
  explicit StopSignals(std::span<const int> signals);
  // Ends the thread. A call of `on_signal` that goes on is waited for.
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  // From now on `on_signal` is called with each signal, one at a time; also with one that came
  // before. Call it once.
  void Watch(std::function<void(int)> on_signal);

 private:
  sigset_t taken_;
  int stop_fd_ = -1;
  std::thread thread_;
};

}  // namespace muster::launcher

#endif  // MUSTER_LAUNCHER_STOP_SIGNALS_H_
