// The relay's side of an admission.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "wan/net/relay/admission_wire.hpp"

namespace maki::wan {

// The keys that a relay admits, by id.
class KeyRing {
 public:
  // Files, and directories whose files (*.key) all count. Throws SecurityError: none, unreadable, unsafe, twice the same id with
  // another secret.
  static KeyRing read(const std::vector<std::string>& files);
  void add(const Key& key);
  const Key* find(const std::string& id) const;
  std::size_t size() const { return keys_.size(); }

 private:
  std::map<std::string, Key> keys_;
};

// One socket's admission. receive() until kDone; then admitted() and request() tell; decide(), then send_verdict() until kDone.
class AdmissionCheck {
 public:
  explicit AdmissionCheck(const KeyRing& keys);
  // kDone: the request is there. Throws ProtocolError where it is none.
  IoStatus receive(int descriptor);
  bool admitted() const { return key_ != nullptr; }
  const admission::Request& request() const { return request_; }
  void decide(const admission::Verdict& verdict);
  IoStatus send_verdict(int descriptor) { return verdict_.send(descriptor); }

 private:
  const KeyRing& keys_;
  admission::Nonce nonce_{};
  admission::Transfer challenge_, incoming_, verdict_;
  bool challenged_ = false;
  admission::RequestBytes request_bytes_{};
  admission::Request request_;
  const Key* key_ = nullptr;
};

}  // namespace maki::wan
