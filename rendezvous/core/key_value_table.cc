#include "rendezvous/core/key_value_table.h"

namespace muster::rendezvous {

KeyValueTable::SetResult KeyValueTable::Set(const std::string& key, std::string value) {
  SetResult result;
  if (key.size() > limits_.max_key_bytes) {
    result.problem = "a key may have at most " + std::to_string(limits_.max_key_bytes) +
                     " bytes; this one has " + std::to_string(key.size());
    return result;
  }
  if (value.size() > limits_.max_value_bytes) {
    result.problem = "a value may have at most " + std::to_string(limits_.max_value_bytes) +
                     " bytes; the one for '" + key + "' has " + std::to_string(value.size());
    return result;
  }
  auto known = values_.find(key);
  const size_t before = known == values_.end() ? 0 : key.size() + known->second.size();
  const size_t after = key.size() + value.size();
  if (total_bytes_ - before + after > limits_.max_total_bytes) {
    result.problem = "the keys of one round may hold at most " +
                     std::to_string(limits_.max_total_bytes) + " bytes; setting '" + key +
                     "' would pass that";
    return result;
  }
  total_bytes_ = total_bytes_ - before + after;
  values_[key] = std::move(value);
  auto waiting = key_waits_.find(key);
  if (waiting == key_waits_.end()) return result;
  result.ended.assign(waiting->second.begin(), waiting->second.end());
  for (WaitId wait : result.ended) Forget(wait);
  return result;
}

const std::string* KeyValueTable::Get(const std::string& key) const {
  auto known = values_.find(key);
  return known == values_.end() ? nullptr : &known->second;
}

KeyValueTable::WaitResult KeyValueTable::Wait(const std::string& key, Instant deadline) {
  WaitResult result;
  if (key.size() > limits_.max_key_bytes) {
    result.problem = "a key may have at most " + std::to_string(limits_.max_key_bytes) +
                     " bytes; this one has " + std::to_string(key.size());
  } else if (waits_.size() >= limits_.max_waits) {
    result.problem = "one round may have at most " + std::to_string(limits_.max_waits) + " waits";
  } else {
    result.wait = BeginWait(key, false, deadline);
    key_waits_[key].insert(result.wait);
  }
  return result;
}

KeyValueTable::BarrierResult KeyValueTable::Arrive(const BarrierArrival& arrival) {
  BarrierResult result;
  auto known = barriers_.find(arrival.name);
  if (arrival.count < 1) {
    result.problem = "barrier '" + arrival.name + "' needs a count of at least 1, not " +
                     std::to_string(arrival.count);
  } else if (arrival.name.size() > limits_.max_key_bytes ||
             arrival.participant.size() > limits_.max_key_bytes) {
    result.problem = "the name of a barrier or participant may have at most " +
                     std::to_string(limits_.max_key_bytes) + " bytes";
  } else if (known != barriers_.end() && known->second.count != arrival.count) {
    result.problem = "barrier '" + arrival.name + "' is for " +
                     std::to_string(known->second.count) + " participants, but " +
                     arrival.participant + " came for " + std::to_string(arrival.count);
  } else if (known == barriers_.end() && barriers_.size() >= limits_.max_barriers) {
    result.problem =
        "one round may have at most " + std::to_string(limits_.max_barriers) + " barriers";
  } else if (waits_.size() >= limits_.max_waits) {
    result.problem = "one round may have at most " + std::to_string(limits_.max_waits) + " waits";
  }
  if (!result.problem.empty()) return result;

  Barrier& barrier = barriers_[arrival.name];
  barrier.count = arrival.count;
  if (barrier.is_open) {
    result.wait = WaitId(++last_wait_);
    result.ended = {result.wait};
    return result;
  }
  barrier.arrived.insert(arrival.participant);
  result.wait = BeginWait(arrival.name, true, arrival.deadline);
  barrier.waits.insert(result.wait);
  if (barrier.arrived.size() < static_cast<size_t>(barrier.count)) return result;
  barrier.is_open = true;
  barrier.arrived.clear();
  result.ended.assign(barrier.waits.begin(), barrier.waits.end());
  for (WaitId wait : result.ended) Forget(wait);
  return result;
}

void KeyValueTable::Cancel(WaitId wait) { Forget(wait); }

std::vector<WaitId> KeyValueTable::TakeExpired(Instant now) {
  std::vector<WaitId> expired;
  while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
    expired.push_back(deadlines_.begin()->second);
    Forget(expired.back());
  }
  return expired;
}

std::vector<WaitId> KeyValueTable::TakeAll() {
  std::vector<WaitId> all;
  all.reserve(waits_.size());
  for (const auto& [wait, pending] : waits_) all.push_back(wait);
  for (WaitId wait : all) Forget(wait);
  return all;
}

Instant KeyValueTable::NextDeadline() const {
  return deadlines_.empty() ? Instant::Never() : deadlines_.begin()->first;
}

WaitId KeyValueTable::BeginWait(const std::string& name, bool is_barrier, Instant deadline) {
  const WaitId wait(++last_wait_);
  waits_[wait] = {name, is_barrier, deadline};
  if (!deadline.IsNever()) deadlines_.insert({deadline, wait});
  return wait;
}

void KeyValueTable::Forget(WaitId wait) {
  auto pending = waits_.find(wait);
  if (pending == waits_.end()) return;
  deadlines_.erase({pending->second.deadline, wait});
  if (pending->second.is_barrier) {
    barriers_[pending->second.name].waits.erase(wait);
  } else if (auto waiting = key_waits_.find(pending->second.name); waiting != key_waits_.end()) {
    waiting->second.erase(wait);
    if (waiting->second.empty()) key_waits_.erase(waiting);
  }
  waits_.erase(pending);
}

}  // namespace muster::rendezvous
