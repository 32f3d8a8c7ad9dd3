#include "rendezvous/core/failed_starts.h"

namespace muster::rendezvous {

void FailedStarts::Add(Instant now, const std::string& node_name, const std::string& reason) {
  std::erase_if(failures_, [&](const Failure& f) { return f.node_name == node_name; });
  failures_.push_back({now, node_name, reason});
  if (failures_.size() > kMostKept) failures_.pop_front();
}

void FailedStarts::Came(const std::string& node_name, Instant at) {
  std::erase_if(failures_,
                [&](const Failure& f) { return f.node_name == node_name && f.at <= at; });
}

std::string FailedStarts::Text() const {
  std::string text;
  for (const Failure& failure : failures_) {
    text += (text.empty() ? "node " : "; node ") + failure.node_name +
            " could not start: " + failure.reason;
  }
  return text;
}

}  // namespace muster::rendezvous
