#include "rendezvous/core/release_table.h"

#include <utility>

namespace muster::rendezvous {

void ReleaseTable::NoteHost(const Attach& attach) {
  if (attach.hosts_rendezvous) host_ = attach;
}

const Verdict& ReleaseTable::Keep(const Attach& attach, Verdict verdict) {
  NoteHost(attach);
  const auto [entry, is_new] = verdicts_.insert_or_assign(attach.incarnation, std::move(verdict));
  if (!is_new) return entry->second;
  order_.push_back(attach.incarnation);
  if (order_.size() > kMostKept) {
    verdicts_.erase(order_.front());
    order_.pop_front();
  }
  return entry->second;
}

}  // namespace muster::rendezvous
