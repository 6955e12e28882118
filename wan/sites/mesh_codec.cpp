#include "wan/sites/mesh_codec.hpp"

#include <zstd.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "kernels/error.hpp"
#include "wan/net/byte_codec.hpp"

namespace maki::sites {

namespace {

using Cell = std::uint64_t;  // a count over 2^shed_bits

constexpr int kLevel = 1;              // of zstd: higher levels compress no better
constexpr std::size_t kGuard = 8;      // bytes that follow the bits: the reader loads eight at once
constexpr std::size_t kMostBits = 61;  // of a number beside its byte

[[noreturn]] void refuse(const char* reason) {
  throw Error("masses of another site cannot be read", reason, "run the same version and configuration at all sites");
}

std::size_t counted(int n) { return static_cast<std::size_t>(n); }

// The cells of a block that encoder and decoder both know, and predictions of the next row from them.
class Cells {
 public:
  explicit Cells(const MeshBlock& b) : b_(b), step_(counted(b.length) + 2 * kPad) {
    first_.resize(step_ * counted(b.planes) * counted(b.rows));
    for (auto* row : {&zeros_, &shifted_, &inner_, &outer_, &sums_}) row->resize(step_);
  }

  // Fills a row: f(z, prediction) returns the cell. Sums wrap at 2^64, alike on all machines.
  template <class F>
  const Cell* fill(int mesh, int x, int y, const F& f) {
    Cell before = mesh == 0 ? sum_preceding(x, y) : sum_surrounding(x, y);
    const Cell of_before = mesh == 0 ? 20 : 0;
    Cell* const row = mesh == 0 ? at(x, y) : shifted_.data() + kPad;
    for (int z = 0; z < b_.length; ++z)
      row[z] = before = f(z, static_cast<std::int64_t>(sums_[counted(z)] + of_before * before + 16) >> 5);
    for (int i = 1; i <= kPad; ++i) {
      row[-i] = row[(2 * b_.length - i) % b_.length];
      row[b_.length - 1 + i] = row[(i - 1) % b_.length];
    }
    return row;
  }

 private:
  static constexpr int kPad = 2;  // cells on either side of a row, where the mesh goes around

  Cell* at(int x, int y) { return first_.data() + step_ * (counted(x) * counted(b_.rows) + counted(y)) + kPad; }
  // First mesh: 5/8 of the three known neighbours, -3/8 of the three across an edge, 2/8 of the one across the corner.
  // sums_ holds 32 times the prediction, without the row's preceding cell, which fill() adds. Returns the cell that
  // takes its place at the row's beginning.
  Cell sum_preceding(int x, int y) {
    const Cell* above = y > 0 ? at(x, y - 1) : x > 0 ? at(x - 1, y) : zeros_.data() + kPad;
    const Cell* behind = x > 0 ? at(x - 1, y) : above;
    const Cell* over = x > 0 && y > 0 ? at(x - 1, y - 1) : above;
    for (int z = 0; z < b_.length; ++z)
      sums_[counted(z)] = 20 * (above[z] + behind[z]) - 12 * (above[z - 1] + behind[z - 1] + over[z]) + 8 * over[z - 1];
    return above[-1];
  }
  // Shifted mesh: 7/32 of the eight surrounding cells of the first mesh, -1/32 of the 24 next to those.
  Cell sum_surrounding(int x, int y) {
    const auto near = [&](int i, int j) {
      return at(std::clamp(x + i, 0, b_.planes - 1), std::clamp(y + j, 0, b_.rows - 1)) - kPad;
    };
    const auto add = [&](std::vector<Cell>& to, const std::array<const Cell*, 4>& rows) {
      for (std::size_t i = 0; i < step_; ++i) to[i] += rows[0][i] + rows[1][i] + rows[2][i] + rows[3][i];
    };
    std::ranges::fill(inner_, 0);
    std::ranges::fill(outer_, 0);
    add(inner_, {near(0, 0), near(-1, 0), near(0, -1), near(-1, -1)});
    add(outer_, {near(1, 0), near(1, -1), near(-2, 0), near(-2, -1)});
    add(outer_, {near(0, 1), near(-1, 1), near(0, -2), near(-1, -2)});
    const Cell *in = inner_.data() + kPad, *out = outer_.data() + kPad;
    for (int z = 0; z < b_.length; ++z)
      sums_[counted(z)] = 7 * (in[z - 1] + in[z]) - (in[z - 2] + in[z + 1] + out[z - 1] + out[z]);
    return 0;
  }

  const MeshBlock& b_;
  std::size_t step_;
  std::vector<Cell> first_;                                   // mesh
  std::vector<Cell> zeros_, shifted_, inner_, outer_, sums_;  // rows
};

// Calls f(x, y, zeros) for each row that is sent; `zeros`: how many of the lowest bits are zero in all its cells.
template <class F>
void each_row(const MeshBlock& b, int mesh, const F& f) {
  for (int x = 0; x < b.planes; ++x) {
    const Plane kind = b.kind[counted(mesh)][counted(x)];
    for (int y = 0; y < b.rows && kind != Plane::kEmpty; ++y)
      f(x, y, kind == Plane::kRounded ? b.dropped_bits - b.shed_bits : 0);
  }
}

// A residual is coded as a token, 4 n + (residual >> n), and its n low bits: n = 0 below 8, else all but the three
// leading bits.
int low_bits(std::uint8_t token) { return std::max(token >> 2, 1) - 1; }

class BitWriter {
 public:
  void reserve(std::size_t numbers) { bytes_.resize(at_ + numbers * kMostBits / 8 + 2 * kGuard); }
  void put(std::uint64_t value, int count) {  // below 2^count
    if (count > 32) {
      put(value & 0xffffffff, 32);
      value >>= 32;
      count -= 32;
    }
    held_ |= value << used_;
    std::memcpy(bytes_.data() + at_, &held_, sizeof held_);
    used_ += count;
    at_ += counted(used_ >> 3);
    held_ >>= used_ & ~7;
    used_ &= 7;
  }
  std::vector<std::byte>& finish() {
    reserve(0);
    bytes_.resize(at_ + (used_ > 0 ? 1 : 0) + kGuard);
    return bytes_;
  }

 private:
  std::vector<std::byte> bytes_;
  std::size_t at_ = 0;
  std::uint64_t held_ = 0;
  int used_ = 0;  // below 8
};

class BitReader {
 public:
  explicit BitReader(const std::byte* bytes) : bytes_(bytes) {}
  std::uint64_t get(int count) {
    if (count > 32) {
      const std::uint64_t low = get(32);
      return low | get(count - 32) << 32;
    }
    std::uint64_t next;
    std::memcpy(&next, bytes_ + (at_ >> 3), sizeof next);
    next >>= at_ & 7;
    at_ += counted(count);
    return next & ((std::uint64_t{1} << count) - 1);
  }

 private:
  const std::byte* bytes_;
  std::size_t at_ = 0;  // bit
};

}  // namespace

// Format: length of the compressed tokens in bytes; the tokens, one zstd frame for each mesh; the low bits.
std::vector<std::byte> encode(const MeshBlock& b, const std::array<const std::uint64_t*, 2>& counts) {
  Cells cells(b);
  BitWriter bits;
  std::vector<std::byte> all(sizeof(std::uint64_t));
  std::vector<std::uint8_t> tokens(b.cells());
  for (int mesh = 0; mesh < b.meshes; ++mesh) {
    std::uint8_t* token = tokens.data();
    each_row(b, mesh, [&](int x, int y, int zeros) {
      const std::uint64_t* from =
          counts[counted(mesh)] + counted(b.length) * (counted(x) * counted(b.rows) + counted(y));
      const int down = b.shed_bits + zeros;
      const std::uint64_t half = zeros > 0 ? std::uint64_t{1} << (down - 1) : 0;
      bits.reserve(counted(b.length));
      cells.fill(mesh, x, y, [&](int z, std::int64_t predicted) {
        const Cell cell = (from[z] + half) >> down;
        const auto difference = static_cast<std::int64_t>(cell - static_cast<Cell>(predicted >> zeros));
        const auto residual =
            static_cast<std::uint64_t>(difference) << 1 ^ static_cast<std::uint64_t>(difference >> 63);
        const int low = std::max(static_cast<int>(std::bit_width(residual)), 3) - 3;
        *token++ = static_cast<std::uint8_t>(4 * counted(low) + (residual >> low));
        bits.put(residual & ((std::uint64_t{1} << low) - 1), low);
        return cell << zeros;
      });
    });
    const auto count = static_cast<std::size_t>(token - tokens.data()), begin = all.size();
    all.resize(begin + ZSTD_compressBound(count));
    const std::size_t used = ZSTD_compress(all.data() + begin, all.size() - begin, tokens.data(), count, kLevel);
    if (ZSTD_isError(used)) throw Error("masses cannot be coded", ZSTD_getErrorName(used));
    all.resize(begin + used);
  }
  const std::uint64_t size = all.size() - sizeof size;
  std::memcpy(all.data(), &size, sizeof size);
  all.insert(all.end(), bits.finish().begin(), bits.finish().end());
  return all;
}

void decode(const MeshBlock& b, std::span<const std::byte> bytes, const RowOf& row_of) {
  std::uint64_t size = 0, bit_count = 0;
  if (bytes.size() < sizeof size) refuse("it ends too early");
  std::memcpy(&size, bytes.data(), sizeof size);
  if (size > bytes.size() - sizeof size) refuse("it ends too early");
  std::size_t count = 0;
  for (int mesh = 0; mesh < b.meshes; ++mesh) each_row(b, mesh, [&](int, int, int) { count += counted(b.length); });
  std::vector<std::uint8_t> tokens(count);
  // The output is bounded by the room for the tokens, whatever the frame claims.
  if (ZSTD_decompress(tokens.data(), count, bytes.data() + sizeof size, size) != count)
    refuse("it is damaged, or of another number of cells");
  for (const std::uint8_t token : tokens) bit_count += counted(low_bits(token));
  bytes = bytes.subspan(sizeof size + size);
  if (bytes.size() != (bit_count + 7) / 8 + kGuard) refuse("it does not end where its cells do");

  Cells cells(b);
  BitReader bits(bytes.data());
  const std::uint8_t* token = tokens.data();
  for (int mesh = 0; mesh < b.meshes; ++mesh) {
    each_row(b, mesh, [&](int x, int y, int zeros) {
      const Cell* const row = cells.fill(mesh, x, y, [&](int, std::int64_t predicted) {
        const int following = low_bits(*token);
        const std::uint64_t residual = counted(*token++ - 4 * following) << following | bits.get(following);
        return (static_cast<Cell>(predicted >> zeros) + (residual >> 1 ^ (0 - (residual & 1)))) << zeros;
      });
      if (std::uint64_t* const to = row_of(mesh, x, y))
        for (int z = 0; z < b.length; ++z) to[z] += row[z] << b.shed_bits;
    });
  }
}

namespace {

constexpr std::uint64_t kMagic = 0x33485345'4d494b41;

// The meaning of the counts, equal at all sites.
struct Head {
  std::uint64_t magic = kMagic;
  std::int32_t cells = 0, meshes = 0, bits = 0, dropped_bits = 0;
  std::uint32_t equal_units = 0, pieces = 0, chunks = 0;
  std::int32_t shed_bits = 0;
  double units_per_mass = 0;
};

struct ChunkHead {
  std::int32_t first_plane = 0, first_row = 0, planes = 0, rows = 0;
  std::uint64_t bytes = 0;
};

Head head_of(const MeshHeader& header) {
  Head head;
  head.cells = header.cells;
  head.meshes = header.meshes;
  head.bits = header.unit.bits;
  head.shed_bits = header.unit.shed_bits;
  head.dropped_bits = header.unit.dropped_bits;
  head.equal_units = header.unit.equal_units;
  head.units_per_mass = header.unit.units_per_mass;
  return head;
}

MeshChunk read_chunk(wan::ByteReader& reader, const MeshHeader& header) {
  const auto head = std::bit_cast<ChunkHead>(reader.array<sizeof(ChunkHead)>());
  const int m = header.cells;
  const auto within = [m](std::int32_t first, std::int32_t count) {
    return first >= 0 && count > 0 && first < m && count <= m - first;
  };
  if (!within(head.first_plane, head.planes) || !within(head.first_row, head.rows))
    refuse("a part lies beyond the mesh");
  if (head.planes > chunk_planes(head.rows, m)) refuse("a part has too many planes");
  MeshChunk chunk{head.first_plane, head.first_row, {}, {}, {}};
  chunk.block = {head.planes, head.rows, m, header.meshes, header.unit.dropped_bits, header.unit.shed_bits, {}};
  for (int mesh = 0; mesh < header.meshes; ++mesh) {
    for (std::byte kind : reader.bytes(static_cast<std::uint64_t>(head.planes))) {
      if (std::to_integer<int>(kind) > static_cast<int>(Plane::kExact)) refuse("a plane is of no known kind");
      chunk.block.kind[static_cast<std::size_t>(mesh)].push_back(static_cast<Plane>(kind));
    }
  }
  const auto is_empty = [](Plane kind) { return kind == Plane::kEmpty; };
  if (std::ranges::all_of(chunk.block.kind[0], is_empty) && std::ranges::all_of(chunk.block.kind[1], is_empty))
    refuse("a chunk is empty");
  chunk.coded = reader.bytes(head.bytes);
  return chunk;
}

MeshPart read_part(const MeshHeader& header, std::span<const std::byte> message) {
  wan::ByteReader reader(message, "a part", "");
  auto head = std::bit_cast<Head>(reader.array<sizeof(Head)>());
  MeshPart part{head.pieces, {}};
  const std::uint32_t chunks = head.chunks;
  head.pieces = head.chunks = 0;
  const Head mine = head_of(header);
  if (std::memcmp(&head, &mine, sizeof head) != 0) refuse("they are of another mesh, or of another unit of mass");
  if (part.pieces == 0 || part.pieces > static_cast<std::uint32_t>(header.cells)) refuse("it is in too many pieces");
  // Chunks of a part are added at the same time, so they may not share planes.
  int next_plane = 0;
  for (std::uint32_t i = 0; i < chunks; ++i) {
    const MeshChunk& chunk = part.chunks.emplace_back(read_chunk(reader, header));
    if (chunk.first_plane < next_plane) refuse("its parts are not in order");
    next_plane = chunk.first_plane + chunk.block.planes;
  }
  if (reader.left() > 0) refuse("a part is longer than its chunks");
  return part;
}

}  // namespace

int chunk_planes(int rows, int length) {
  constexpr std::int64_t kCells = std::int64_t{1} << 20, kMost = 16;
  return static_cast<int>(std::clamp<std::int64_t>(kCells / (std::int64_t{rows} * length), 1, kMost));
}

Message pack(const MeshHeader& header, std::uint32_t pieces, std::span<const MeshChunk> chunks) {
  Head head = head_of(header);
  head.pieces = pieces;
  head.chunks = static_cast<std::uint32_t>(chunks.size());
  wan::ByteWriter message;
  message.put_bytes(std::as_bytes(std::span(&head, 1)));
  for (const MeshChunk& chunk : chunks) {
    const ChunkHead front{chunk.first_plane, chunk.first_row, chunk.block.planes, chunk.block.rows, chunk.bytes.size()};
    message.put_bytes(std::as_bytes(std::span(&front, 1)));
    for (int mesh = 0; mesh < header.meshes; ++mesh)
      for (Plane kind : chunk.block.kind[static_cast<std::size_t>(mesh)]) message.put(kind);
    message.put_bytes(chunk.bytes);
  }
  return message.take();
}

MeshPart unpack(const MeshHeader& header, std::span<const std::byte> message) {
  return translate_errors([&] { return read_part(header, message); },
                          [](const std::string&) -> Error { refuse("a part ends too early"); });
}

}  // namespace maki::sites
