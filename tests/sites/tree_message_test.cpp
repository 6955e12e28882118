#include "wan/sites/site_trees.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>

namespace maki::sites {
namespace {

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

}  // namespace
}  // namespace maki::sites
