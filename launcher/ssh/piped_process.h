// A child process with pipes for its input, output and errors, in a session of its own: the
// terminal's Ctrl-C reaches us alone. Made by a process without threads that neither ignores
// SIGCHLD nor dies of SIGPIPE, and owned by one thread.
#ifndef MUSTER_LAUNCHER_SSH_PIPED_PROCESS_H_
#define MUSTER_LAUNCHER_SSH_PIPED_PROCESS_H_

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

namespace muster::launcher {

class PipedProcess {
 public:
  // argv[0] is looked up on PATH. Where `dies_with_us` the child gets SIGTERM when this process is
  // killed; its input ends in any case.
  PipedProcess(const std::vector<std::string>& argv, bool dies_with_us);
  // Closes the pipes; a child that still runs is neither ended nor waited for.
  ~PipedProcess();
  PipedProcess(const PipedProcess&) = delete;
  PipedProcess& operator=(const PipedProcess&) = delete;

  // Why it couldn't be started, in the system's words, as errno; 0: it was.
  int error() const { return error_; }

  // What to poll: for POLLOUT, -1 if there is nothing to send; and for POLLIN, -1 after its end.
  int input_fd() const { return to_send_.empty() ? -1 : in_; }
  int output_fd() const { return out_; }
  int errors_fd() const { return err_; }

  // Sends as much as there is room for; the rest waits for Flush(). A child that has closed its
  // input gets nothing.
  void Send(const std::string& bytes);
  void Flush();
  void CloseInput();
  // What is there now, at most `most` bytes.
  std::string ReadOutput(size_t most) { return Read(out_, most); }
  std::string ReadErrors(size_t most) { return Read(err_, most); }

  // Its exit code, as a shell's; nothing while it runs. Reaps it.
  std::optional<int> Status();
  // To it and all that it has started in its session's first group.
  void Kill(int signal) const;

 private:
  static std::string Read(int& fd, size_t most);

  pid_t pid_ = -1;
  int error_ = 0;
  int in_ = -1;
  int out_ = -1;
  int err_ = -1;
  std::string to_send_;
  std::optional<int> status_;
};

}  // namespace muster::launcher

#endif  // MUSTER_LAUNCHER_SSH_PIPED_PROCESS_H_
