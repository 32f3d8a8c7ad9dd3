// The streams between agents and the rendezvous, as TCP behaves: in order, each way with its own
// delays; a partition stops messages until it heals or the connection breaks; a process that dies
// closes its end, a machine that loses power says nothing; a dead port refuses. Owned by SimWorld,
// which is told what arrives; one thread.
#ifndef MUSTER_TESTS_SIMULATION_SIM_NETWORK_H_
#define MUSTER_TESTS_SIMULATION_SIM_NETWORK_H_

#include <deque>
#include <optional>
#include <vector>

#include "base/ids.h"
#include "base/instant.h"
#include "base/session_messages.h"
#include "tests/simulation/event_queue.h"
#include "tests/simulation/fault_plan.h"
#include "tests/simulation/sim_random.h"

namespace muster::simulation {

// Index of a machine, and of one life of an agent, in SimWorld's lists.
using HostIndex = int;
using AgentIndex = int;
using StreamIndex = int;

enum class Way : int { kToRendezvous = 0, kToAgent = 1 };

class NetworkObserver {
 public:
  virtual ~NetworkObserver() = default;
  // What the agent's end sees. Each is about the stream that Connect() returned last.
  virtual void OnAgentConnected(AgentIndex agent, StreamIndex stream) = 0;
  virtual void OnAgentDisconnected(AgentIndex agent, StreamIndex stream, const char* why) = 0;
  virtual void OnAgentMessage(AgentIndex agent, StreamIndex stream, RendezvousMessage message) = 0;
  // What the rendezvous' end sees.
  virtual void OnServerStreamOpened(SessionId session, AgentIndex agent) = 0;
  virtual void OnServerMessage(SessionId session, AgentMessage message) = 0;
  virtual void OnServerStreamEnded(SessionId session) = 0;
};

class SimNetwork {
 public:
  // All must outlive the network.
  SimNetwork(const SimOptions& options, EventQueue& queue, SimRandom& random,
             NetworkObserver& observer)
      : options_(options), queue_(queue), random_(random), observer_(observer) {}

  HostIndex AddHost();

  // ---- the agent's end
  StreamIndex Connect(AgentIndex agent, HostIndex host);
  void Send(StreamIndex stream, AgentMessage message);
  // Closes in order: what was sent before still arrives. Also what a dying process' kernel does.
  void CloseAgentEnd(StreamIndex stream);

  // A plain connection: how it ends comes to the agent as kProbeAnswered.
  void Probe(AgentIndex agent);

  // ---- the rendezvous' end
  void SetServerUp();
  // Every stream ends; what the agents had sent and it had not read is lost.
  void SetServerDown();
  // A stalled server accepts no stream until it thaws; bytes for open streams queue in its kernel.
  void SetServerStalled(bool is_stalled);
  void SendToAgent(SessionId session, RendezvousMessage message);
  void CloseServerEnd(SessionId session);

  // ---- faults
  void Block(HostIndex host, Direction direction);
  // After a partition that lasted `after`: each stream goes on, or turns out to be broken.
  void Unblock(HostIndex host, Direction direction);
  bool IsBlocked(HostIndex host) const;
  // Both ends of every open stream of this machine get an error; messages under way are lost.
  // False if it had none.
  bool Reset(HostIndex host);
  void PowerOff(HostIndex host);

  // Of kProbeArrives; `host` is the agent's.
  void ProbeArrives(AgentIndex agent, HostIndex host);
  // Kinds kDeliver, kSideBreaks, kConnectArrives, kConnectRefused, kConnectTimesOut.
  void Handle(const Due& due);

 private:
  enum class End : uint8_t { kConnecting, kOpen, kClosed };

  struct Stream {
    AgentIndex agent = 0;
    HostIndex host = 0;
    SessionId session;
    End agent_end = End::kConnecting;
    End server_end = End::kClosed;
    // Waiting for the partition's or the stall's end.
    bool is_arrival_held = false;
    // Nothing is delivered to a machine without power, and nothing comes from it.
    bool is_powered_off = false;
    // nullopt: the end of the stream.
    std::deque<std::optional<AgentMessage>> up;
    std::deque<std::optional<RendezvousMessage>> down;
    int held[2] = {0, 0};
    Instant last_arrival[2];
  };

  struct Host {
    int blocked[2] = {0, 0};
    std::vector<StreamIndex> streams;
  };

  Duration Delay() { return random_.Between(options_.least_delay, options_.most_delay); }
  void ScheduleDelivery(StreamIndex index, Way way);
  void Deliver(StreamIndex index, Way way);
  void DeliverUp(Stream& stream);
  void DeliverDown(Stream& stream, StreamIndex index);
  void Arrive(StreamIndex index);
  void BreakAgentEnd(StreamIndex index, const char* why);
  void BreakServerEnd(StreamIndex index);
  Stream* OfSession(SessionId session);
  static bool Stops(Direction direction, Way way);

  const SimOptions& options_;
  EventQueue& queue_;
  SimRandom& random_;
  NetworkObserver& observer_;
  bool server_is_up_ = true;
  bool server_is_stalled_ = false;
  std::deque<Stream> streams_;
  std::vector<Host> hosts_;
  // By session number: numbers go on over the rendezvous' lives, so a late one is never mistaken.
  std::vector<StreamIndex> by_session_{-1};
};

}  // namespace muster::simulation

#endif  // MUSTER_TESTS_SIMULATION_SIM_NETWORK_H_
