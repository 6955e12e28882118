#include "wan/net/copy/peer_log.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "wan/net/printable.hpp"

namespace maki::wan::copy {
namespace {

constexpr std::size_t kLongest = 1000;  // bytes of a line

}  // namespace

// A log that cannot be written ends no copy.
void PeerLog::record(const std::string& line) try {
  if (sink_) sink_(printable(line, kLongest));
} catch (const std::exception&) {
}

void PeerLog::mention(const std::string& identity, const std::string& line) {
  {
    const std::lock_guard lock(mutex_);
    Peer& peer = peers_[identity];
    if (++peer.said > kAMinute) {
      ++peer.left_out;
      return;
    }
  }
  record(line);
}

void PeerLog::sum_up(const std::string& identity, Peer& peer) {
  if (peer.left_out > 0)
    record(fmt::format("{} more lines about {} were left out", peer.left_out,
                       identity.empty() ? "clients without a key" : identity));
  peer.minute = Clock::now();
  peer.said = 0;
  peer.left_out = 0;
}

void PeerLog::catch_up() {
  const std::lock_guard lock(mutex_);
  for (auto& [identity, peer] : peers_)
    if (Clock::now() - peer.minute >= std::chrono::minutes(1)) sum_up(identity, peer);
}

double PeerLog::turn(const std::string& identity) {
  constexpr auto kEach = std::chrono::duration_cast<Clock::duration>(std::chrono::seconds(1)) / kASecond;
  const std::lock_guard lock(mutex_);
  const auto now = Clock::now();
  auto& due = peers_[identity].due;
  due = std::max(due, now - kBurst * kEach) + kEach;
  return std::chrono::duration<double>(due - now).count();
}

}  // namespace maki::wan::copy
