// Reads the file in which a worker wrote why it failed (torchrun's @record does). Untrusted input:
// a file may be missing, huge, half-written or anything at all. Thread-safe.
#ifndef MUSTER_AGENT_ERROR_FILE_H_
#define MUSTER_AGENT_ERROR_FILE_H_

#include <optional>
#include <string>

namespace muster::agent {

// The text within, at most 16 KiB: the call stack if the record has one, else its message, else the
// file as it is. Nothing if there is no such regular file, or it is empty.
std::optional<std::string> ReadErrorFile(const std::string& path);

// Copies it, at most 1 MiB, over what may be at `to`. Returns why it can't be written, or nothing;
// nothing also if there is no such file to copy.
std::string CopyErrorFile(const std::string& from, const std::string& to);

}  // namespace muster::agent

#endif  // MUSTER_AGENT_ERROR_FILE_H_
