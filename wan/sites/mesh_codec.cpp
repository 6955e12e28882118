#include "wan/sites/mesh_codec.hpp"

#include <algorithm>
#include <bit>

#include "wan/sites/bit_stream.hpp"
#include "wan/sites/mesh_surroundings.hpp"

namespace maki::sites {
namespace {

constexpr std::uint64_t kMostLeft = std::uint64_t{1} << 58;  // for the choice of a parameter

[[noreturn]] void refuse(const char* reason) {
  throw Error("masses of another site cannot be read", reason, "run the same version at all sites");
}

// What was left of cells after prediction, those before a cell in its row, its plane and the plane before: the
// parameter of its code.
class Scale {
 public:
  explicit Scale(const MeshBlock& b)
      : length_(b.length), left_(2 * static_cast<std::size_t>(b.rows) * static_cast<std::size_t>(b.length + 2)) {}

  void row(int x, int y, int rows, bool same_kind_before) {
    const auto at = [&](int plane, int r) {
      return left_.data() + (static_cast<std::size_t>((plane & 1) * rows + r)) * static_cast<std::size_t>(length_ + 2) +
             1;
    };
    here_ = at(x, y);
    before_ = x > 0 && same_kind_before ? at(x + 1, y) : nullptr;
    above_ = y > 0 ? at(x, y - 1) : before_;
    if (!above_) above_ = zeros();
    if (!before_) before_ = above_;
    last_ = above_[0];
    last_but_one_ = last_;
  }
  int parameter(int z) const {
    const std::uint64_t sum = 3 * last_ + last_but_one_ + 2 * above_[z] + above_[z + 1] + before_[z];
    return std::bit_width((sum >> 3) - (sum >> 5));
  }
  void add(int z, std::uint64_t left) {
    last_but_one_ = last_;
    last_ = here_[z] = std::min(left, kMostLeft);
  }
  void close() { here_[length_] = here_[0]; }

 private:
  const std::uint64_t* zeros() {
    zeros_.assign(static_cast<std::size_t>(length_ + 2), 0);
    return zeros_.data();
  }
  int length_;
  std::vector<std::uint64_t> left_, zeros_;
  std::uint64_t* here_ = nullptr;
  const std::uint64_t *above_ = nullptr, *before_ = nullptr;
  std::uint64_t last_ = 0, last_but_one_ = 0;
};

// What both ends do alike: prediction of the cells of one mesh after another, row by row.
class Coder {
 public:
  explicit Coder(const MeshBlock& b) : b_(b), base_(static_cast<std::size_t>(b.length)) {
    for (int mesh = 0; mesh < b.meshes; ++mesh) near_.emplace_back(b.planes, b.rows, b.length);
  }

 protected:
  Plane kind(int mesh, int x) const { return b_.kind[static_cast<std::size_t>(mesh)][static_cast<std::size_t>(x)]; }
  int dropped(int mesh, int x) const { return kind(mesh, x) == Plane::kRounded ? b_.dropped_bits : b_.shed_bits; }
  // Planes of which the one before says nothing have weights of their own.
  bool begins(int mesh, int x) const { return x == 0 || kind(mesh, x - 1) == Plane::kEmpty; }
  NearCells& near(int mesh) { return near_[static_cast<std::size_t>(mesh)]; }
  Surroundings surroundings(int mesh) const {
    return {near_[static_cast<std::size_t>(mesh)], mesh == 1 ? near_.data() : nullptr, b_.length};
  }
  std::size_t row_at(int x, int y) const {
    return (static_cast<std::size_t>(x) * static_cast<std::size_t>(b_.rows) + static_cast<std::size_t>(y)) *
           static_cast<std::size_t>(b_.length);
  }

  // Calls one(z, predicted, parameter), which returns the cell's value in units of 2^dropped and what was left of it.
  template <class One>
  void code_row(int mesh, int x, int y, Surroundings& around, Scale& scale, const Weights& weights, int shift,
                const One& one) {
    NearCells& cells = near(mesh);
    cells.open(x, y);
    const auto& features = around.of(x, y);
    const int others = around.count() - Surroundings::kOwn;
    // Products of 16 and 28 bits: these sums are exact, whatever the order and the instructions.
    double* const base = base_.data();
    std::fill(base_.begin(), base_.end(), 0.0);
    for (int f = 0; f < others; ++f) {
      const double w = weights[static_cast<std::size_t>(f)];
      const std::int32_t* values = features[static_cast<std::size_t>(f)];
      if (w != 0)
        for (int z = 0; z < b_.length; ++z) base[z] += w * values[z];
    }
    const int down = dropped(mesh, x) + kWeightBits - shift;
    std::int32_t* const row = cells.row(x, y);
    const std::int32_t* const own = weights.data() + others;
    const std::int64_t w1 = own[0], w2 = own[1];
    scale.row(x, y, b_.rows, x > 0 && kind(mesh, x - 1) == kind(mesh, x));
    for (int z = 0; z < b_.length; ++z) {
      const std::int64_t value = static_cast<std::int64_t>(base[z]) + w1 * row[z - 1] + w2 * row[z - 2];
      const auto sum = static_cast<std::uint64_t>(value);
      std::uint64_t predicted = 0;
      if (value > 0) predicted = down > 0 ? (sum + (std::uint64_t{1} << (down - 1))) >> down : sum << -down;
      const auto [found, left] = one(z, predicted, scale.parameter(z));
      row[z] = static_cast<std::int32_t>(found << dropped(mesh, x) >> shift & ((1u << kNearBits) - 1));
      scale.add(z, left);
    }
    scale.close();
    cells.close(x, y);
  }

  const MeshBlock& b_;
  std::vector<NearCells> near_;
  std::vector<double> base_;
};

std::uint64_t zigzag(std::uint64_t difference) {
  return difference << 1 ^ (difference >> 63 ? ~std::uint64_t{0} : 0);
}
std::uint64_t unzigzag(std::uint64_t left) { return left >> 1 ^ (left & 1 ? ~std::uint64_t{0} : 0); }

class Encoder : Coder {
 public:
  Encoder(const MeshBlock& b, const std::array<const std::uint64_t*, 2>& counts) : Coder(b), counts_(counts) {}

  std::vector<std::byte> run() {
    shift_ = std::max(0, static_cast<int>(std::bit_width(largest())) - kNearBits);
    bits_.put(static_cast<std::uint64_t>(shift_), 8);
    for (int mesh = 0; mesh < b_.meshes; ++mesh) fill(mesh);
    for (int mesh = 0; mesh < b_.meshes; ++mesh) one_mesh(mesh);
    return bits_.finish();
  }

 private:
  const std::uint64_t* row(int mesh, int x, int y) const {
    return counts_[static_cast<std::size_t>(mesh)] + row_at(x, y);
  }
  template <class F>
  void rows(int mesh, const F& f) {
    for (int x = 0; x < b_.planes; ++x) {
      if (kind(mesh, x) == Plane::kEmpty) continue;
      for (int y = 0; y < b_.rows; ++y) f(x, y);
    }
  }
  std::uint64_t largest() {
    std::uint64_t most = 0;
    for (int mesh = 0; mesh < b_.meshes; ++mesh)
      rows(mesh, [&](int x, int y) {
        const std::uint64_t* r = row(mesh, x, y);
        for (int z = 0; z < b_.length; ++z) most = std::max(most, r[z]);
      });
    return most;
  }
  void fill(int mesh) {
    rows(mesh, [&](int x, int y) {
      const std::uint64_t* r = row(mesh, x, y);
      for (int z = 0; z < b_.length; ++z) near(mesh).row(x, y)[z] = static_cast<std::int32_t>(r[z] >> shift_);
      near(mesh).close(x, y);
    });
  }
  // From some thousand cells, those of every so manieth row.
  void fit(int mesh, std::array<Weights, 2>& weights) {
    Surroundings around = surroundings(mesh);
    std::array<WeightFit, 2> fits{WeightFit(around.count()), WeightFit(around.count())};
    std::array<std::size_t, 2> cells{};
    rows(mesh, [&](int x, int) { cells[begins(mesh, x)] += static_cast<std::size_t>(b_.length); });
    std::array<std::size_t, 2> every;
    for (std::size_t i = 0; i < 2; ++i) every[i] = 1 + cells[i] / kSamples;
    std::size_t at = 0;
    rows(mesh, [&](int x, int y) {
      const std::size_t which = begins(mesh, x), step = every[which];
      const auto& features = around.of(x, y);
      const std::int32_t* r = near(mesh).row(x, y);
      for (at = (at * 7 + 3) % step; at < static_cast<std::size_t>(b_.length); at += step)
        fits[which].add(features, static_cast<int>(at), r[at]);
    });
    for (std::size_t i = 0; i < 2; ++i) weights[i] = fits[i].weights();
  }
  void one_mesh(int mesh) {
    std::array<Weights, 2> weights;
    fit(mesh, weights);
    for (const Weights& set : weights)
      for (std::int32_t w : set) bits_.put(static_cast<std::uint16_t>(w), 16);
    Surroundings around = surroundings(mesh);
    Scale scale(b_);
    rows(mesh, [&](int x, int y) {
      const std::uint64_t* r = row(mesh, x, y);
      const int down = dropped(mesh, x);
      code_row(mesh, x, y, around, scale, weights[begins(mesh, x)], shift_,
               [&](int z, std::uint64_t predicted, int parameter) {
                 const std::uint64_t value = r[z] >> down, left = zigzag(value - predicted);
                 put_rice(bits_, left, parameter);
                 return std::pair(value, left);
               });
    });
  }

  static constexpr std::size_t kSamples = 4000;
  std::array<const std::uint64_t*, 2> counts_;
  BitWriter bits_;
  int shift_ = 0;
};

class Decoder : Coder {
 public:
  Decoder(const MeshBlock& b, std::span<const std::byte> bytes, const std::array<std::uint64_t*, 2>& counts)
      : Coder(b), bits_(bytes), counts_(counts) {}

  void run() {
    shift_ = static_cast<int>(bits_.get(8));
    if (shift_ > 64 - kNearBits) refuse("its first number is out of range");
    for (int mesh = 0; mesh < b_.meshes; ++mesh) one_mesh(mesh);
  }

 private:
  void one_mesh(int mesh) {
    std::array<Weights, 2> weights;
    for (Weights& set : weights)
      for (std::int32_t& w : set) w = static_cast<std::int16_t>(bits_.get(16));
    Surroundings around = surroundings(mesh);
    Scale scale(b_);
    for (int x = 0; x < b_.planes; ++x) {
      std::uint64_t* plane = counts_[static_cast<std::size_t>(mesh)] + row_at(x, 0);
      if (kind(mesh, x) == Plane::kEmpty) {
        std::fill_n(plane, row_at(0, 0) + static_cast<std::size_t>(b_.rows) * static_cast<std::size_t>(b_.length), 0);
        continue;
      }
      const int down = dropped(mesh, x);
      for (int y = 0; y < b_.rows; ++y) {
        std::uint64_t* out = counts_[static_cast<std::size_t>(mesh)] + row_at(x, y);
        code_row(mesh, x, y, around, scale, weights[begins(mesh, x)], shift_,
                 [&](int z, std::uint64_t predicted, int parameter) {
                   const std::uint64_t left = get_rice(bits_, parameter), value = predicted + unzigzag(left);
                   out[z] = value << down;
                   return std::pair(value, left);
                 });
        if (bits_.overrun()) refuse("it ends too early");
      }
    }
  }

  BitReader bits_;
  std::array<std::uint64_t*, 2> counts_;
  int shift_ = 0;
};

}  // namespace

std::vector<std::byte> encode(const MeshBlock& block, const std::array<const std::uint64_t*, 2>& counts) {
  return Encoder(block, counts).run();
}

void decode(const MeshBlock& block, std::span<const std::byte> bytes, const std::array<std::uint64_t*, 2>& counts) {
  Decoder(block, bytes, counts).run();
}

}  // namespace maki::sites
