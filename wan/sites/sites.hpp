// Communication of all ranks of a site with the other sites. All calls are collective over the ranks of this site; its
// first rank, the gateway, sends and receives the messages.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "host/comm/communicator.hpp"
#include "wan/sites/ring.hpp"

namespace maki::sites {

// Conversion of a value to a message and back. T has no pointers. value_of() throws Error where the size is not that of
// T; `site`: the sender, for the error.
template <class T>
std::span<const std::byte> as_bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}
template <class T>
T value_of(const Message& message, const std::string& site = "") {
  if (message.size() != sizeof(T))
    throw Error("a message of another size came from " + (site.empty() ? "a site" : "site " + site), "",
                "run the same version at all sites");
  T value;
  std::memcpy(&value, message.data(), sizeof value);
  return value;
}

class Sites {
 public:
  // Collective. `ring` on rank 0, null on all others; `names` of the sites in the order of the ring, on all.
  Sites(std::unique_ptr<Ring> ring, std::vector<std::string> names, const Communicator& ranks);
  // A ring of one site: collect() returns on each rank the message that this rank published, and nothing is sent. There
  // are no parts to send or receive.
  explicit Sites(const Communicator& ranks, std::string name = "");
  ~Sites();

  int count() const { return static_cast<int>(names_.size()); }
  int me() const { return me_; }
  int left() const { return (me_ + count() - 1) % count(); }
  int right() const { return (me_ + 1) % count(); }  // the same as left() where there are two
  // The neighbours, or all other sites, in the order of the ring.
  std::vector<int> partners(bool all) const;
  const std::string& name(int site) const { return names_[static_cast<std::size_t>(site)]; }
  bool alone() const { return count() == 1; }
  const Communicator& ranks() const { return ranks_; }

  // All calls below throw the errors of the gateway, SiteLost or Error, on every rank. (At a site of several ranks,
  // errors of publish() are thrown by the next call.)

  // Sends `mine` of rank 0 to all other sites; a small message, alike on all ranks. Returns at once.
  void publish(Phase phase, std::uint64_t number, std::span<const std::byte> mine);
  // The messages that all sites, this one too, have published under `number`, in the order of the ring, on all ranks.
  // Waits for them.
  std::vector<Message> collect(Phase phase, std::uint64_t number);
  // publish() and collect(): waits for a round trip.
  std::vector<Message> gather(Phase phase, std::uint64_t number, std::span<const std::byte> mine) {
    publish(phase, number, mine);
    return collect(phase, number);
  }
  // Waits until all sites have come here.
  void meet() { gather(Phase::kControl, next_number(Phase::kControl), {}); }

  // Joins the values `mine` of all sites in the order of the ring by join(T& sum, const T& one); waits for a round
  // trip.
  template <class T, class Join>
  T joined(Phase phase, std::uint64_t number, const T& mine, Join&& join) {
    T all{};
    int site = 0;
    for (const Message& message : gather(phase, number, as_bytes_of(mine)))
      join(all, value_of<T>(message, name(site++)));
    return all;
  }
  template <class T>
  T sum(Phase phase, std::uint64_t number, T mine) {
    return joined(phase, number, mine, [](T& sum, T one) { sum += one; });
  }

  // Send every rank's part to the site `to`, or to all other sites. Return when `mine` may be used again. The gateway
  // holds a bounded number of pieces beyond those given to the ring.
  void send_parts(int to, Phase phase, std::uint64_t number, std::span<const std::byte> mine);
  void publish_parts(Phase phase, std::uint64_t number, std::span<const std::byte> mine);
  // The parts of the ranks of site `from` in their order, all of them on every rank. Waits for them. Throws Error, that
  // names the site, before more comes than a rank has room for: its part of Ring::memory_limit().
  std::vector<Message> receive_parts(int from, Phase phase, std::uint64_t number);
  // As receive_parts(), but part p goes only to rank p mod size of this site. Returns the parts of this rank, in order.
  std::vector<Message> receive_shares(int from, Phase phase, std::uint64_t number);

  // 1, 2, ... in each phase: numbers for messages of different kinds that all sites send in the same order (of
  // Phase::kOutput: energies, the numbers of particles of a snapshot, meshes of spectra, the report at the end).
  std::uint64_t next_number(Phase phase) { return ++numbers_[static_cast<std::size_t>(phase)]; }

  // Traffic of the gateway, equal on all ranks.
  std::array<Traffic, kPhases> take_traffic();
  void close();
  Ring* ring() { return ring_.get(); }  // null on all ranks but the gateway
  // Size in bytes of the pieces in which parts leave this site; alike on all its ranks. (Tests make it small.)
  static constexpr std::size_t kPiece = std::size_t{64} << 20;
  void set_piece(std::size_t bytes);
  static constexpr std::size_t kMostRanks = std::size_t{1} << 16;  // ranks of a site, at most

 private:
  std::unique_ptr<Ring> ring_;
  std::vector<std::string> names_;
  Communicator ranks_;
  int me_ = 0;
  std::uint64_t room_ = 0;                        // bytes that one call may receive on each rank
  std::array<std::uint64_t, kPhases> numbers_{};  // last results of next_number()
  struct Gateway;                                 // messages that this site has published and not collected yet
  std::unique_ptr<Gateway> gateway_;
};

}  // namespace maki::sites

namespace maki {

// The place of a run: the ranks of this site, and all sites.
struct RunPlace {
  // A run at one site.
  RunPlace(const Communicator& of = Communicator::self()) : ranks(of), sites(std::make_shared<sites::Sites>(of)) {}
  // A run over the sites `in`, which has to outlive this.
  RunPlace(const Communicator& of, sites::Sites& in) : ranks(of), sites(&in, [](sites::Sites*) {}) {}
  Communicator ranks;
  std::shared_ptr<sites::Sites> sites;
};

}  // namespace maki
