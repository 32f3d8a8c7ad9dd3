// Whether an agent that names the address which it connected to has named one of this host. An
// address that stands for a service rather than a host refuses connections whenever nobody is
// behind it, so only a host's own tells an agent that the rendezvous' process is gone. A function;
// thread-safe; doesn't block.
#ifndef MUSTER_RENDEZVOUS_SERVER_OWN_ADDRESS_H_
#define MUSTER_RENDEZVOUS_SERVER_OWN_ADDRESS_H_

#include <string>

namespace muster::rendezvous {

// `address` is in digits; anything else is nobody's.
bool IsOwnAddress(const std::string& address);

}  // namespace muster::rendezvous

#endif  // MUSTER_RENDEZVOUS_SERVER_OWN_ADDRESS_H_
