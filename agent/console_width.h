// How wide the terminal is that shows the workers' output. Workers write into pipes, so they can't
// see it themselves. Thread-safe.
#ifndef MUSTER_AGENT_CONSOLE_WIDTH_H_
#define MUSTER_AGENT_CONSOLE_WIDTH_H_

namespace muster::agent {

// Columns of the terminal that is this process's stdout; 0 if it is none. 80 where it doesn't tell.
int ConsoleColumns();

}  // namespace muster::agent

#endif  // MUSTER_AGENT_CONSOLE_WIDTH_H_
