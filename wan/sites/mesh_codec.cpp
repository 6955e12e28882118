#include "wan/sites/mesh_codec.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <memory>

#include "kernels/device/error.hpp"
#include "wan/sites/mesh_coder.hpp"

namespace maki::sites {
namespace {

constexpr float kLeastMean = 0.5f;

[[noreturn]] void refuse(const char* reason) {
  throw Error("masses of another site cannot be read", reason, "run the same version at all sites");
}

class Encoder : MeshCoder {
 public:
  Encoder(const MeshBlock& b, const std::array<const std::uint64_t*, 2>& counts)
      : MeshCoder(b, {b.planes, b.planes}), counts_(counts) {}

  std::vector<std::byte> run() {
    const int excess = fill();
    if (excess > 0) {
      head_.shift = static_cast<std::uint8_t>(excess);
      fill();
    }
    each_model([&](int mesh, int first, int odd, Model& model) { fit(mesh, first, odd, model); });
    open();
    each_plane([&](int mesh, int x) {
      if (kind(mesh, x) == Plane::kEmpty) return;
      for (int y = 0; y < b_.rows; ++y)
        for (int odd = 0; odd < 2; ++odd) half_row(mesh, x, y, odd);
    });
    return finish();
  }

 private:
  const std::uint64_t* row(int mesh, int x, int y) const {
    return counts_[counted(mesh)] + (counted(x) * counted(b_.rows) + counted(y)) * counted(b_.length);
  }
  std::uint64_t rounding(int mesh, int x) const {
    return kind(mesh, x) == Plane::kRounded && b_.dropped_bits > 0 ? std::uint64_t{1} << (b_.dropped_bits - 1) : 0;
  }
  // Returns how many bits the largest cell has too many.
  int fill() {
    int excess = 0;
    for (int mesh = 0; mesh < b_.meshes; ++mesh) {
      for (int x = 0; x < b_.planes; ++x) {
        if (kind(mesh, x) == Plane::kEmpty) {
          near(mesh).clear(x);
          continue;
        }
        const int down = unit_bits(mesh, x) + low(mesh, x), rise = up(mesh, x);
        std::uint64_t any = 0;
        for (int y = 0; y < b_.rows; ++y) {
          any |= split_row(row(mesh, x, y), half_, rounding(mesh, x), down, rise, near(mesh).row(x, y, 0),
                           near(mesh).row(x, y, 1));
          near(mesh).close(x, y, 0);
          near(mesh).close(x, y, 1);
        }
        excess = std::max(excess, static_cast<int>(std::bit_width(any)) + rise - kNearBits);
      }
    }
    return excess;
  }
  // Some thousand cells, in short stretches all over the block.
  struct Stretch {
    int x, y, from;
  };
  std::vector<Stretch> samples(int mesh, bool first, int stretch) const {
    std::vector<int> planes;
    for (int x = 0; x < b_.planes; ++x)
      if (kind(mesh, x) != Plane::kEmpty && begins(mesh, x) == first) planes.push_back(x);
    const std::size_t rows = planes.size() * counted(b_.rows);
    const std::size_t wanted = std::min(kSamples, rows * counted(half_) / 8);
    const std::size_t count = std::min(rows, wanted / counted(stretch) + 1);
    std::vector<Stretch> all;
    std::uint32_t random = 1;
    for (std::size_t i = 0; i < count; ++i) {
      random = random * 1664525u + 1013904223u;
      const std::size_t at = (i * rows + (random >> 16) % rows) / count;
      all.push_back({planes[at / counted(b_.rows)], static_cast<int>(at % counted(b_.rows)),
                     static_cast<int>((random >> 8) % static_cast<std::uint32_t>(half_ - stretch + 1))});
    }
    return all;
  }
  const Features& features_of(int mesh, const Stretch& s, int odd) {
    if (odd) features(mesh, s.x, s.y, 0);
    return features(mesh, s.x, s.y, odd);
  }
  void fit(int mesh, bool first, int odd, Model& model) {
    const int stretch = std::min(half_, WeightFit::kSegment);
    const std::vector<Stretch> all = samples(mesh, first, stretch);
    WeightFit found;
    for (const Stretch& s : all) found.add(features_of(mesh, s, odd), near(mesh).row(s.x, s.y, odd), s.from, stretch);
    model.weights = found.weights();
    double sum = 0, squares = 0, exact = 0;
    for (const Stretch& s : all) {
      predict(features_of(mesh, s, odd), model.weights.data(), std::ldexp(1.0, -kWeightBits), half_, predicted_.data());
      residuals(near(mesh).row(s.x, s.y, odd), 0, predicted_.data(), half_, left_.data());
      for (std::uint32_t left : left_) {
        sum += left;
        squares += static_cast<double>(left) * left;
        exact += left < 1u << up(mesh, s.x) ? 1 : 0;
      }
    }
    const auto cells = static_cast<double>(all.size() * counted(half_));
    const auto mean = std::bit_cast<std::uint32_t>(std::max(static_cast<float>(sum / cells), kLeastMean));
    model.mean = std::bit_cast<float>(mean & 0xffff0000u);
    // Where much the same is left everywhere the cells around say little, and how it was farther off says as much.
    const bool alike = squares * cells<4 * sum * sum, often_exact = exact> 0.05 * cells;
    if (!first || !used(mesh, false)) head_.kept = alike ? 1 : often_exact ? 0 : 2;
  }

  void open() {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      sizes_[lane] = b_.cells() * counted(b_.meshes) / 3 + 2 * most_bytes();
      room_[lane] = std::make_unique_for_overwrite<std::byte[]>(sizes_[lane]);
      lanes_[lane].at = room_[lane].get();
    }
  }
  void make_room() {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const auto used = static_cast<std::size_t>(lanes_[lane].at - room_[lane].get());
      if (sizes_[lane] - used >= most_bytes() + sizeof(std::uint64_t)) continue;
      auto larger = std::make_unique_for_overwrite<std::byte[]>(2 * sizes_[lane]);
      std::copy_n(room_[lane].get(), used + 1, larger.get());
      sizes_[lane] *= 2;
      room_[lane] = std::move(larger);
      lanes_[lane].at = room_[lane].get() + used;
    }
  }
  void half_row(int mesh, int x, int y, int odd) {
    make_room();
    look(mesh, x, y, odd);
    residuals(near(mesh).row(x, y, odd), up(mesh, x), predicted_.data(), half_, left_.data());
    keep(mesh, x, y, odd);
    put_residuals(left_.data(), codes_.data(), half_, lanes_.data());
    if (const int bits = low(mesh, x)) {
      rest_.resize(counted(half_));
      const std::uint64_t* from = row(mesh, x, y) + odd;
      for (int i = 0; i < half_; ++i) rest_[counted(i)] = (from[2 * i] + rounding(mesh, x)) >> unit_bits(mesh, x);
      put_low(rest_.data(), bits, half_, lanes_.data());
    }
  }
  std::vector<std::byte> finish() {
    std::vector<std::uint16_t> models;
    each_model([&](int mesh, int, int odd, const Model& model) {
      for (std::size_t f = 0; f < counted(Surroundings::count(mesh == 1, odd)); ++f)
        models.push_back(static_cast<std::uint16_t>(model.weights[f]));
      models.push_back(static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(model.mean) >> 16));
    });
    std::size_t size = sizeof head_ + models.size() * sizeof models[0];
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const std::ptrdiff_t bytes = lanes_[lane].at - room_[lane].get() + (lanes_[lane].used > 0 ? 1 : 0);
      size += head_.bytes[lane] = static_cast<std::uint32_t>(bytes);
    }
    std::vector<std::byte> all;
    all.reserve(size + most_bytes());
    const auto add = [&](const void* from, std::size_t bytes) {
      const auto* begin = static_cast<const std::byte*>(from);
      all.insert(all.end(), begin, begin + bytes);
    };
    add(&head_, sizeof head_);
    add(models.data(), models.size() * sizeof models[0]);
    for (std::size_t lane = 0; lane < kLanes; ++lane) add(room_[lane].get(), head_.bytes[lane]);
    all.resize(size + most_bytes());
    return all;
  }

  static constexpr std::size_t kSamples = 2048;
  std::array<const std::uint64_t*, 2> counts_;
  std::array<std::unique_ptr<std::byte[]>, kLanes> room_;
  std::array<std::size_t, kLanes> sizes_{};
  std::array<WriteLane, kLanes> lanes_;
  std::vector<std::uint64_t> rest_;
};

class Decoder : MeshCoder {
 public:
  Decoder(const MeshBlock& b, std::span<const std::byte> bytes, const RowOf& row_of)
      : MeshCoder(b, {4, 3}), bytes_(bytes), row_of_(row_of) {}

  void run() {
    open();
    each_plane([&](int mesh, int x) {
      if (kind(mesh, x) == Plane::kEmpty) return near(mesh).clear(x);
      for (int y = 0; y < b_.rows; ++y) row(mesh, x, y);
    });
  }

 private:
  void open() {
    const auto take = [&](void* to, std::size_t bytes) {
      if (bytes_.size() < bytes) refuse("it ends too early");
      std::copy_n(bytes_.data(), bytes, static_cast<std::byte*>(to));
      bytes_ = bytes_.subspan(bytes);
    };
    take(&head_, sizeof head_);
    if (head_.shift > 0 && head_.shift + b_.shed_bits > 64 - kNearBits) refuse("its first number is out of range");
    if (head_.kept > 8) refuse("its second number is out of range");
    each_model([&](int mesh, int, int odd, Model& model) {
      std::array<std::int16_t, Features::kMost> weights{};
      std::uint16_t mean = 0;
      take(weights.data(), counted(Surroundings::count(mesh == 1, odd)) * sizeof weights[0]);
      take(&mean, sizeof mean);
      std::copy(weights.begin(), weights.end(), model.weights.begin());
      model.mean = std::bit_cast<float>(static_cast<std::uint32_t>(mean) << 16);
      if (!(model.mean >= kLeastMean && model.mean < 0x1p30f)) refuse("what is left on average is out of range");
    });
    std::uint64_t end = 0;
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      at_[lane] = 8 * end;
      end += head_.bytes[lane];
      end_[lane] = 8 * end;
    }
    if (bytes_.size() < end + most_bytes()) refuse("it ends too early");
  }
  void row(int mesh, int x, int y) {
    std::uint64_t* const to = row_of_(mesh, x, y);
    NearCells& cells = near(mesh);
    const int bits = low(mesh, x), unit = unit_bits(mesh, x);
    for (int odd = 0; odd < 2; ++odd) {
      look(mesh, x, y, odd);
      get_residuals(bytes_.data(), at_.data(), codes_.data(), half_, left_.data());
      if (bits > 0) {
        rest_.resize(counted(half_));
        get_low(bytes_.data(), at_.data(), bits, half_, rest_.data());
        if (to)
          for (int i = 0; i < half_; ++i) to[2 * i + odd] += rest_[counted(i)] << unit;
      }
      for (std::size_t lane = 0; lane < kLanes; ++lane)
        if (at_[lane] > end_[lane]) refuse("it ends too early");
      restore(left_.data(), up(mesh, x), predicted_.data(), half_, cells.row(x, y, odd));
      cells.close(x, y, odd);
      keep(mesh, x, y, odd);
    }
    if (to) join_row(cells.row(x, y, 0), cells.row(x, y, 1), half_, up(mesh, x), unit + bits, to);
  }

  std::span<const std::byte> bytes_;
  const RowOf& row_of_;
  std::array<std::uint64_t, kLanes> at_{}, end_{};
  std::vector<std::uint64_t> rest_;
};

}  // namespace

std::vector<std::byte> encode(const MeshBlock& block, const std::array<const std::uint64_t*, 2>& counts) {
  return Encoder(block, counts).run();
}

void decode(const MeshBlock& block, std::span<const std::byte> bytes, const RowOf& row_of) {
  Decoder(block, bytes, row_of).run();
}

}  // namespace maki::sites
