// What all ranks of a site see of the other sites. All calls are collective over the ranks of this site, which are
// served by its first rank, the gateway.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "host/comm/communicator.hpp"
#include "wan/sites/ring.hpp"

namespace maki::sites {

class Sites {
 public:
  // Collective. `ring` on rank 0, null on all others; `names` of the sites in the order of the ring, on all.
  Sites(std::unique_ptr<Ring> ring, std::vector<std::string> names, const Communicator& ranks);
  // A ring of one: each rank has its own messages back. (Parts of ranks go to other sites, of which it has none.)
  explicit Sites(const Communicator& ranks, std::string name = "");
  ~Sites();

  int count() const { return static_cast<int>(names_.size()); }
  int me() const { return me_; }
  int left() const { return (me_ + count() - 1) % count(); }
  int right() const { return (me_ + 1) % count(); }  // the same as left() where there are two
  const std::string& name(int site) const { return names_[static_cast<std::size_t>(site)]; }
  bool alone() const { return count() == 1; }
  const Communicator& ranks() const { return ranks_; }

  // All calls throw on every rank what went wrong at the gateway: SiteLost, or Error. (A site of several ranks hears of
  // what went wrong in publish() with its next call.)

  // Small messages, alike on all ranks: `mine` of rank 0 goes to all other sites. Returns at once.
  void publish(Phase phase, std::uint64_t number, std::span<const std::byte> mine);
  // What each site has published under this number, in the order of the ring, on all ranks; this site's own is in it
  // too. Waits.
  std::vector<Message> collect(Phase phase, std::uint64_t number);
  // Both in one: a round trip is waited for.
  std::vector<Message> gather(Phase phase, std::uint64_t number, std::span<const std::byte> mine) {
    publish(phase, number, mine);
    return collect(phase, number);
  }

  // What all sites have for `mine`, added up in the order of the ring by join(T& sum, const T& one): a round trip.
  template <class T, class Join>
  T joined(Phase phase, std::uint64_t number, const T& mine, Join&& join);
  template <class T>
  T sum(Phase phase, std::uint64_t number, T mine) {
    return joined(phase, number, mine, [](T& sum, T one) { sum += one; });
  }

  // Every rank's part goes to another site, or to all others. Returns when `mine` may be used again; the parts travel
  // on. The gateway never holds more than a bounded number of pieces beyond what the ring has taken over.
  void send_parts(int to, Phase phase, std::uint64_t number, std::span<const std::byte> mine);
  void publish_parts(Phase phase, std::uint64_t number, std::span<const std::byte> mine);
  // The parts of that site's ranks in their order, all of them on every rank. Waits.
  std::vector<Message> receive_parts(int from, Phase phase, std::uint64_t number);
  // The same where each part is to be on one rank only: part p goes to rank p mod size of this site. Returns this
  // rank's alone, in their order.
  std::vector<Message> receive_shares(int from, Phase phase, std::uint64_t number);

  // 1, 2, ... in each phase: numbers for messages of different kinds that all sites send in the same order (of
  // Phase::kOutput: energies, the numbers of particles of a snapshot, meshes of spectra, the report at the end).
  std::uint64_t next_number(Phase phase) { return ++numbers_[static_cast<std::size_t>(phase)]; }

  // Of the gateway, alike on all ranks.
  std::array<Traffic, kPhases> take_traffic();
  void close();
  Ring* ring() { return ring_.get(); }  // null but on the gateway
  // In how large pieces parts leave this site; alike on all its ranks. (Tests make it small.)
  static constexpr std::size_t kPiece = std::size_t{64} << 20;
  void set_piece(std::size_t bytes);
  static constexpr std::size_t kMostRanks = std::size_t{1} << 16;  // of a site

 private:
  std::unique_ptr<Ring> ring_;
  std::vector<std::string> names_;
  Communicator ranks_;
  int me_ = 0;
  std::array<std::uint64_t, kPhases> numbers_{};  // the last ones of next_number()
  struct Own;                                     // what this site has published and not collected yet
  std::unique_ptr<Own> own_;
};

// Values to a message and back. T has no pointers. Throws Error where the size is not that of one T.
template <class T>
std::span<const std::byte> as_bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}
template <class T>
T value_of(const Message& message);

}  // namespace maki::sites

#include <cstring>

namespace maki::sites {
template <class T>
T value_of(const Message& message) {
  if (message.size() != sizeof(T))
    throw Error("a message of another size came from a site", "", "run the same version at all sites");
  T value;
  std::memcpy(&value, message.data(), sizeof value);
  return value;
}
template <class T, class Join>
T Sites::joined(Phase phase, std::uint64_t number, const T& mine, Join&& join) {
  T all{};
  for (const Message& message : gather(phase, number, as_bytes_of(mine))) join(all, value_of<T>(message));
  return all;
}
}  // namespace maki::sites
