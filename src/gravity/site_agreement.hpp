// What the sites of a run tell each other of every evaluation of forces: the sums that steps, rebuilds and slabs are
// decided from. Sent when an evaluation ends, known to all by the next but one, so that nobody waits for them
// (docs/design.md, "The walk of a step"): the same numbers in the same order at all sites lead to the same decisions.
// A site alone knows its own at once.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "src/gravity/rebuild_judge.hpp"
#include "wan/sites/sites.hpp"
#include "wan/sites/slabs.hpp"

namespace maki {

// Of one site, over its ranks.
struct SiteMeasures {
  // Largest values, and this site's part of the mean over all particles (where a long step ends, else -1).
  double acceleration = 0, momentum = 0, mean_square_momentum = -1;
  StepSums tree;
  double outgrown = 0;            // groups too near to what other sites have sent undivided
  double asks_rebuild = 0;        // of all sites, for reasons of its own
  double force_seconds = 0;       // lists and their evaluation since the last rebuild, of the slowest rank
  double work = 0;                // interactions in that time
  double last_force_seconds = 0;  // of this evaluation alone
  // Of an isolated set: when, and how far from the middle of the box the furthest particle is on any axis (length units).
  double time = 0, reach = 0;
  std::uint64_t particles = 0;
  std::uint64_t digest = 0;   // of what was decided before this evaluation
  std::uint64_t wishes = 0;   // bits that mean something to the run
  std::uint64_t samples = 0;  // positions that follow in the message; only after a rebuild
};

class SiteAgreement {
 public:
  explicit SiteAgreement(sites::Sites& sites)
      : sites_(sites), all_(static_cast<std::size_t>(sites.count())), x_(static_cast<std::size_t>(sites.count())) {}

  sites::Sites& sites() const { return sites_; }
  std::uint64_t number() const { return number_; }  // of the evaluation that comes or is under way; the first is 0
  // Evaluations from sums to what is decided from them.
  int delay() const { return sites_.alone() ? 0 : 2; }

  // The next evaluation begins: takes the sums of the one before last. Collective, as all that is not const. Throws
  // Error where the sites have decided differently, and as Sites.
  void begin();
  SiteMeasures& mine() { return mine_; }
  void set_samples(std::vector<std::uint32_t> x) { mine_x_ = std::move(x); }
  void decided(std::uint64_t bits);  // into the digest: alike at all sites
  void decided(double value);
  // What this site asks of all, in its messages from now on, and what any site asks, as far as all know.
  void wish(std::uint64_t bits) { my_wishes_ = bits; }
  std::uint64_t wishes() const;
  // The evaluation has ended: this site's sums go on their way. The first evaluation's are waited for.
  void publish();

  // The evaluation whose sums are known; none before the first.
  std::optional<std::uint64_t> known() const { return known_; }
  const std::vector<SiteMeasures>& all() const { return all_; }  // by site
  StepSums tree() const;                                         // of all sites
  // How far from the middle of the box (length units) the particles of an isolated set are at most at time t, alike at all
  // sites; `reach`: of those here. By what is known: the fastest could have come so far from where the furthest was. A round
  // trip where nothing is known yet.
  double farthest(double t, double reach);
  std::vector<sites::SiteWork> works() const;  // with the samples last sent

 private:
  void take(std::uint64_t number);
  double farthest_by(double t) const;

  sites::Sites& sites_;
  std::uint64_t number_ = 0;
  bool begun_ = false;
  std::optional<std::uint64_t> known_;
  SiteMeasures mine_;
  std::uint64_t my_wishes_ = 0;
  std::uint64_t digest_ = 0;
  std::vector<std::uint32_t> mine_x_;
  std::vector<SiteMeasures> all_;
  std::vector<std::vector<std::uint32_t>> x_;
};

}  // namespace maki
