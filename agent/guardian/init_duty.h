// What the first process of a container must do: reap orphans, and have real handlers, as the
// kernel drops signals that pid 1 doesn't handle.
#ifndef MUSTER_AGENT_GUARDIAN_INIT_DUTY_H_
#define MUSTER_AGENT_GUARDIAN_INIT_DUTY_H_

namespace muster::agent::guardian {

// As pid 1: forks; the copy returns and goes on as the program, while pid 1 stays here, passes
// every signal on, reaps whatever comes to it, and ends as the copy ended (128 + n for a signal).
// As any other process: returns at once. Call it before any thread exists. Returns 0 or an errno.
int LeaveInitBehind();

}  // namespace muster::agent::guardian

#endif  // MUSTER_AGENT_GUARDIAN_INIT_DUTY_H_
