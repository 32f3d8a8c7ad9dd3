// Turns the status of jobs and the events of Watch into protobuf, for the rendezvous' admin calls.
// Pure functions; thread-safe.
#ifndef MUSTER_RENDEZVOUS_SERVER_STATUS_CONVERT_H_
#define MUSTER_RENDEZVOUS_SERVER_STATUS_CONVERT_H_

#include <vector>

#include "proto/rendezvous.pb.h"
#include "rendezvous/core/job_machine.h"
#include "rendezvous/server/rendezvous_loop.h"

namespace muster::rendezvous {

proto::GetStatusReply StatusToProto(const std::vector<JobStatus>& jobs);
proto::WatchEvent EventToProto(const WatchedEvent& event);

}  // namespace muster::rendezvous

#endif  // MUSTER_RENDEZVOUS_SERVER_STATUS_CONVERT_H_
