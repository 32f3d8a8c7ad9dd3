#include "tests/simulation/sim_network.h"

#include <algorithm>
#include <utility>

namespace muster::simulation {
namespace {

constexpr int kAgentSide = 0;
constexpr int kServerSide = 1;
// How long an agent waits for the answer to a plain connection.
constexpr Duration kProbePatience = std::chrono::milliseconds(200);

}  // namespace

bool SimNetwork::Stops(Direction direction, Way way) {
  if (direction == Direction::kBoth) return true;
  return (direction == Direction::kToRendezvous) == (way == Way::kToRendezvous);
}

HostIndex SimNetwork::AddHost() {
  hosts_.emplace_back();
  return static_cast<HostIndex>(hosts_.size()) - 1;
}

// ---- the agent's end -----------------------------------------------------------------------

StreamIndex SimNetwork::Connect(AgentIndex agent, HostIndex host) {
  auto index = static_cast<StreamIndex>(streams_.size());
  Stream& stream = streams_.emplace_back();
  stream.agent = agent;
  stream.host = host;
  hosts_[host].streams.push_back(index);
  queue_.After(2 * Delay(), Act::kConnectArrives, index);
  queue_.After(options_.connect_timeout, Act::kConnectTimesOut, index);
  return index;
}

void SimNetwork::Probe(AgentIndex agent) { queue_.After(Delay(), Act::kProbeArrives, agent); }

void SimNetwork::ProbeArrives(AgentIndex agent, HostIndex host) {
  // A stalled process' kernel accepts for it.
  bool is_refused = !server_is_up_ && !IsBlocked(host);
  queue_.After(IsBlocked(host) ? kProbePatience : Delay(), Act::kProbeAnswered, agent,
               is_refused ? 1 : 0);
}

void SimNetwork::Send(StreamIndex index, AgentMessage message) {
  Stream& stream = streams_[index];
  if (stream.agent_end != End::kOpen) return;
  stream.up.emplace_back(std::move(message));
  ScheduleDelivery(index, Way::kToRendezvous);
}

void SimNetwork::CloseAgentEnd(StreamIndex index) {
  Stream& stream = streams_[index];
  if (stream.agent_end == End::kClosed) return;
  bool was_open = stream.agent_end == End::kOpen;
  stream.agent_end = End::kClosed;
  if (!was_open && stream.server_end != End::kOpen) return;
  stream.up.emplace_back(std::nullopt);
  ScheduleDelivery(index, Way::kToRendezvous);
}

// ---- the rendezvous' end -------------------------------------------------------------------

void SimNetwork::SetServerUp() { server_is_up_ = true; }

void SimNetwork::SetServerDown() {
  server_is_up_ = false;
  server_is_stalled_ = false;
  for (size_t i = 0; i < streams_.size(); ++i) {
    auto index = static_cast<StreamIndex>(i);
    Stream& stream = streams_[i];
    if (stream.is_arrival_held && !IsBlocked(stream.host)) {
      stream.is_arrival_held = false;
      queue_.After(Delay(), Act::kConnectArrives, index);
    }
    if (stream.server_end != End::kOpen) continue;
    stream.server_end = End::kClosed;
    stream.down.emplace_back(std::nullopt);
    ScheduleDelivery(index, Way::kToAgent);
  }
}

void SimNetwork::SetServerStalled(bool is_stalled) {
  server_is_stalled_ = is_stalled;
  if (is_stalled) return;
  for (size_t i = 0; i < streams_.size(); ++i) {
    Stream& stream = streams_[i];
    if (!stream.is_arrival_held || IsBlocked(stream.host)) continue;
    stream.is_arrival_held = false;
    queue_.After(Delay(), Act::kConnectArrives, static_cast<StreamIndex>(i));
  }
}

SimNetwork::Stream* SimNetwork::OfSession(SessionId session) {
  if (session.value >= by_session_.size() || session.value == 0) return nullptr;
  Stream& stream = streams_[by_session_[session.value]];
  return stream.server_end == End::kOpen ? &stream : nullptr;
}

void SimNetwork::SendToAgent(SessionId session, RendezvousMessage message) {
  Stream* stream = OfSession(session);
  if (stream == nullptr) return;
  stream->down.emplace_back(std::move(message));
  ScheduleDelivery(by_session_[session.value], Way::kToAgent);
}

void SimNetwork::CloseServerEnd(SessionId session) {
  Stream* stream = OfSession(session);
  if (stream == nullptr) return;
  stream->server_end = End::kClosed;
  stream->down.emplace_back(std::nullopt);
  ScheduleDelivery(by_session_[session.value], Way::kToAgent);
}

// ---- faults --------------------------------------------------------------------------------

bool SimNetwork::IsBlocked(HostIndex host) const {
  return hosts_[host].blocked[0] > 0 || hosts_[host].blocked[1] > 0;
}

void SimNetwork::Block(HostIndex host, Direction direction) {
  for (Way way : {Way::kToRendezvous, Way::kToAgent}) {
    if (Stops(direction, way)) ++hosts_[host].blocked[static_cast<int>(way)];
  }
  // Now and then one end's kernel gives up while the other still waits.
  for (StreamIndex index : hosts_[host].streams) {
    if (random_.Chance(15)) {
      queue_.After(random_.Between(Duration(0), options_.lease * 2), Act::kSideBreaks, index,
                   random_.Below(2));
    }
  }
}

void SimNetwork::Unblock(HostIndex host, Direction direction) {
  for (Way way : {Way::kToRendezvous, Way::kToAgent}) {
    if (Stops(direction, way)) --hosts_[host].blocked[static_cast<int>(way)];
  }
  bool breaks = random_.Chance(30);
  for (StreamIndex index : hosts_[host].streams) {
    Stream& stream = streams_[index];
    if (stream.is_arrival_held && !server_is_stalled_ && !IsBlocked(host)) {
      stream.is_arrival_held = false;
      queue_.After(Delay(), Act::kConnectArrives, index);
    }
    if (breaks && (stream.held[0] > 0 || stream.held[1] > 0)) {
      queue_.After(Delay(), Act::kSideBreaks, index, kAgentSide);
      queue_.After(Delay(), Act::kSideBreaks, index, kServerSide);
    }
    for (Way way : {Way::kToRendezvous, Way::kToAgent}) {
      int& held = stream.held[static_cast<int>(way)];
      if (hosts_[host].blocked[static_cast<int>(way)] > 0) continue;
      for (; held > 0; --held) ScheduleDelivery(index, way);
    }
  }
}

bool SimNetwork::Reset(HostIndex host) {
  bool any = false;
  for (StreamIndex index : hosts_[host].streams) {
    Stream& stream = streams_[index];
    if (stream.agent_end != End::kOpen || stream.server_end != End::kOpen) continue;
    any = true;
    queue_.After(Delay(), Act::kSideBreaks, index, kAgentSide);
    queue_.After(Delay(), Act::kSideBreaks, index, kServerSide);
  }
  return any;
}

void SimNetwork::PowerOff(HostIndex host) {
  for (StreamIndex index : hosts_[host].streams) {
    Stream& stream = streams_[index];
    stream.is_powered_off = true;
    stream.agent_end = End::kClosed;
  }
}

void SimNetwork::BreakAgentEnd(StreamIndex index, const char* why) {
  Stream& stream = streams_[index];
  if (stream.agent_end == End::kClosed) return;
  // What its kernel had not got rid of is lost; the other end learns of it when it can.
  stream.agent_end = End::kClosed;
  stream.up.clear();
  stream.up.emplace_back(std::nullopt);
  ScheduleDelivery(index, Way::kToRendezvous);
  observer_.OnAgentDisconnected(stream.agent, index, why);
}

void SimNetwork::BreakServerEnd(StreamIndex index) {
  Stream& stream = streams_[index];
  if (stream.server_end != End::kOpen) return;
  stream.server_end = End::kClosed;
  stream.down.clear();
  stream.down.emplace_back(std::nullopt);
  ScheduleDelivery(index, Way::kToAgent);
  observer_.OnServerStreamEnded(stream.session);
}

// ---- what arrives --------------------------------------------------------------------------

void SimNetwork::Handle(const Due& due) {
  Stream& stream = streams_[due.who];
  switch (due.act) {
    case Act::kDeliver:
      Deliver(due.who, static_cast<Way>(due.what));
      return;
    case Act::kSideBreaks:
      if (stream.is_powered_off && due.what == kAgentSide) return;
      if (due.what == kAgentSide && stream.agent_end == End::kOpen) {
        BreakAgentEnd(due.who, "connection reset");
      } else if (due.what == kServerSide) {
        BreakServerEnd(due.who);
      }
      return;
    case Act::kConnectArrives:
      Arrive(due.who);
      return;
    case Act::kConnectRefused:
      if (stream.agent_end != End::kConnecting) return;
      stream.agent_end = End::kClosed;
      observer_.OnAgentDisconnected(stream.agent, due.who, "connection refused");
      return;
    default:
      if (stream.agent_end != End::kConnecting) return;
      stream.is_arrival_held = false;
      BreakAgentEnd(due.who, "connect timed out");
  }
}

void SimNetwork::Arrive(StreamIndex index) {
  Stream& stream = streams_[index];
  if (stream.agent_end != End::kConnecting || stream.is_powered_off) return;
  if (IsBlocked(stream.host) || (server_is_up_ && server_is_stalled_)) {
    stream.is_arrival_held = true;
    return;
  }
  if (!server_is_up_) {
    queue_.After(Delay(), Act::kConnectRefused, index);
    return;
  }
  stream.session = SessionId(by_session_.size());
  by_session_.push_back(index);
  stream.server_end = End::kOpen;
  stream.agent_end = End::kOpen;
  observer_.OnServerStreamOpened(stream.session, stream.agent);
  observer_.OnAgentConnected(stream.agent, index);
}

void SimNetwork::ScheduleDelivery(StreamIndex index, Way way) {
  Stream& stream = streams_[index];
  Instant& last = stream.last_arrival[static_cast<int>(way)];
  last = std::max(last, queue_.now() + Delay());
  queue_.At(last, Act::kDeliver, index, static_cast<int>(way));
}

void SimNetwork::Deliver(StreamIndex index, Way way) {
  Stream& stream = streams_[index];
  if (hosts_[stream.host].blocked[static_cast<int>(way)] > 0) {
    ++stream.held[static_cast<int>(way)];
    return;
  }
  if (stream.is_powered_off) return;
  way == Way::kToRendezvous ? DeliverUp(stream) : DeliverDown(stream, index);
}

void SimNetwork::DeliverUp(Stream& stream) {
  // A break may have thrown away what this delivery was for.
  if (stream.up.empty()) return;
  std::optional<AgentMessage> item = std::move(stream.up.front());
  stream.up.pop_front();
  if (stream.server_end != End::kOpen) return;
  if (item) {
    observer_.OnServerMessage(stream.session, std::move(*item));
    return;
  }
  stream.server_end = End::kClosed;
  observer_.OnServerStreamEnded(stream.session);
}

void SimNetwork::DeliverDown(Stream& stream, StreamIndex index) {
  if (stream.down.empty()) return;
  std::optional<RendezvousMessage> item = std::move(stream.down.front());
  stream.down.pop_front();
  if (stream.agent_end != End::kOpen) return;
  if (item) {
    observer_.OnAgentMessage(stream.agent, index, std::move(*item));
    return;
  }
  stream.agent_end = End::kClosed;
  observer_.OnAgentDisconnected(stream.agent, index, "stream ended");
}

}  // namespace muster::simulation
