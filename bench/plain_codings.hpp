// Codings of masses that take little code, for comparison with the mesh codec: integers, their differences or what is left
// after the codec's prediction, with bytes or bits transposed, by zstd. The same calls as encode() and decode() of
// wan/sites/mesh_codec.hpp, for blocks whose planes are all of one kind.
#pragma once

#include <zstd.h>

#include <cmath>
#include <cstring>

#include "kernels/device/error.hpp"
#include "kernels/mesh/mass_unit.hpp"
#include "wan/sites/each_isa.hpp"
#include "wan/sites/mesh_codec.hpp"
#include "wan/sites/mesh_surroundings.hpp"

namespace maki::bench {

using Integers = std::vector<std::uint32_t>;

struct PlainCoding {
  enum class Of { kCounts, kDifferences, kPrediction };
  enum class Order { kBytes, kBits };
  const char* name;
  Of of;
  Order order;
  int level;  // zstd's
};

inline constexpr PlainCoding kPlainCodings[] = {
    {"bytes, zstd 1", PlainCoding::Of::kCounts, PlainCoding::Order::kBytes, 1},
    {"bytes, zstd 3", PlainCoding::Of::kCounts, PlainCoding::Order::kBytes, 3},
    {"bits, zstd 1", PlainCoding::Of::kCounts, PlainCoding::Order::kBits, 1},
    {"bits, zstd 3", PlainCoding::Of::kCounts, PlainCoding::Order::kBits, 3},
    {"bits, zstd 9", PlainCoding::Of::kCounts, PlainCoding::Order::kBits, 9},
    {"delta, bytes, zstd 1", PlainCoding::Of::kDifferences, PlainCoding::Order::kBytes, 1},
    {"delta, bits, zstd 1", PlainCoding::Of::kDifferences, PlainCoding::Order::kBits, 1},
    {"delta, bits, zstd 3", PlainCoding::Of::kDifferences, PlainCoding::Order::kBits, 3},
    {"predicted, bytes, zstd 1", PlainCoding::Of::kPrediction, PlainCoding::Order::kBytes, 1},
    {"predicted, bytes, zstd 3", PlainCoding::Of::kPrediction, PlainCoding::Order::kBytes, 3},
    {"predicted, bits, zstd 1", PlainCoding::Of::kPrediction, PlainCoding::Order::kBits, 1},
    {"predicted, bits, zstd 3", PlainCoding::Of::kPrediction, PlainCoding::Order::kBits, 3},
};

// The bytes of n numbers of `Number`, first the lowest of all: transposed, and back.
template <class Number>
MAKI_INLINE void split_bytes(const Number* numbers, std::size_t n, std::uint8_t* __restrict to, std::size_t stride) {
  for (std::size_t b = 0; b < sizeof(Number); ++b)
    for (std::size_t i = 0; i < n; ++i) to[b * stride + i] = static_cast<std::uint8_t>(numbers[i] >> (8 * b));
}
template <class Number>
MAKI_INLINE void join_bytes(const std::uint8_t* from, std::size_t stride, std::size_t n, Number* __restrict numbers) {
  for (std::size_t i = 0; i < n; ++i) numbers[i] = from[i];
  for (std::size_t b = 1; b < sizeof(Number); ++b)
    for (std::size_t i = 0; i < n; ++i) numbers[i] |= static_cast<Number>(from[b * stride + i]) << (8 * b);
}

// Bit j of byte i to bit i of byte j (Hacker's Delight, 7-3); its own inverse.
MAKI_INLINE std::uint64_t transposed(std::uint64_t x) {
  const auto swap = [&](int shift, std::uint64_t mask) {
    const std::uint64_t t = (x ^ (x >> shift)) & mask;
    x ^= t ^ (t << shift);
  };
  swap(7, 0x00aa00aa00aa00aa);
  swap(14, 0x0000cccc0000cccc);
  swap(28, 0x00000000f0f0f0f0);
  return x;
}

constexpr std::size_t kTile = 1024;  // integers whose bytes stay in the nearest cache

// n a multiple of 8.
MAKI_EACH_ISA inline void transpose(PlainCoding::Order order, const std::uint32_t* from, std::size_t n,
                                    std::uint8_t* to) {
  std::array<std::uint8_t, 4 * kTile> bytes;
  std::array<std::uint64_t, kTile / 8> groups;
  for (std::size_t first = 0; first < n; first += kTile) {
    const std::size_t tile = std::min(kTile, n - first);
    if (order == PlainCoding::Order::kBytes) {
      split_bytes(from + first, tile, to + first, n);
      continue;
    }
    split_bytes(from + first, tile, bytes.data(), kTile);
    for (std::size_t b = 0; b < 4; ++b) {
      std::memcpy(groups.data(), bytes.data() + b * kTile, tile);
      for (std::uint64_t& g : groups) g = transposed(g);
      split_bytes(groups.data(), tile / 8, to + b * n + first / 8, n / 8);
    }
  }
}
MAKI_EACH_ISA inline void transpose_back(PlainCoding::Order order, const std::uint8_t* from, std::size_t n,
                                         std::uint32_t* to) {
  std::array<std::uint8_t, 4 * kTile> bytes;
  std::array<std::uint64_t, kTile / 8> groups;
  for (std::size_t first = 0; first < n; first += kTile) {
    const std::size_t tile = std::min(kTile, n - first);
    if (order == PlainCoding::Order::kBytes) {
      join_bytes(from + first, n, tile, to + first);
      continue;
    }
    for (std::size_t b = 0; b < 4; ++b) {
      join_bytes(from + b * n + first / 8, n / 8, tile / 8, groups.data());
      for (std::uint64_t& g : groups) g = transposed(g);
      std::memcpy(bytes.data() + b * kTile, groups.data(), tile);
    }
    join_bytes(bytes.data(), kTile, tile, to + first);
  }
}

// Streams of integers in bytes, transposed each by itself.
inline std::vector<std::byte> squeeze(const PlainCoding& coding, std::vector<Integers>& streams) {
  static ZSTD_CCtx* const context = ZSTD_createCCtx();
  std::vector<std::uint8_t> plain;
  std::size_t size = 0;
  for (Integers& s : streams) s.resize((s.size() + 7) / 8 * 8), size += 4 * s.size();
  plain.resize(size);
  std::size_t at = 0;
  for (const Integers& s : streams) transpose(coding.order, s.data(), s.size(), plain.data() + at), at += 4 * s.size();
  std::vector<std::byte> bytes(ZSTD_compressBound(size));
  const std::size_t used = ZSTD_compressCCtx(context, bytes.data(), bytes.size(), plain.data(), size, coding.level);
  if (ZSTD_isError(used)) throw Error("masses cannot be coded", ZSTD_getErrorName(used));
  bytes.resize(used);
  return bytes;
}
inline void expand(const PlainCoding& coding, std::span<const std::byte> bytes, std::vector<Integers>& streams) {
  static ZSTD_DCtx* const context = ZSTD_createDCtx();
  std::size_t size = 0, at = 0;
  for (Integers& s : streams) s.resize((s.size() + 7) / 8 * 8), size += 4 * s.size();
  std::vector<std::uint8_t> plain(size);
  if (ZSTD_decompressDCtx(context, plain.data(), size, bytes.data(), bytes.size()) != size)
    throw Error("masses came back changed", "they are not what zstd was given");
  for (Integers& s : streams) transpose_back(coding.order, plain.data() + at, s.size(), s.data()), at += 4 * s.size();
}

// What the codec predicts, of a block whose planes are all of one kind: a stream for each mesh and parity of cells.
class PlainPrediction {
 public:
  PlainPrediction(const sites::MeshBlock& block, const std::array<int, 2>& kept, int unit, std::uint64_t rounding)
      : b_(block), half_(block.length / 2), unit_(unit), up_(unit - block.shed_bits), rounding_(rounding) {
    for (int mesh = 0; mesh < b_.meshes; ++mesh) near_.emplace_back(b_.planes, kept[counted(mesh)], b_.rows, b_.length);
    for (int mesh = 0; mesh < b_.meshes; ++mesh)
      around_.emplace_back(near_[counted(mesh)], mesh ? near_.data() : nullptr);
    predicted_.resize(counted(half_));
    left.assign(2 * counted(b_.meshes), Integers(b_.cells() / 2));
  }

  void predict(const std::array<const std::uint64_t*, 2>& counts) {
    for (int mesh = 0; mesh < b_.meshes; ++mesh) {
      std::uint64_t any = 0;
      each_row([&](int x, int y) {
        any |= sites::split_row(counts[counted(mesh)] + 2 * place(x, y), half_, rounding_, unit_, up_,
                                row(mesh, x, y, 0), row(mesh, x, y, 1));
        for (int odd = 0; odd < 2; ++odd) near_[counted(mesh)].close(x, y, odd);
      });
      if (any << up_ >> sites::kNearBits) throw Error("masses cannot be coded", "a cell is too full");
      for (int first = 0; first < 2; ++first)
        for (int odd = 0; odd < 2; ++odd) fit(mesh, first, odd);
      each_row([&](int x, int y) {
        for (int odd = 0; odd < 2; ++odd) {
          look(mesh, x, y, odd);
          sites::residuals(row(mesh, x, y, odd), up_, predicted_.data(), half_, left_of(mesh, x, y, odd));
        }
      });
    }
  }
  void restore(const sites::RowOf& row_of) {
    for (int i = 0; i < b_.planes + b_.meshes - 1; ++i)
      for (int mesh = 0; mesh < b_.meshes; ++mesh)
        if (const int x = i - mesh; x >= 0 && x < b_.planes)
          for (int y = 0; y < b_.rows; ++y) restore(mesh, x, y, row_of(mesh, x, y));
  }

  std::vector<Integers> left;
  std::array<std::array<std::int16_t, sites::Features::kMost>, 8> weights{};

 private:
  static std::size_t counted(int n) { return static_cast<std::size_t>(n); }
  std::size_t place(int x, int y) const { return (counted(x) * counted(b_.rows) + counted(y)) * counted(half_); }
  std::int32_t* row(int mesh, int x, int y, int odd) { return near_[counted(mesh)].row(x, y, odd); }
  std::uint32_t* left_of(int mesh, int x, int y, int odd) { return left[counted(2 * mesh + odd)].data() + place(x, y); }
  auto& weights_of(int mesh, bool first, int odd) { return weights[counted(4 * mesh + 2 * first + odd)]; }
  template <class F>
  void each_row(const F& f) const {
    for (int x = 0; x < b_.planes; ++x)
      for (int y = 0; y < b_.rows; ++y) f(x, y);
  }
  void look(int mesh, int x, int y, int odd) {
    sites::Weights w{};
    std::ranges::copy(weights_of(mesh, x == 0, odd), w.begin());
    sites::predict(around_[counted(mesh)].of(x, y, odd), w.data(), std::ldexp(1.0, -sites::kWeightBits - up_), half_,
                   predicted_.data());
  }
  // As the codec: some thousand cells, all over the planes.
  void fit(int mesh, bool first, int odd) {
    const int stretch = std::min(half_, sites::WeightFit::kSegment), rows = b_.rows * (first ? 1 : b_.planes - 1);
    const int count = std::min(rows, std::min(2048, rows * half_ / 8) / stretch + 1);
    sites::WeightFit found;
    std::uint32_t random = 1;
    for (int i = 0; i < count; ++i) {
      random = random * 1664525u + 1013904223u;
      const int at = (i * rows + static_cast<int>(random >> 16) % rows) / count + (first ? 0 : b_.rows);
      const int from = static_cast<int>(random >> 8) % (half_ - stretch + 1), x = at / b_.rows, y = at % b_.rows;
      if (odd) around_[counted(mesh)].of(x, y, 0);
      found.add(around_[counted(mesh)].of(x, y, odd), row(mesh, x, y, odd), from, stretch);
    }
    std::ranges::copy(found.weights(), weights_of(mesh, first, odd).begin());
  }
  void restore(int mesh, int x, int y, std::uint64_t* to) {
    for (int odd = 0; odd < 2; ++odd) {
      look(mesh, x, y, odd);
      sites::restore(left_of(mesh, x, y, odd), up_, predicted_.data(), half_, row(mesh, x, y, odd));
      near_[counted(mesh)].close(x, y, odd);
    }
    if (to) sites::join_row(row(mesh, x, y, 0), row(mesh, x, y, 1), half_, up_, unit_, to);
  }

  const sites::MeshBlock& b_;
  int half_, unit_, up_;
  std::uint64_t rounding_;
  std::vector<sites::NearCells> near_;
  std::vector<sites::Surroundings> around_;
  std::vector<std::int32_t> predicted_;
};

class PlainCoder {
 public:
  PlainCoder(const PlainCoding& coding, const sites::MeshBlock& block) : coding_(coding), b_(block) {
    const bool rounded = b_.kind[0].at(0) == sites::Plane::kRounded;
    unit_ = rounded ? b_.dropped_bits : b_.shed_bits;
    rounding_ = rounded ? MassUnit::half_of(unit_) : 0;
  }

  std::vector<std::byte> encode(const std::array<const std::uint64_t*, 2>& counts) const {
    if (coding_.of == PlainCoding::Of::kPrediction) {
      PlainPrediction prediction(b_, {b_.planes, b_.planes}, unit_, rounding_);
      prediction.predict(counts);
      std::vector<std::byte> bytes = squeeze(coding_, prediction.left);
      const auto weights = std::as_bytes(std::span(prediction.weights));
      bytes.insert(bytes.end(), weights.begin(), weights.end());
      return bytes;
    }
    std::vector<Integers> streams(static_cast<std::size_t>(b_.meshes), Integers(b_.cells()));
    for (std::size_t mesh = 0; mesh < streams.size(); ++mesh) integers(counts[mesh], streams[mesh]);
    return squeeze(coding_, streams);
  }
  void decode(std::span<const std::byte> bytes, const sites::RowOf& row_of) const {
    if (coding_.of == PlainCoding::Of::kPrediction) {
      PlainPrediction prediction(b_, {4, 3}, unit_, rounding_);
      const std::size_t size = bytes.size() - sizeof prediction.weights;
      std::memcpy(&prediction.weights, bytes.data() + size, sizeof prediction.weights);
      expand(coding_, bytes.first(size), prediction.left);
      return prediction.restore(row_of);
    }
    std::vector<Integers> streams(static_cast<std::size_t>(b_.meshes), Integers(b_.cells()));
    expand(coding_, bytes, streams);
    for (int mesh = 0; mesh < b_.meshes; ++mesh) {
      const std::uint32_t* from = streams[static_cast<std::size_t>(mesh)].data();
      std::uint32_t sum = 0;
      for (int row = 0; row < b_.planes * b_.rows; ++row, from += b_.length) {
        std::uint64_t* const to = row_of(mesh, row / b_.rows, row % b_.rows);
        for (int i = 0; i < b_.length; ++i) {
          sum = coding_.of == PlainCoding::Of::kDifferences ? sum + (from[i] >> 1 ^ (0 - (from[i] & 1))) : from[i];
          to[i] += static_cast<std::uint64_t>(sum) << unit_;
        }
      }
    }
  }

 private:
  void integers(const std::uint64_t* counts, Integers& to) const {
    std::uint32_t before = 0;
    std::uint64_t any = 0;
    for (std::size_t i = 0; i < to.size(); ++i) {
      const std::uint64_t count = (counts[i] + rounding_) >> unit_;
      any |= count;
      to[i] = static_cast<std::uint32_t>(count);
    }
    if (any >> 31) throw Error("masses cannot be coded", "a cell is too full");
    if (coding_.of == PlainCoding::Of::kCounts) return;
    for (std::uint32_t& value : to) {
      const auto difference = static_cast<std::int32_t>(value - before);
      before = value;
      value = static_cast<std::uint32_t>(difference) << 1 ^ static_cast<std::uint32_t>(difference >> 31);
    }
  }

  const PlainCoding& coding_;
  const sites::MeshBlock& b_;
  int unit_ = 0;
  std::uint64_t rounding_ = 0;
};

}  // namespace maki::bench
