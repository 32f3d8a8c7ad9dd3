// The version of this build: one number for launcher, agent, rendezvous and SDK. Nodes of one job
// must all have the same.
#ifndef MUSTER_BASE_VERSION_H_
#define MUSTER_BASE_VERSION_H_

namespace muster {

inline constexpr char kVersion[] = "0.1.0";

}  // namespace muster

#endif  // MUSTER_BASE_VERSION_H_
