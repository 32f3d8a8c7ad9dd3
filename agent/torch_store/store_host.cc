#include "agent/torch_store/store_host.h"

#include <cerrno>
#include <utility>

namespace muster::agent::torch_store {

StoreHost::StoreHost(std::function<void(const std::string&)> say) : say_(std::move(say)) {}

uint16_t StoreHost::Offer(const std::string& address) {
  if (offered_.is_open() && offered_for_ == address) return offered_.port();
  offered_ = StoreListener::Open(address, 0, &offer_error_);
  offered_for_ = address;
  return offered_.port();
}

int StoreHost::Open(const std::string& address, uint16_t port) {
  StoreListener listener = std::move(offered_);
  if (!listener.is_open() || listener.port() != port || offered_for_ != address) {
    if (port == 0) return offer_error_ != 0 ? offer_error_ : EADDRNOTAVAIL;
    // An offer of before, as a rendezvous may remember it: its socket is gone, or serves still.
    Close();
    listener.Close();
    int error = 0;
    listener = StoreListener::Open(address, port, &error);
    if (!listener.is_open()) return error;
  }
  if (!server_) server_.emplace(StoreServerOptions{.say = say_});
  server_->BeginRound(std::move(listener));
  return 0;
}

void StoreHost::Close() {
  if (server_) server_->BeginRound({});
}

}  // namespace muster::agent::torch_store
