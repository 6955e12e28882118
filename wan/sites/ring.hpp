// Messages between the gateways of sites that form a ring (SUSHI, section 2.1; docs/design.md, "Many sites"). Only
// the first rank of a site's job has one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/device/error.hpp"

namespace maki::sites {

// What messages are for. Those of one phase from one site arrive in the order of their numbers, and no phase waits for
// another one.
enum class Phase : std::uint8_t {
  kSums,       // of a step: what steps, rebuilds and boundaries are decided from
  kMesh,       // densities
  kTrees,      // local essential trees
  kParticles,  // that change their site
  kOutput,     // of snapshots, spectra and energies
  kControl,    // of beginning and ending a run
};
inline constexpr std::size_t kPhases = 6;
const char* name(Phase phase);

using Message = std::vector<std::byte>;
inline constexpr std::size_t kLongestMessage = std::size_t{128} << 20;  // parts of ranks travel in pieces (sites.hpp)

// A site does not answer any more: its path is down beyond its patience, or it has left because another one is lost.
// Every later call of the ring throws the same. The run writes a restart and ends.
class SiteLost : public Error {
 public:
  using Error::Error;
};

// Of this site in one phase, since the last take_traffic().
struct Traffic {
  std::uint64_t messages_sent = 0, bytes_sent = 0;  // as this site's own; what it passes on is not in them
  std::uint64_t messages_received = 0, bytes_received = 0;
  std::uint64_t bytes_passed_on = 0;  // of other sites' messages
  std::uint64_t waits = 0;            // receives that were not there yet when they were asked for
  double waited = 0;                  // seconds in these
};

class Ring {
 public:
  virtual ~Ring() = default;
  virtual int count() const = 0;  // sites
  virtual int me() const = 0;     // place in the ring, 0 to count - 1

  // Both return at once; the message travels meanwhile, by way of the sites between where there are any, the shorter
  // way around. `number`s of a phase rise from message to message between the same two sites. Throw SiteLost.
  virtual void send(int to, Phase phase, std::uint64_t number, Message message) = 0;
  // To all others, over each link of the ring at most once.
  virtual void publish(Phase phase, std::uint64_t number, Message message) = 0;
  // The next message of that phase from that site, sent or published. Waits. Throws SiteLost, and Error where it has
  // another number: then the sites are not in step.
  virtual Message receive(int from, Phase phase, std::uint64_t number) = 0;
  virtual bool arrived(int from, Phase phase) = 0;  // whether receive() would not wait

  // All of it, by phase; counting begins anew.
  virtual std::array<Traffic, kPhases> take_traffic() = 0;
  // Waits until all that was sent has arrived, and says good-bye: the others do not take this for a loss.
  virtual void close() = 0;
};

}  // namespace maki::sites
