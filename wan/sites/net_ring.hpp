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

// Messages travel in pieces, which intermediate sites pass on as they arrive. Phases do not wait for one another; their
// priorities on each link are, from high to low: control, sums, particles, trees, mesh, output.
// Traffic counts what this site puts on its links: a published message counts once for each of its links.
class NetRing : public Ring {
 public:
  // Connects to the neighbours, in whatever order the sites start, printing a line every ten seconds while one is
  // missing, and exchanges the hellos of all sites. Throws Error at all sites, naming the difference, where a site must
  // not take part (version, agreement, order of the ring, key); after `wait_limit`; and where a port is unavailable.
  explicit NetRing(const RingPlan& plan);
  // Destruction without close() looks like the loss of this site to the others.
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

  // The hellos of all sites in the order of the ring, as exchanged at the start.
  const std::vector<Hello>& hellos() const;
  // The path to a neighbour (for tests and reports); in a ring of two sites it is the left and the right one.
  wan::Path& path_to(int neighbour);

 private:
  class Core;
  std::unique_ptr<Core> core_;
};

}  // namespace maki::sites
