// The order in which people count: "rack2" comes before "rack10". Runs of digits compare as
// numbers, everything else byte by byte. Pure; thread-safe.
#ifndef MUSTER_RENDEZVOUS_CORE_NATURAL_ORDER_H_
#define MUSTER_RENDEZVOUS_CORE_NATURAL_ORDER_H_

#include <compare>
#include <string_view>

namespace muster::rendezvous {

// A total order: texts that differ in leading zeros alone come one after the other, the shorter
// first.
std::strong_ordering NaturalOrder(std::string_view a, std::string_view b);

}  // namespace muster::rendezvous

#endif  // MUSTER_RENDEZVOUS_CORE_NATURAL_ORDER_H_
