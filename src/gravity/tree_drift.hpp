// The distance (sides) that particles may drift before the trees sent to other ranks or sites have to be made anew.
// Each run adapts it: longer drifts make larger trees, shorter ones more frequent rebuilds.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>

namespace maki {

// The drifts (sides) that a restart keeps; 0 where there are no other ranks or sites.
struct TreeDrifts {
  double ranks = 0;       // of the present trees between ranks
  double ranks_next = 0;  // of the next trees between ranks
  double sites = 0;       // of the next trees between sites
};

class TreeDrift {
 public:
  // The longest drift: a fraction of r_cut; in isolated sets, of the side.
  static constexpr double kMostOfCutoff = 0.5, kMost = 0.05;

  bool known() const { return length_ > 0; }
  double length() const { return length_; }  // of the next trees
  double used() const { return used_; }      // of the last ones

  // The first drift: 0.1 of the mean distance between particles if they filled the box; not above `most` (sides).
  void begin(std::uint64_t particles, double most = 1) {
    length_ = std::min(most, 0.1 / std::cbrt(static_cast<double>(std::max<std::uint64_t>(particles, 1))));
    later_.reset();
  }
  // Returns the length for trees that are now made.
  double use() { return used_ = length_; }
  // To be called where the drift was too short. False: it is at its limit already.
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

  // State of a restart: `length` now, and `later` (if known) after the next shorten().
  void restore(double length, std::optional<double> later = {}) {
    length_ = used_ = length;
    later_ = length > 0 ? later : std::nullopt;
  }

 private:
  double length_ = 0, used_ = 0;
  std::optional<double> later_;
};

}  // namespace maki
