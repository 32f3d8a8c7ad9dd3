// Lines of the launcher's own, before and after the agent runs: "muster: <sentence>" on stderr, in
// one write. Thread-safe, but for SayAsRecords().
#ifndef MUSTER_LAUNCHER_SAY_H_
#define MUSTER_LAUNCHER_SAY_H_

#include <string>
#include <string_view>

namespace muster::launcher {

void Say(std::string_view sentence);

// The same for why this node can't begin.
void SayProblem(std::string_view sentence);

// From now on both say records (launcher/ssh/remote_record.h): this process runs for `muster run
// --hosts` on another host, which says each sentence once for all of them. To be called at most
// once, at the start.
void SayAsRecords(std::string mark);
// What was given to it; empty: it wasn't called.
const std::string& RecordMark();

// To stdout, as it is: help, version, tables. False if it can't be written.
bool Print(std::string_view text);

}  // namespace muster::launcher

#endif  // MUSTER_LAUNCHER_SAY_H_
