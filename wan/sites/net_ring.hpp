// A ring over paths of wan/net: one path between each two neighbours.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "wan/net/path.hpp"
#include "wan/sites/hello.hpp"
#include "wan/sites/ring.hpp"
#include "wan/sites/ring_plan.hpp"

namespace maki::sites {

// Messages travel in pieces, which sites between pass on as they arrive. Those of different phases do not wait for one
// another: on each link control overtakes sums, these particles, these trees, these meshes, and these output.
// Counters: what this site puts on its links, so a published message counts once for each of its links.
class NetRing : public Ring {
 public:
  // Connects to the neighbours in whatever order the sites start, with a line every ten seconds while one is missing,
  // and lets all sites' hellos go around. Throws Error where a site must not take part (version, agreement, order of the
  // ring, key) with the difference named, at all sites; where `wait_limit` is over; where a port cannot be had.
  explicit NetRing(const RingPlan& plan);
  // Without close() before it, the others take this for a loss.
  ~NetRing() override;

  int count() const override;
  int me() const override;
  void send(int to, Phase phase, std::uint64_t number, Message message) override;
  void publish(Phase phase, std::uint64_t number, Message message) override;
  Message receive(int from, Phase phase, std::uint64_t number) override;
  bool arrived(int from, Phase phase) override;
  std::array<Traffic, kPhases> take_traffic() override;
  // Also waits until all other sites close.
  void close() override;

  // Of all sites in the order of the ring, as they said at the start.
  const std::vector<Hello>& hellos() const;
  // The path to a neighbour (tests, reports). Two sites have one: it is both.
  wan::Path& path_to(int neighbour);

 private:
  class Core;
  std::unique_ptr<Core> core_;
};

}  // namespace maki::sites
