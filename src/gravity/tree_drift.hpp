// How far particles may go from where they were when trees were sent to others, until these are sent anew (sides): each
// run learns what suits it. Longer drifts make larger trees, shorter ones more of them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>

namespace maki {

// What a restart keeps of both; 0 where there are no others.
struct TreeDrifts {
  double ranks = 0;       // that the ranks' trees of the state were made with
  double ranks_next = 0;  // that their next ones would be
  double sites = 0;
};

class TreeDrift {
 public:
  // At most, of r_cut; in isolated sets, of the side.
  static constexpr double kMostOfCutoff = 0.5, kMost = 0.05;

  bool known() const { return length_ > 0; }
  double length() const { return length_; }  // of the next trees
  double used() const { return used_; }      // of the last ones

  // At first, in mean distances of the particles of the whole box; not above `most` (sides).
  void begin(std::uint64_t particles, double most = 1) {
    length_ = std::min(most, 0.1 / std::cbrt(static_cast<double>(std::max<std::uint64_t>(particles, 1))));
    later_.reset();
  }
  // Trees are made with the length that is returned.
  double use() { return used_ = length_; }
  // It was too short. False: it cannot be longer.
  bool lengthen(double r_cut) {
    const double most = r_cut > 0 ? kMostOfCutoff * r_cut : kMost, before = length_;
    length_ = std::min(most, 1.5 * length_);
    later_.reset();
    return before < most;
  }
  // Trees were made anew: the next ones may do with a little less.
  void shorten() {
    length_ = later_ ? *later_ : 0.97 * length_;
    later_.reset();
  }
  void box_doubled() { length_ /= 2; }

  // As in a restart: `length`, and after the next shorten(), where it is known, `later`.
  void restore(double length, std::optional<double> later = {}) {
    length_ = used_ = length;
    later_ = length > 0 ? later : std::nullopt;
  }

 private:
  double length_ = 0, used_ = 0;
  std::optional<double> later_;
};

}  // namespace maki
