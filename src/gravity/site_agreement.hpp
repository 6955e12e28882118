// The sums that the sites of a run exchange after every evaluation of forces, and by which they choose steps, rebuilds
// and slabs. They are sent when an evaluation ends and used from the next but one, so that no site waits for them
// (docs/design.md, "The walk of a step"). The same numbers in the same order lead to the same decisions at all sites.
// A site alone uses its own sums at once.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "src/gravity/rebuild_judge.hpp"
#include "wan/sites/sites.hpp"
#include "wan/sites/slabs.hpp"

namespace maki {

// Measures of one site in one evaluation, over its ranks.
struct SiteMeasures {
  // Largest acceleration and momentum; this site's part of their mean squares over all particles (where a long step ends,
  // else -1). Units of StepMeasure.
  double acceleration = 0, momentum = 0, mean_square_momentum = -1, mean_square_acceleration = -1;
  StepSums tree;
  double outgrown = 0;            // groups too near to undivided cells of other sites' trees
  double asks_rebuild = 0;        // not 0: this site needs a rebuild at all sites
  double force_cost = 0;          // of lists and their evaluation since the last rebuild (SiteWork)
  double work = 0;                // interactions in that time
  double last_force_seconds = 0;  // lists and their evaluation in this evaluation, of the slowest rank
  // Isolated sets: the time, and the largest distance of a particle from the middle of the box on any axis (length
  // units).
  double time = 0, reach_length = 0;
  std::uint64_t particles = 0;
  std::uint64_t digest = 0;    // hash of all decisions before this evaluation
  std::uint64_t requests = 0;  // bits that the run defines
  std::uint64_t restart = 0;   // step of this site's newest whole restart; 0: none
  std::uint64_t samples = 0;   // positions that follow in the message; only after a rebuild
};

class SiteAgreement {
 public:
  explicit SiteAgreement(sites::Sites& sites)
      : sites_(sites), all_(static_cast<std::size_t>(sites.count())), x_(static_cast<std::size_t>(sites.count())) {}

  sites::Sites& sites() const { return sites_; }
  std::uint64_t number() const { return number_; }  // of the present or next evaluation; the first is 0
  // Number of evaluations between sums and the decisions based on them.
  int delay() const { return sites_.alone() ? 0 : 2; }

  // Begins the next evaluation, and receives the sums of the one before the last. Collective, as all calls that are not
  // const. Throws Error where the sites have decided differently, and as Sites does.
  void begin();
  SiteMeasures& mine() { return mine_; }
  void set_samples(std::vector<std::uint32_t> x) { mine_x_ = std::move(x); }
  void decided(std::uint64_t bits);  // adds a decision, alike at all sites, to the digest
  void decided(double value);
  // Requests of this site to all sites (bits that the run defines), in its messages from now on; and the requests of
  // any site that all sites know of.
  void request(std::uint64_t bits) { my_requests_ = bits; }
  std::uint64_t requests() const;
  // The newest whole restart of this site, by its step, in its messages from now on; and that of the site that is farthest
  // behind, as far as all sites know: 0 where one has none, and for a site alone.
  void has_restart(std::uint64_t step) { my_restart_ = step; }
  std::uint64_t oldest_restart() const;
  // Ends the evaluation and sends this site's sums. The first time, waits for the sums of all sites.
  void publish();

  // Number of the last evaluation whose sums are known; none before the first.
  std::optional<std::uint64_t> known() const { return known_; }
  const std::vector<SiteMeasures>& all() const { return all_; }  // by site
  StepSums tree() const;                                         // of all sites
  // Upper bound, alike at all sites, of the distance (length units, on any axis) of the particles of an isolated set
  // from the middle of the box at time t: as if the fastest had started from the farthest in the known sums. `reach_length`:
  // the distance at this site. One round trip where no sums are known yet.
  double farthest(double t, double reach_length);
  std::vector<sites::SiteWork> works() const;  // by site, with the samples last sent

 private:
  void take(std::uint64_t number);
  double farthest_by(double t) const;

  sites::Sites& sites_;
  std::uint64_t number_ = 0;
  bool begun_ = false;
  std::optional<std::uint64_t> known_;
  SiteMeasures mine_;
  std::uint64_t my_requests_ = 0, my_restart_ = 0;
  std::uint64_t digest_ = 0;
  std::vector<std::uint32_t> mine_x_;
  std::vector<SiteMeasures> all_;
  std::vector<std::vector<std::uint32_t>> x_;
};

}  // namespace maki
