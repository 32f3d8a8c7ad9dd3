// The agent of one node: starts, watches and stops this node's workers as the rendezvous says,
// shows their output, and ends with the job's verdict. The launcher makes one, calls Run() on a
// thread of its choice, and feeds it the signals that `muster run` gets. Everything it needs comes
// in with AgentParts, so that tests run it over fakes.
//
//   Agent agent(std::move(settings), {.make_client = ..., .make_runner = ...});
//   Verdict verdict = agent.Run();   // has shown the failure summary; exit with verdict.exit_code
//
// Owned by the launcher. RequestStop(), ForwardSignal() and Say() may be called from any thread, at
// any time, before, during and after Run(), but not from a signal handler.
#ifndef MUSTER_AGENT_AGENT_H_
#define MUSTER_AGENT_AGENT_H_

#include <functional>
#include <memory>
#include <string>

#include "agent/agent_settings.h"
#include "agent/process/process_runner.h"
#include "base/clock.h"
#include "base/job_types.h"
#include "base/session_messages.h"
#include "rendezvous/client/rendezvous_client.h"

namespace muster::agent {

// How the agent reaches the outside. The functions are called once, by Run(); what they make is
// dropped before Run() returns.
struct AgentParts {
  std::function<std::unique_ptr<rendezvous::RendezvousClient>(rendezvous::SessionObserver*)>
      make_client;
  std::function<std::unique_ptr<ProcessRunner>(ProcessObserver*)> make_runner;
  // Told the private folder of this run before it is filled, so that somebody removes it should the
  // agent be killed (the guardian does). May be empty.
  std::function<void(const std::string& folder)> on_private_folder;
  // Must outlive the agent.
  const Clock* clock = &SystemClock();
};

class Agent {
 public:
  Agent(AgentSettings settings, AgentParts parts);
  ~Agent();
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;

  // Runs until the job ends here and returns how; nothing of it is left then: no worker, no
  // temporary file, no output unwritten. A log folder that can't be written ends it before anything
  // starts (exit code 73). Call it once.
  Verdict Run();

  // After Run(): the place of this node in the newest round that ran here; round 0: none did.
  const StartRound& last_place() const;

  // SIGINT, SIGTERM, SIGHUP or SIGQUIT came: the workers get it, then the agent leaves the job; for
  // SIGTERM they first save, where they can, after a step that all nodes agree on. A second call
  // shortens the grace to zero. `notice`: what announced a SIGTERM's end that came by no signal.
  void RequestStop(int signal, std::string notice = "");

  // SIGUSR1 or SIGUSR2 came: passed on to every local worker.
  void ForwardSignal(int signal);

  // A line for the person who watches, shown between the workers' lines while Run() goes on; never
  // blocks.
  void Say(std::string line);

 private:
  class Work;
  std::unique_ptr<Work> work_;
};

}  // namespace muster::agent

#endif  // MUSTER_AGENT_AGENT_H_
