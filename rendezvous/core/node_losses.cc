#include "rendezvous/core/node_losses.h"

namespace muster::rendezvous {

bool NodeLosses::Add(const std::string& node_name, const Loss& loss) {
  if (loss.limit <= 0) return false;
  if (nodes_.size() >= kMaxNames) nodes_.clear();
  Node& node = nodes_[node_name];
  const bool has_paid = node.set_aside_until && *node.set_aside_until <= loss.at;
  if (has_paid || loss.uptime >= options_.good_uptime) node = Node();
  ++node.losses;
  if (node.losses < loss.limit) return false;
  node.set_aside_until = loss.at + options_.set_aside_for;
  return true;
}

std::optional<Instant> NodeLosses::SetAsideUntil(const std::string& node_name, Instant now) const {
  auto known = nodes_.find(node_name);
  if (known == nodes_.end() || !known->second.set_aside_until) return std::nullopt;
  return *known->second.set_aside_until <= now ? std::nullopt : known->second.set_aside_until;
}

int NodeLosses::CountOf(const std::string& node_name) const {
  auto known = nodes_.find(node_name);
  return known == nodes_.end() ? 0 : known->second.losses;
}

}  // namespace muster::rendezvous
