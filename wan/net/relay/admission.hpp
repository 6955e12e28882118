// How a peer is admitted to a relay, before anything of its own goes through. The relay speaks first.
//
//   relay -> peer   magic, version, a nonce of 32 random bytes
//   peer -> relay   what is wanted (connect TARGET, listen NAME, answer a call by TOKEN), key id, a nonce of its own,
//                   HMAC-SHA256 of the relay's nonce and all this under the relay's key
//   relay -> peer   a verdict, with a reason in words, and an HMAC of all before it: the relay holds the key too
//
// After the verdict the socket carries the peers' own bytes, untouched. All messages have fixed sizes.
#pragma once

#include <memory>
#include <string>

#include "wan/net/secure/channel.hpp"
#include "wan/net/secure/key.hpp"

namespace maki::wan {

// The peer's side on a connected socket: call progress() when the socket is ready, until kDone.
class RelayAdmission {
 public:
  static std::unique_ptr<RelayAdmission> connect_to(const Key& key, const std::string& target);
  // For hidden listeners (relay/hidden_listener.hpp).
  static std::unique_ptr<RelayAdmission> listen_as(const Key& key, const std::string& name);
  static std::unique_ptr<RelayAdmission> answer(const Key& key, const std::string& token);
  virtual ~RelayAdmission() = default;
  // Reads not one byte beyond the verdict. kClosed where the relay went away. Throws SecurityError where the key was
  // refused or the relay does not hold it, ProtocolError where that is no relay, Error for any other refusal (unknown target, not there now: `try_again()` tells).
  virtual IoStatus progress(int descriptor) = 0;
  virtual bool try_again() const = 0;
};

}  // namespace maki::wan
