// Turns the structs of base/job_types.h into the messages of job.proto and back, for the messages
// that carry them. Used by proto/session_convert.h, which says how mistakes are treated and holds
// the bounds. Pure functions; thread-safe.
#ifndef MUSTER_PROTO_JOB_CONVERT_H_
#define MUSTER_PROTO_JOB_CONVERT_H_

#include <string>

#include "base/job_types.h"
#include "proto/field_reader.h"
#include "proto/job.pb.h"
#include "proto/session_convert.h"

namespace muster {

// An id's bytes; none for no id.
template <class Id>
std::string IdBytes(const Id& id) {
  if (id.IsNone()) return "";
  return std::string(reinterpret_cast<const char*>(id.bytes.data()), id.bytes.size());
}

// The first `most` bytes: how free text is kept within its bound.
std::string Head(const std::string& text, size_t most);

proto::JobTerms ToProto(const JobTerms& terms);
proto::NodeFacts ToProto(const NodeFacts& facts);
proto::WorkerFailure ToProto(const WorkerFailure& failure);

// What the reader finds wrong, it keeps.
JobTerms ReadTerms(FieldReader& r, const proto::JobTerms& in);
NodeFacts ReadFacts(FieldReader& r, const proto::NodeFacts& in);
WorkerFailure ReadFailure(FieldReader& r, const proto::WorkerFailure& in);
Verdict ReadVerdict(FieldReader& r, const proto::Verdict& in);

}  // namespace muster

#endif  // MUSTER_PROTO_JOB_CONVERT_H_
