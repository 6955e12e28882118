// Sites made of the ranks of one job: neighbouring ranks are a site, and gateways are joined by paths over the
// loopback.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "host/comm/communicator.hpp"
#include "tests/wan/ports.hpp"
#include "wan/sites/net_ring.hpp"
#include "wan/sites/sites.hpp"

namespace maki {

struct SitesOfRanks {
  SitesOfRanks(const Communicator& world, int count)
      : world(world), count(count), me(site_of(world.rank())), ranks(world.split(me, world.rank())) {
    std::vector<std::uint16_t> ports(static_cast<std::size_t>(count));
    if (world.rank() == 0) ports = wan::test::free_ports(count);
    world.broadcast(ports.data(), ports.size() * sizeof ports[0], 0);
    sites::RingPlan plan;
    plan.me = me;
    std::vector<std::string> names;
    for (int i = 0; i < count; ++i) {
      names.push_back("site" + std::to_string(i));
      plan.sites.push_back({.name = names.back(),
                            .address = {"127.0.0.1", ports[static_cast<std::size_t>(i)]},
                            .listen = {},
                            .relay = {},
                            .onward = {}});
    }
    plan.path.streams = 2;
    plan.security.insecure = true;
    plan.version = "test";
    plan.wait_limit = 60;
    std::unique_ptr<sites::Ring> ring;
    if (ranks.rank() == 0) ring = std::make_unique<sites::NetRing>(plan);
    sites = std::make_unique<sites::Sites>(std::move(ring), names, ranks);
  }
  // The first sites have one rank more where they do not come out even.
  int first_rank(int site) const { return (site * world.size() + count - 1) / count; }
  int site_of(int rank) const { return rank * count / world.size(); }

  Communicator world;
  int count, me;
  Communicator ranks;  // of this site
  std::unique_ptr<sites::Sites> sites;
};

}  // namespace maki
