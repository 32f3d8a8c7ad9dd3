// Reads the file in which a worker wrote why it failed (torchrun's @record does), and writes ours
// for a launcher above us. Untrusted input: a file may be missing, huge, half-written or anything
// at all. Thread-safe.
#ifndef MUSTER_AGENT_ERROR_FILE_H_
#define MUSTER_AGENT_ERROR_FILE_H_

#include <cstdint>
#include <optional>
#include <string>

namespace muster::agent {

struct ErrorRecord {
  // The file as it is, at most 1 MiB.
  std::string raw;
  // What a person needs of it, at most 16 KiB: the call stack if the record has one, else its
  // message, else the file as it is.
  std::string text;
};

// Nothing if there is no such regular file, or it is empty.
std::optional<ErrorRecord> ReadErrorFile(const std::string& path);

// The record with message.errorCode set, as torchrun passes it on: a worker that was ended by a
// signal couldn't write that itself. As it is where it has no place for one, or `code` is 0.
std::string WithErrorCode(const std::string& raw, int code);

// A record of our own, for a failure of which no worker has left one.
std::string OwnErrorRecord(const std::string& reason, int code, int64_t wall_time_s);

// Writes it over what may be at `path`. Returns why it can't be written, or nothing.
std::string WriteErrorFile(const std::string& record, const std::string& path);

}  // namespace muster::agent

#endif  // MUSTER_AGENT_ERROR_FILE_H_
