// Options of the force evaluation, its counts, and the drift that imported trees allow for.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "kernels/force/split.hpp"
#include "kernels/mesh/mesh.hpp"

namespace maki {

// Default number of evaluations for which lists with ghosts are kept. With more, cells outgrow their lists: with 4 the
// error of the power spectrum at half the Nyquist wave number would be 3e-3.
inline constexpr int kGhostReuse = 2;

struct GravityOptions {
  bool periodic = true;
  bool direct = false;  // direct sum instead of the tree (isolated sets)
  ForceLaw law;         // lengths in sides
  MeshOptions mesh;     // read where law.split is not kNone
  double theta = 0.5;   // opening angle; set_theta changes it later
  // Isolated sets: cells open by their estimated error relative to the last accelerations, once these are known
  // (kernels/tree/opening.hpp); theta sets the tolerated error.
  bool open_by_error = false;
  bool quadrupoles = true;
  std::uint32_t leaf_size = 16;      // a cell with more particles is divided
  std::uint32_t group_size = 64;     // n_crit: targets that share a list, at most
  int fixed_reuse = 0;               // 0: rebuild by measured error; n: rebuild every n evaluations (1 = always)
  double reuse_tolerance = 1.5;      // largest error of kept lists over that of fresh lists
  std::uint64_t most_particles = 0;  // over many ranks: particles for which one rank has memory; 0: no limit
  std::size_t list_budget = 0;       // bytes for kept lists; 0: no limit; above it lists are made and used in batches
  // Over many ranks: balance work by interaction counts instead of times, so that a repeated run has the same bits
  // (docs/design.md, "Many ranks").
  bool deterministic = false;
  // Periodic boxes: the level of the cells that ghosts complete (whole_cell_level(), GhostTree); 0: no ghosts. With
  // ghosts accelerations have the same bits for any number of ranks and sites and any division of the particles among
  // them, on one instruction set, and lists are kept for fixed_reuse evaluations (0: kGhostReuse), whatever their
  // error. The bits may differ where lists exceed list_budget, where particles are at one point (joined_sources.hpp),
  // and over sites where particles go further than a mesh cell beyond their slab while lists are kept
  // (Gravity::shared_planes()).
  int ghost_level = 0;
  // Round positions relative to their cell in messages between ranks, and for isolated sets in messages between sites
  // (in periodic boxes the latter are always rounded, except with ghosts).
  bool let_compression = false;
  double boundary_move = 0.1;        // over several sites: the largest move of a slab boundary at once, sides
  std::vector<std::uint32_t> slabs;  // where the sites' slabs begin at the start; empty: even slabs
};

// The forces to evaluate: those of the tree (or the direct sum), of the mesh, or of both.
enum class Ranges { kShort, kLong, kBoth };

// Bytes a particle of accelerations, and of potentials if wanted, for one range or (`mesh`) two.
constexpr double gravity_bytes(bool mesh, bool potentials) {
  return (mesh ? 2 : 1) * static_cast<double>((potentials ? 4 : 3) * sizeof(float));
}

// Counts of the last evaluation of the short range on this rank. `rebuilt`, means and errors are over all ranks, the
// same on each.
struct GravityCounts {
  bool rebuilt = false;
  std::uint64_t interactions = 0;  // pairs, particle-particle and particle-cell
  double mean_list = 0;            // sources a particle
  std::uint64_t longest_list = 0;  // sources of one group
  double mean_fill = 0;            // particles a group over group_size
  std::uint64_t groups = 0;
  std::uint64_t cells = 0;            // of the tree
  std::uint64_t rewalked_groups = 0;  // on a reuse step: groups whose lists were stale
  std::uint64_t redone_groups = 0;    // walked again because room for their lists was short
  double theta = 0;                   // opening angle
  double probe_error = 0;             // rms relative error of kept lists on the probes
  double fresh_error = 0;             // the same if all lists were made now
  // Over many ranks: the local essential trees that this rank receives and sends.
  std::uint64_t let_cells = 0;      // received
  std::uint64_t let_particles = 0;  // received
  std::uint64_t let_bytes = 0;      // sent
  std::uint64_t let_messages = 0;   // sent
  double let_exchange_seconds = 0;  // from the first message to the last
  double let_waited_seconds = 0;    // part of it in which this rank had no other work
  double domain_imbalance = 1;      // largest number of interactions of a rank over the mean; the same on all
};

// The lengths (sides) of TreeDrifts that a restart keeps; 0 where there are no other ranks or sites.
struct TreeDrifts {
  double ranks = 0;       // of the present trees between ranks
  double ranks_next = 0;  // of the next trees between ranks
  double sites = 0;       // of the next trees between sites
};

// The skin of the trees sent to other ranks or sites: the distance (sides) that particles may drift before these trees
// have to be made anew. Each run adapts it: a longer one makes larger trees, a shorter one more frequent rebuilds.
class TreeDrift {
 public:
  // The longest drift: a fraction of r_cut; in isolated sets, of the side.
  static constexpr double kMostOfCutoff = 0.5, kMost = 0.05;

  bool known() const { return length_ > 0; }
  double length() const { return length_; }  // of the next trees
  double used() const { return used_; }      // of the last ones

  // The first length: 0.1 of the mean distance that `particles` filling the box would have; not above `most` (sides).
  void begin(std::uint64_t particles, double most = 1) {
    length_ = std::min(most, 0.1 / std::cbrt(static_cast<double>(std::max<std::uint64_t>(particles, 1))));
    later_.reset();
  }
  // Returns the length for trees that are now made.
  double use() { return used_ = length_; }
  // To be called where the drift was too short. False: it is already at its limit.
  bool lengthen(double r_cut) {
    const double most = r_cut > 0 ? kMostOfCutoff * r_cut : kMost, before = length_;
    length_ = std::min(most, 1.5 * length_);
    later_.reset();
    return before < most;
  }
  // To be called after new trees were made: a slightly shorter drift for the next ones.
  void shorten() {
    length_ = later_ ? *later_ : 0.97 * length_;
    later_.reset();
  }
  void box_doubled() { length_ /= 2; }

  // Restores the state of a restart: `length` now, and `later` (if known) after the next shorten().
  void restore(double length, std::optional<double> later = {}) {
    length_ = used_ = length;
    later_ = length > 0 ? later : std::nullopt;
  }

 private:
  double length_ = 0, used_ = 0;
  std::optional<double> later_;
};

}  // namespace maki
