#include "rendezvous/core/restart_ledger.h"

#include <algorithm>

#include "base/planted_fault.h"

namespace muster::rendezvous {

bool RestartLedger::Charge(int max_restarts) {
  if (charged_ >= max_restarts) return false;
  charged_ += MUSTER_PLANTED(kBudgetChargedTwice, 2, 1);
  return true;
}

void RestartLedger::LearnCharged(int charged) { charged_ = std::max(charged_, charged); }

bool RestartLedger::NodeLost(const std::string& node_name, Duration uptime) {
  if (options_.max_node_failures <= 0) return false;
  if (losses_.size() >= kMaxNames) losses_.clear();
  int& losses = losses_[node_name];
  losses = uptime >= options_.good_uptime ? 1 : losses + 1;
  return losses > options_.max_node_failures;
}

bool RestartLedger::IsSetAside(const std::string& node_name) const {
  if (options_.max_node_failures <= 0) return false;
  auto known = losses_.find(node_name);
  return known != losses_.end() && known->second > options_.max_node_failures;
}

}  // namespace muster::rendezvous
