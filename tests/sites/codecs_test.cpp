// Meshes and trees as they travel between sites.
#include "wan/sites/mesh_codec.hpp"

#include <gtest/gtest.h>
#include <zstd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <random>

#include "kernels/error.hpp"
#include "wan/sites/site_trees.hpp"

namespace maki::sites {
namespace {

using Counts = std::array<std::vector<std::uint64_t>, 2>;

MeshBlock block_of(int planes, int rows, int length, int meshes, int dropped, std::mt19937& random) {
  MeshBlock block{planes, rows, length, meshes, dropped, dropped / 2, {}};
  for (auto& kinds : block.kind)
    for (int x = 0; x < planes; ++x) kinds.push_back(static_cast<Plane>(random() % 3));
  return block;
}

// 0: anything of 62 bits, 1: waves with noise, 2: mostly nothing, 3: the ends of what 64 bits hold, where predictions and
// differences go around.
Counts values_for(const MeshBlock& block, int style, std::mt19937& random) {
  Counts counts;
  const std::size_t plane = block.cells() / static_cast<std::size_t>(block.planes);
  std::mt19937_64 wide(random());
  for (std::size_t mesh = 0; mesh < static_cast<std::size_t>(block.meshes); ++mesh) {
    for (std::size_t i = 0; i < block.cells(); ++i) {
      std::uint64_t value = wide() >> 2;
      if (style == 1)
        value = static_cast<std::uint64_t>(1e9 * (2 + std::sin(0.3 * static_cast<double>(i % 16)))) + random() % 1000;
      if (style == 2 && random() % 20) value = 0;
      if (style == 3) value = std::array{~std::uint64_t{0}, std::uint64_t{0}, std::uint64_t{1} << 63}[i * i % 3];
      const Plane kind = block.kind[mesh][i / plane];
      if (kind == Plane::kEmpty) value = 0;
      const int bits = kind == Plane::kRounded ? block.dropped_bits : block.shed_bits;
      value = value >> bits << bits;
      counts[mesh].push_back(value);
    }
  }
  return counts;
}

Counts room_for(const MeshBlock& block) {
  Counts counts;
  for (std::size_t mesh = 0; mesh < static_cast<std::size_t>(block.meshes); ++mesh)
    counts[mesh].assign(block.cells(), 0);
  return counts;
}

std::vector<std::byte> coded(const MeshBlock& block, const Counts& counts) {
  return encode(block, {counts[0].data(), counts[1].data()});
}

// Reads from bytes that end where the array ends, so that the sanitizers see what is read beyond.
void add_decoded(const MeshBlock& block, std::span<const std::byte> bytes, Counts& to) {
  const auto exact = std::make_unique<std::byte[]>(bytes.size());
  std::copy(bytes.begin(), bytes.end(), exact.get());
  decode(block, {exact.get(), bytes.size()}, [&](int mesh, int x, int y) {
    EXPECT_TRUE(mesh < block.meshes && x >= 0 && x < block.planes && y >= 0 && y < block.rows);
    return to[static_cast<std::size_t>(mesh)].data() +
           static_cast<std::size_t>(x * block.rows + y) * static_cast<std::size_t>(block.length);
  });
}

TEST(MeshCodec, ComesBackAsItWas) {
  std::mt19937 random(1);
  const int shapes[][3] = {{1, 1, 8}, {1, 5, 8}, {3, 1, 16}, {5, 7, 10}, {16, 12, 16}, {2, 3, 2}, {2, 2, 1}, {2, 3, 5}};
  for (const auto& shape : shapes)
    for (int meshes : {1, 2})
      for (int dropped : {0, 13, 48})
        for (int style : {0, 1, 2, 3}) {
          const MeshBlock block = block_of(shape[0], shape[1], shape[2], meshes, dropped, random);
          const Counts counts = values_for(block, style, random);
          Counts back = room_for(block);
          add_decoded(block, coded(block, counts), back);
          EXPECT_TRUE(back == counts) << shape[0] << " " << shape[1] << " " << shape[2] << " " << meshes << " "
                                      << dropped << " " << style;
        }
}

// Values that follow from those around take few bits.
TEST(MeshCodec, SmoothMeshesTakeLittle) {
  std::mt19937 random(2);
  MeshBlock block = block_of(8, 32, 32, 2, 0, random);
  for (auto& kinds : block.kind) kinds.assign(8, Plane::kExact);
  Counts counts = room_for(block);
  const auto at = [&](double x, double y, double z) {
    return static_cast<std::uint64_t>(1e12 * (3 + std::cos(0.196 * x) + std::sin(0.196 * y) * std::cos(0.393 * z)));
  };
  for (int mesh = 0; mesh < 2; ++mesh)
    for (int i = 0; i < 8 * 32 * 32; ++i)
      counts[static_cast<std::size_t>(mesh)][static_cast<std::size_t>(i)] =
          at(i / 1024 - 0.5 * mesh, i / 32 % 32 - 0.5 * mesh, i % 32 - 0.5 * mesh);
  EXPECT_LT(coded(block, counts).size(), 9 * block.cells());
}

// Whether it says so or not, a frame of zstd is not unpacked beyond the block's cells.
TEST(MeshCodec, BombsAreRefused) {
  MeshBlock block{1, 2, 8, 1, 0, 0, {}};
  block.kind[0].assign(1, Plane::kExact);
  const std::vector<char> zeros(std::size_t{1} << 20);
  for (const int says : {0, 1}) {
    for (const std::size_t count : {std::size_t{0}, std::size_t{15}, std::size_t{16}, std::size_t{17}, zeros.size()}) {
      std::vector<std::byte> bytes(8 + ZSTD_compressBound(count));
      ZSTD_CCtx* const context = ZSTD_createCCtx();
      ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, says);
      const std::uint64_t size = ZSTD_compress2(context, bytes.data() + 8, bytes.size() - 8, zeros.data(), count);
      ZSTD_freeCCtx(context);
      std::memcpy(bytes.data(), &size, sizeof size);
      bytes.resize(8 + size + 8);
      Counts back = room_for(block);
      if (count == 16)
        EXPECT_NO_THROW(add_decoded(block, bytes, back));
      else
        EXPECT_THROW(add_decoded(block, bytes, back), Error) << count;
    }
  }
}

TEST(MeshCodec, OtherSizesAreRefused) {
  std::mt19937 random(5);
  MeshBlock block = block_of(2, 3, 8, 2, 0, random);
  for (auto& kinds : block.kind) kinds.assign(2, Plane::kExact);
  const auto bytes = coded(block, values_for(block, 0, random));
  Counts back = room_for(block);
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_THROW(add_decoded(block, std::span(bytes).first(size), back), Error) << size;
  auto longer = bytes;
  longer.resize(bytes.size() + 1);
  EXPECT_THROW(add_decoded(block, longer, back), Error);
  for (const std::uint64_t size : {~std::uint64_t{0}, std::uint64_t{bytes.size()}, std::uint64_t{0}}) {
    auto wrong = bytes;
    std::memcpy(wrong.data(), &size, sizeof size);
    EXPECT_THROW(add_decoded(block, wrong, back), Error) << size;
  }
  MeshBlock other = block;
  other.kind[1][0] = Plane::kEmpty;
  EXPECT_THROW(add_decoded(other, bytes, back), Error);
  for (const Counts& mesh = back; const auto& cells : mesh)
    EXPECT_TRUE(std::ranges::all_of(cells, [](std::uint64_t c) { return c == 0; }));  // before anything is added
}

// Whatever comes: an error, or some counts, and nothing beyond the arrays (the sanitizers see that).
TEST(MeshCodec, HostileBytesDoNoHarm) {
  std::mt19937 random(3);
  for (int turn = 0; turn < 1000; ++turn) {
    const MeshBlock block = block_of(1 + static_cast<int>(random() % 5), 1 + static_cast<int>(random() % 6),
                                     1 + static_cast<int>(random() % 18), 1 + static_cast<int>(random() % 2),
                                     static_cast<int>(random() % 49), random);
    const Counts counts = values_for(block, static_cast<int>(random() % 3), random);
    auto bytes = coded(block, counts);
    if (turn % 5 == 0) bytes.resize(random() % (bytes.size() + 1));
    if (turn % 5 == 1)
      for (std::byte& b : bytes) b = static_cast<std::byte>(random());
    if (turn % 5 == 2)
      for (int i = 0; i < 8; ++i) bytes[random() % bytes.size()] ^= static_cast<std::byte>(1u << random() % 8);
    if (turn % 5 >= 3)  // what comes first is good
      for (std::size_t i = 8 + random() % bytes.size(); i < bytes.size(); ++i)
        bytes[i] = static_cast<std::byte>(turn % 5 == 3 ? random() : 255);
    Counts back = room_for(block);
    try {
      add_decoded(block, bytes, back);
    } catch (const Error&) {
    }
  }
}

TEST(MeshCodec, HostilePartsAreRefusedOrRead) {
  std::mt19937 random(4);
  MeshHeader header{16, 2, {}};
  header.unit.dropped_bits = 7;
  header.unit.shed_bits = 3;
  std::vector<MeshChunk> chunks;
  for (int x : {0, 5}) {
    MeshChunk chunk{x, 2, block_of(4, 9, 16, 2, 7, random), {}, {}};
    const Counts counts = values_for(chunk.block, 1, random);
    chunk.bytes = coded(chunk.block, counts);
    chunks.push_back(std::move(chunk));
  }
  const Message message = pack(header, 3, chunks);
  const MeshPart part = unpack(header, message);
  ASSERT_EQ(part.chunks.size(), 2u);
  EXPECT_EQ(part.pieces, 3u);
  EXPECT_EQ(part.chunks[1].block.kind, chunks[1].block.kind);
  EXPECT_TRUE(std::equal(part.chunks[1].coded.begin(), part.chunks[1].coded.end(), chunks[1].bytes.begin(),
                         chunks[1].bytes.end()));
  // More than a thread takes memory for.
  chunks[1].block.planes = chunk_planes(9, 64) + 1;
  for (auto& kinds : chunks[1].block.kind)
    kinds.resize(static_cast<std::size_t>(chunks[1].block.planes), Plane::kExact);
  header.cells = 64;
  EXPECT_THROW(unpack(header, pack(header, 3, chunks)), Error);
  header.cells = 16;
  for (int turn = 0; turn < 2000; ++turn) {
    Message hostile = message;
    if (turn % 2) hostile.resize(random() % message.size());
    for (int i = 0; i < 3 && !hostile.empty(); ++i)
      hostile[random() % std::min<std::size_t>(hostile.size(), turn % 4 < 2 ? 160 : 1 << 20)] ^=
          static_cast<std::byte>(1u << random() % 8);
    try {
      for (const MeshChunk& chunk : unpack(header, hostile).chunks) {
        EXPECT_LE(chunk.first_plane + chunk.block.planes, 16);
        EXPECT_LE(chunk.first_row + chunk.block.rows, 16);
      }
    } catch (const Error&) {
    }
  }
}

std::vector<std::byte> bytes_of(const std::vector<std::uint32_t>& words) {
  const auto bytes = std::as_bytes(std::span(words));
  return {bytes.begin(), bytes.end()};
}

std::vector<std::uint32_t> all_shapes() {
  std::vector<std::uint32_t> shapes{kClosedCell, 1000, kDividedCell - 1, 244, 245, 246, 254, 255, 256};
  for (std::uint32_t children = 1; children <= 8; ++children) shapes.push_back(kDividedCell + children);
  for (std::uint32_t n = 0; n < 300; ++n) shapes.push_back(n);
  return shapes;
}

TEST(TreeMessage, ShapesComeBack) {
  const auto shapes = all_shapes();
  Message message;
  append_shapes(shapes, message);
  EXPECT_LT(message.size(), 2 * shapes.size());
  EXPECT_EQ(read_shapes(message, shapes.size()), shapes);
}

TEST(TreeMessage, ShapesThatDoNotFitAreNoticed) {
  Message message;
  append_shapes(all_shapes(), message);
  const std::size_t n = all_shapes().size();
  EXPECT_FALSE(read_shapes(message, n - 1));
  EXPECT_FALSE(read_shapes(message, n + 1));
  EXPECT_FALSE(read_shapes(std::span(message).first(message.size() - 1), n));
  EXPECT_FALSE(read_shapes(Message{std::byte{254}, std::byte{1}}, 1));
  EXPECT_FALSE(read_shapes(Message{std::byte{255}}, 1));
  EXPECT_FALSE(read_shapes({}, UINT64_MAX));
}

struct Block {
  BlockCounts counts;
  std::vector<std::byte> payload, rest;

  Block(bool compress, bool equal_masses, BlockCounts n = {0, 40, 0}) : counts(n) {
    const auto shapes = all_shapes();
    counts.cells = shapes.size();
    counts.particles = 1000;
    const BlockSections sections(counts, compress);
    std::mt19937 random(1);
    payload.resize(sections.shapes);
    for (std::byte& b : payload) b = static_cast<std::byte>(random());
    rest = bytes_of(shapes);
    while (rest.size() < sections.end - sections.shapes) {
      const float mass = equal_masses ? 0.25f : static_cast<float>(random());
      const auto bytes = std::as_bytes(std::span(&mass, 1));
      rest.insert(rest.end(), bytes.begin(), bytes.end());
    }
  }
  Message message(bool compress) const {
    Message m(sizeof(BlockHeader) + payload.size());
    std::copy(payload.begin(), payload.end(), m.data() + sizeof(BlockHeader));
    finish_block_message(counts, compress, rest, m);
    return m;
  }
};

TEST(TreeMessage, BlocksComeBack) {
  for (const bool compress : {false, true})
    for (const bool equal : {false, true})
      for (const std::uint64_t multipoles : {40, 0}) {  // without any, a block has no section of masses
        const Block block(compress, equal, {0, multipoles, 0});
        const Message message = block.message(compress);
        const auto header = read_block_header(message, compress);
        ASSERT_TRUE(header);
        EXPECT_EQ(header->counts().particles, block.counts.particles);
        EXPECT_EQ(header->counts().multipoles, block.counts.multipoles);
        EXPECT_EQ(header->counts().cells, block.counts.cells);
        EXPECT_EQ(std::memcmp(message.data() + sizeof *header, block.payload.data(), block.payload.size()), 0);
        EXPECT_EQ(read_rest_of_block(message, *header), block.rest);
        const std::size_t plain = sizeof *header + block.payload.size() + block.rest.size();
        const std::size_t saved = 2 * block.counts.cells + (equal && multipoles > 0 ? 4 * block.counts.particles : 0);
        EXPECT_LE(message.size(), compress ? plain - saved : plain);
      }
}

TEST(TreeMessage, OtherSettingsAndLengthsAreNoticed) {
  const Message message = Block(true, true).message(true);
  EXPECT_FALSE(read_block_header(message, false));
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{10}, message.size() - 1, message.size() + 1}) {
    Message other = message;
    other.resize(bytes);
    EXPECT_FALSE(read_block_header(other, true)) << bytes;
  }
  Message other = message;
  BlockHeader header = *read_block_header(message, true);
  header.particles = UINT64_MAX / 16;
  std::memcpy(other.data(), &header, sizeof header);
  EXPECT_FALSE(read_block_header(other, true));
  header = *read_block_header(message, true);
  --header.cells;
  std::memcpy(other.data(), &header, sizeof header);
  ASSERT_TRUE(read_block_header(other, true));
  EXPECT_FALSE(read_rest_of_block(other, header));
}

// The shapes of trees, and of what would be read beyond the arrays of a forest.
TEST(TreeMessage, OnlyWholeTreesAreTrees) {
  const auto fits = [](const std::vector<std::uint32_t>& shapes, std::uint64_t particles, std::uint64_t multipoles) {
    return is_tree(bytes_of(shapes), {particles, multipoles, shapes.size()});
  };
  EXPECT_TRUE(fits({kDividedCell + 2, 1, 3}, 4, 1));
  EXPECT_TRUE(fits({kDividedCell + 2, kClosedCell, 1}, 1, 2));
  EXPECT_FALSE(fits({kDividedCell + 2, 1, 0}, 1, 1));  // an empty leaf refers to a particle after the last
  EXPECT_FALSE(fits({0}, 0, 0));
  EXPECT_FALSE(fits({kDividedCell + 2, 1, 3}, 5, 1));
  EXPECT_FALSE(fits({kDividedCell + 2, 1, 3}, 4, 2));
  EXPECT_FALSE(fits({kDividedCell + 3, 1, 3}, 4, 1));
  EXPECT_FALSE(fits({kDividedCell, 1, 3}, 4, 1));
  EXPECT_FALSE(fits({1, 3}, 4, 0));
}

}  // namespace
}  // namespace maki::sites
