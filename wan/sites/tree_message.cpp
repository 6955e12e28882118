#include "wan/sites/tree_message.hpp"

#include <algorithm>
#include <cstring>

namespace maki::sites {
namespace {

// One-byte codes of shapes: below kDivided the particles of a leaf, then divided cells with 1 to 8 children.
constexpr std::uint32_t kDivided = 245, kClosed = kDivided + 8, kLargeLeaf = kClosed + 1;

void append(std::span<const std::byte> bytes, Message& to) { to.insert(to.end(), bytes.begin(), bytes.end()); }

std::uint32_t word_at(std::span<const std::byte> bytes, std::size_t k) {
  std::uint32_t word;
  std::memcpy(&word, bytes.data() + k * sizeof word, sizeof word);
  return word;
}

// The word that all words equal; 0 where they differ.
std::uint32_t common_word(std::span<const std::byte> words) {
  const std::size_t n = words.size() / sizeof(std::uint32_t);
  if (n == 0) return 0;
  const bool alike = std::equal(words.begin() + sizeof(std::uint32_t), words.end(), words.begin());
  return alike ? word_at(words, 0) : 0;
}

}  // namespace

void append_shapes(std::span<const std::uint32_t> shapes, Message& to) {
  to.reserve(to.size() + shapes.size());
  for (const std::uint32_t shape : shapes) {
    const std::uint32_t code = shape == kClosedCell ? kClosed
                               : is_divided(shape)  ? kDivided + (shape - kDividedCell) - 1
                               : shape < kDivided   ? shape
                                                    : kLargeLeaf;
    to.push_back(static_cast<std::byte>(code));
    if (code == kLargeLeaf) append(std::as_bytes(std::span(&shape, 1)), to);
  }
}

std::optional<std::vector<std::uint32_t>> read_shapes(std::span<const std::byte> from, std::uint64_t count) {
  if (count > from.size()) return {};
  std::vector<std::uint32_t> shapes;
  shapes.reserve(count);
  std::size_t at = 0;
  while (at < from.size() && shapes.size() < count) {
    const auto code = std::to_integer<std::uint32_t>(from[at++]);
    if (code == kLargeLeaf) {
      if (from.size() - at < sizeof(std::uint32_t)) return {};
      shapes.push_back(word_at(from.subspan(at), 0));
      at += sizeof(std::uint32_t);
    } else if (code > kLargeLeaf) {
      return {};
    } else {
      shapes.push_back(code == kClosed ? kClosedCell : code >= kDivided ? kDividedCell + code - kDivided + 1 : code);
    }
  }
  if (at != from.size() || shapes.size() != count) return {};
  return shapes;
}

void finish_block_message(const BlockCounts& counts, bool compress, std::span<const std::byte> rest, Message& message) {
  BlockHeader header{counts.particles, counts.multipoles, counts.cells, compress, 0, 0};
  const auto shapes = rest.first(counts.cells * sizeof(std::uint32_t)), masses = rest.subspan(shapes.size());
  const std::size_t before = message.size();
  if (compress) {
    std::vector<std::uint32_t> words(counts.cells);
    if (!words.empty()) std::memcpy(words.data(), shapes.data(), shapes.size());
    append_shapes(words, message);
    header.mass = common_word(masses);
  } else {
    append(shapes, message);
  }
  header.shape_bytes = message.size() - before;
  if (header.mass == 0) append(masses, message);
  std::memcpy(message.data(), &header, sizeof header);
}

std::optional<BlockHeader> read_block_header(const Message& message, bool compress) {
  BlockHeader header;
  if (message.size() < sizeof header) return {};
  std::memcpy(&header, message.data(), sizeof header);
  constexpr std::uint64_t kMost = UINT32_MAX;
  if (header.compressed != static_cast<std::uint32_t>(compress) || header.particles > kMost ||
      header.multipoles > kMost || header.cells > kMost || header.shape_bytes > message.size())
    return {};
  const BlockSections sections(header.counts(), compress);
  if (compress ? header.cells > header.shape_bytes : header.cells * sizeof(std::uint32_t) != header.shape_bytes)
    return {};
  const std::uint64_t masses = header.mass == 0 ? sections.end - sections.masses : 0;
  if (message.size() != sizeof header + sections.shapes + header.shape_bytes + masses) return {};
  return header;
}

std::optional<std::vector<std::byte>> read_rest_of_block(const Message& message, const BlockHeader& header) {
  const BlockSections sections(header.counts(), header.compressed != 0);
  const auto coded = std::span(message).subspan(sizeof header + sections.shapes, header.shape_bytes);
  const auto masses = std::span(message).subspan(sizeof header + sections.shapes + header.shape_bytes);
  std::vector<std::byte> rest;
  rest.reserve(sections.end - sections.shapes);
  if (header.compressed != 0) {
    const auto shapes = read_shapes(coded, header.cells);
    if (!shapes) return {};
    append(std::as_bytes(std::span(*shapes)), rest);
  } else {
    append(coded, rest);
  }
  if (header.mass == 0) {
    append(masses, rest);
  } else {
    while (rest.size() < sections.end - sections.shapes) append(std::as_bytes(std::span(&header.mass, 1)), rest);
  }
  if (rest.size() != sections.end - sections.shapes) return {};
  return rest;
}

bool is_tree(std::span<const std::byte> rest, const BlockCounts& counts) {
  std::uint64_t known = 1, level_end = 1, particles = 0, multipoles = 0;
  int level = 0;
  for (std::uint64_t i = 0; i < counts.cells; ++i) {
    const std::uint32_t shape = word_at(rest, i);
    if (i == level_end) {
      if (known == i || ++level > kMortonLevels) return false;
      level_end = known;
    }
    if (is_leaf(shape)) {
      particles += shape;
      continue;
    }
    ++multipoles;
    if (is_divided(shape) && shape - kDividedCell <= 8)
      known += shape - kDividedCell;
    else if (shape != kClosedCell)
      return false;
  }
  return known == counts.cells && particles == counts.particles && multipoles == counts.multipoles;
}

}  // namespace maki::sites
