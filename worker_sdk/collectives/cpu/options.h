// What a CPU group has to know to find and to prove itself to the other ranks. Values.
#ifndef MUSTER_WORKER_SDK_COLLECTIVES_CPU_OPTIONS_H_
#define MUSTER_WORKER_SDK_COLLECTIVES_CPU_OPTIONS_H_

#include <chrono>
#include <cstdint>
#include <string>

#include "base/ids.h"
#include "base/job_types.h"
#include "worker_sdk/context/peer_waits.h"

namespace muster {

// How AllReduce moves the data. All ranks must choose the same.
enum class Algorithm : uint8_t {
  kDirect = 0,  // reduce-scatter and all-gather between all pairs; serial order of addition
  kRing = 1,    // the same bytes, always to the next neighbour
};

struct CpuGroupOptions {
  int rank = 0;
  int world_size = 1;
  // The round's identity and secret: a peer that can't prove them is dropped.
  World world;
  RoundKey key;
  // Where other ranks reach this one: an IP address of either version, or a name.
  std::string address = "127.0.0.1";
  // Tells groups of one world apart.
  std::string name = "default";
  Algorithm algorithm = Algorithm::kDirect;
  // How long the other ranks may take to appear.
  std::chrono::milliseconds connect_patience = std::chrono::minutes(5);
  // How long a stranger may take to prove itself.
  std::chrono::milliseconds handshake_patience = std::chrono::seconds(5);
  // How long to wait, after a connection broke, for someone who knows the real culprit.
  std::chrono::milliseconds culprit_grace = std::chrono::milliseconds(200);
  // How long the destructor may take to finish what was started.
  std::chrono::milliseconds leave_patience = std::chrono::seconds(10);
  // Where the group notes what it waits for; outlives the group. Null: nobody wants to know.
  PeerWaits* waits = nullptr;
};

}  // namespace muster

#endif  // MUSTER_WORKER_SDK_COLLECTIVES_CPU_OPTIONS_H_
