// Shows on stderr where the main thread is, when the agent asks by a signal before it ends a hung
// worker (--hang-timeout). The signal's function makes system calls only, so it may interrupt
// anything. Lines read "#2 0x7f12 /path/to/file+0x1234": `addr2line -e FILE 0x1234` names the
// source. A program that has a function for the signal keeps it.
#ifndef MUSTER_WORKER_SDK_CONTEXT_STACK_DUMP_H_
#define MUSTER_WORKER_SDK_CONTEXT_STACK_DUMP_H_

namespace muster {

// `signal`: the value of MUSTER_STACK_SIGNAL, a number; null, or anything else, does nothing. True
// if the signal now shows the stack. Call it from any thread, as often as you like.
bool InstallStackDump(const char* signal);

}  // namespace muster

#endif  // MUSTER_WORKER_SDK_CONTEXT_STACK_DUMP_H_
