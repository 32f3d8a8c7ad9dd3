// Turns the structs of base/ into protobuf messages and back: the only place that does. What comes
// from outside is checked here once, so that the cores may trust it: FromProto answers
// InvalidArgument, naming the field, for a missing part, an id of a wrong size, a number out of its
// range, or a text over its bound. ToProto never fails: free text is cut to its bound. Pure
// functions; thread-safe.
#ifndef MUSTER_PROTO_SESSION_CONVERT_H_
#define MUSTER_PROTO_SESSION_CONVERT_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "base/job_types.h"
#include "base/session_messages.h"
#include "proto/job.pb.h"
#include "proto/rendezvous.pb.h"

namespace muster {

// Bounds that both sides keep; rendezvous.proto and job.proto name them beside the fields.
inline constexpr size_t kMaxName = 256;
inline constexpr size_t kMaxVersion = 64;
inline constexpr size_t kMaxPath = 4096;
inline constexpr size_t kMaxText = 16 << 10;
inline constexpr size_t kMaxStderrTail = 4 << 10;
inline constexpr size_t kMaxFailures = 64;
inline constexpr int32_t kMaxCount = 1'000'000;
// Room for rounds to grow after any that an agent may claim to have seen.
inline constexpr uint64_t kMaxRound = uint64_t{1} << 62;
// Ten years: an instant plus any duration from outside can't overflow.
inline constexpr Duration kMaxDuration = std::chrono::hours(24 * 3650);

proto::AgentMessage ToProto(const AgentMessage& message);
proto::RendezvousMessage ToProto(const RendezvousMessage& message);
proto::RoundScope ToProto(const RoundScope& scope);
proto::World ToProto(const World& world);
proto::Commit ToProto(const Commit& commit);
proto::Verdict ToProto(const Verdict& verdict);

absl::StatusOr<AgentMessage> FromProto(const proto::AgentMessage& message);
absl::StatusOr<RendezvousMessage> FromProto(const proto::RendezvousMessage& message);
absl::StatusOr<RoundScope> FromProto(const proto::RoundScope& scope);
absl::StatusOr<World> FromProto(const proto::World& world);
absl::StatusOr<Commit> FromProto(const proto::Commit& commit);
absl::StatusOr<Verdict> FromProto(const proto::Verdict& verdict);

}  // namespace muster

#endif  // MUSTER_PROTO_SESSION_CONVERT_H_
