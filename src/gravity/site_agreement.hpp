// The sums that the sites of a run exchange after every evaluation of forces, and by which they choose steps, rebuilds
// and slabs. They are sent when an evaluation ends and used from the next evaluation but one on, so that no site waits
// for them (docs/design.md, "The walk of a step"). The same numbers in the same order lead to the same decisions at all
// sites. A site alone uses its own sums at once.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "host/comm/communicator.hpp"
#include "wan/sites/sites.hpp"
#include "wan/sites/slabs.hpp"

namespace maki {

// Sums over ranks after each evaluation; counts as doubles.
struct StepSums {
  double interactions = 0, members = 0, groups = 0, rewalked = 0;
  double difference = 0, fresh_difference = 0, reference = 0;  // of the probes by kept and fresh lists (SampleError)
  double batched = 0;                                          // ranks whose lists were not kept
  double outgrown = 0;  // groups too near to undivided cells of other ranks' trees
  double largest = 0;   // most interactions of one rank
  double ranks = 1;

  // Sums over all ranks, the same bits on each. Collective.
  static StepSums over_ranks(const Communicator& ranks, StepSums mine);

  // Adds the sums of other ranks.
  void add(const StepSums& other);

  double particles() const { return members > 1 ? members : 1; }
  double mean_list() const { return interactions / particles(); }
  double imbalance() const { return interactions > 0 ? largest * ranks / interactions : 1; }
  // rms relative errors on the probes, 0 without probes: of the present lists, and of fresh lists.
  double probe_error() const { return relative(difference); }
  double fresh_error() const { return relative(fresh_difference); }

 private:
  double relative(double difference_squared) const;
};

// Cost of a rebuild, in interactions a particle; kept lists that have cost more are replaced.
inline constexpr double kRebuildCost = 350;

// The error to which that of kept lists is compared: that of fresh lists, or, where these are nearly exact (lists of an
// early box hold no cells), one smaller than the error of the mesh.
double reference_error(double fresh_error, double theta);

// The decision to rebuild: by the measured error of kept lists, and by their cost and the domains' imbalance. The same
// on all ranks if the sums are.
class RebuildJudge {
 public:
  explicit RebuildJudge(double tolerance) : tolerance_(tolerance) {}

  // Whether to rebuild whatever the sums, as lists kept for one evaluation have lately cost more than a rebuild. To be
  // called before each evaluation.
  bool pauses() { return left_ > 0 && left_-- > 0; }
  // Takes the sums of the first evaluation with new lists. `balanced`: the domains were cut by measured cost.
  void begin(const StepSums& sums, bool balanced);
  // Takes the sums of an evaluation with kept lists of opening angle `theta`; returns whether to rebuild. The error
  // `ahead` evaluations later is extrapolated from the last two, so that the rebuild comes before the limit is passed.
  bool wants_rebuild(const StepSums& sums, double theta, int ahead = 1);

 private:
  double tolerance_;           // largest ratio of the error of kept lists to that of fresh ones
  double fresh_pairs_ = 0;     // interactions of the lists as built
  double previous_error_ = 0;  // probe error of the last evaluation
  double attainable_ = 1;      // imbalance of the ranks that new domains may reach
  double excess_ = 0;          // extra cost of kept lists and domains so far, in interactions a particle
  bool is_first_ = true;       // the next evaluation is the first with these lists kept
  int pause_ = 0, left_ = 0;   // rebuilds without keeping lists, from one trial of kept ones to the next; still to come
};

// Measures of one site in one evaluation, over its ranks.
struct SiteMeasures {
  // Largest acceleration and momentum. Where a long step ends, else -1: this site's part of their mean squares, and of
  // the mean logarithm of the acceleration's square, over the particles of all sites. Units of StepMeasure.
  double acceleration = 0, momentum = 0, mean_square_momentum = -1, mean_square_acceleration = -1, mean_logarithm = -1;
  StepSums tree;
  double outgrown = 0;            // groups too near to undivided cells of other sites' trees
  double asks_rebuild = 0;        // 1: this site needs a rebuild at all sites; else 0
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

// Exchanges the sums of evaluations, which are numbered from 0, and checks that all sites decide alike.
class SiteAgreement {
 public:
  explicit SiteAgreement(sites::Sites& sites)
      : sites_(sites), restarts_(static_cast<std::size_t>(sites.count())), all_(restarts_.size()),
        x_(restarts_.size()) {}

  sites::Sites& sites() const { return sites_; }
  std::uint64_t number() const { return number_; }  // of the present or next evaluation; the first is 0
  // Number of evaluations from one with sums to the first that is decided by them: 0 at one site, else 2.
  int delay() const { return sites_.alone() ? 0 : 2; }

  // Begins the next evaluation, and receives the sums of the one before the last. Collective, as all calls that are not
  // const. Throws Error where the sites have decided differently, or where a site's sums are impossible, and as Sites
  // does.
  void begin();
  SiteMeasures& mine() { return mine_; }
  void set_samples(std::vector<std::uint32_t> x) { mine_x_ = std::move(x); }
  void decided(std::uint64_t bits);  // adds a decision, the same at all sites, to the digest
  void decided(double value);
  // Sets this site's requests to all sites (bits that the run defines), in its messages from now on; and the requests
  // of any site in the known sums.
  void request(std::uint64_t bits) { my_requests_ = bits; }
  std::uint64_t requests() const;
  // Step of this site's newest whole restart, for its messages from now on.
  void has_restart(std::uint64_t step) { my_restart_ = step; }
  // Step of the newest restart that all sites know all to have written whole; 0: none, and for a site alone.
  std::uint64_t common_restart() const { return common_restart_; }
  // Ends the evaluation and sends this site's sums. The first time, waits for the sums of all sites.
  void publish();

  // Number of the last evaluation whose sums are known; none before the first.
  std::optional<std::uint64_t> known() const { return known_; }
  const std::vector<SiteMeasures>& all() const { return all_; }  // by site
  StepSums tree() const;                                         // of all sites
  // Upper bound, the same at all sites, of the distance (length units, on any axis) of an isolated set's particles from
  // the middle of the box at time t: the largest distance in the known sums, plus the path of a particle with the
  // largest momentum and acceleration in them. `reach_length`: the distance at this site. One round trip where no sums
  // are known yet.
  double farthest(double t, double reach_length);
  std::vector<sites::SiteWork> works() const;  // by site, with the samples last sent

 private:
  void take(std::uint64_t number);
  void read(std::size_t site, const sites::Message& message);
  void find_common_restart();
  double farthest_by(double t) const;

  sites::Sites& sites_;
  std::uint64_t number_ = 0;
  bool begun_ = false;
  std::optional<std::uint64_t> known_;
  SiteMeasures mine_;
  std::uint64_t my_requests_ = 0, my_restart_ = 0, common_restart_ = 0;
  std::vector<std::set<std::uint64_t>> restarts_;  // by site, steps from the common one on
  std::uint64_t digest_ = 0;
  std::vector<std::uint32_t> mine_x_;
  std::vector<SiteMeasures> all_;
  std::vector<std::vector<std::uint32_t>> x_;
};

}  // namespace maki
