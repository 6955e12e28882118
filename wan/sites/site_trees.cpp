#include "wan/sites/site_trees.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>

#include "kernels/error.hpp"

namespace maki::sites {

// ---- one block of a tree as a message ------------------------------------------------------------------------------

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
      if (shape == 0) return false;
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

// ---- trees between sites -------------------------------------------------------------------------------------------

namespace {

constexpr std::size_t kMostRoots = std::size_t{1} << 18;  // bounds the depth of the tree above all roots

// Centre and half width of the interval between fixed-point ends `from` and `to` (up to 2^32), widened by `drift`
// (sides) on both sides and rounded up.
void set_interval(std::uint64_t from, std::uint64_t to, float drift, std::uint32_t& centre, float& half) {
  const std::uint64_t middle = from + (to - from) / 2;
  centre = static_cast<std::uint32_t>(middle);
  const double reach = static_cast<double>(to - middle) + static_cast<double>(drift) * kSideToUnits;
  half = std::nextafter(static_cast<float>(reach), std::numeric_limits<float>::max());
}

}  // namespace

WalkTarget slab_target(const Slabs& slabs, int site, bool periodic, float drift) {
  const std::uint64_t low = periodic ? 0 : kUnitsOfSide / 4, high = periodic ? kUnitsOfSide : kUnitsOfSide / 4 * 3;
  WalkTarget target{};
  set_interval(std::clamp(std::uint64_t{slabs.begin(site)}, low, high), std::clamp(slabs.end(site), low, high), drift,
               target.x, target.hx);
  set_interval(low, high, drift, target.y, target.hy);
  set_interval(low, high, drift, target.z, target.hz);
  return target;
}

void SiteTrees::select(const Stream& stream, Octree& tree, const WalkOptions& walk, const WidenedSlabs& regions) {
  const bool cutoff = walk.r_cut > 0;
  partners_ = sites_.partners(!cutoff);
  std::vector<WalkTarget> targets;
  for (const int site : partners_) {
    const WalkTarget slab = slab_target(regions.slabs, site, cutoff, whole_cells_ > 0 ? 0 : regions.drift);
    targets.push_back(whole_cells_ > 0 ? grow_to_whole_cells(slab, walk.r_cut, whole_cells_) : slab);
  }
  const auto found = select_essential(stream, tree, let_rule(walk, options_, whole_cells_), targets, out_.selection);
  std::vector<BlockCounts> sent;
  block_of_.assign(partners_.size(), kNone);
  for (std::size_t p = 0; p < partners_.size(); ++p) {
    if (found[p].cells == 0) continue;
    block_of_[p] = sent.size();
    sent.push_back(found[p]);
  }
  out_.blocks = Blocks(stream, sent, options_.compress);
}

// Copies the message to a partner to the host; one at a time is held there.
Message SiteTrees::message_to(const Stream& stream, std::size_t partner) {
  const std::size_t b = block_of_[partner];
  if (b == kNone) return {};
  const std::byte* block = out_.packed.data() + out_.blocks.begin(b);
  const std::size_t payload = out_.blocks.payload_bytes(b), before = with_shapes_ ? sizeof(BlockHeader) : 0;
  Message message(before + payload);
  copy_to_host(stream, message.data() + before, block, payload);
  if (!with_shapes_) return message;
  std::vector<std::byte> rest(out_.blocks.message_bytes(b) - payload);
  copy_to_host(stream, rest.data(), block + payload, rest.size());
  finish_block_message(out_.blocks.counts(b), options_.compress, rest, message);
  return message;
}

// Sends to the furthest sites first: their messages take longest.
void SiteTrees::send(const Stream& stream, Octree& tree, const SourceParticle* particles, bool shapes,
                     std::uint64_t number) {
  with_shapes_ = shapes;
  number_ = number;
  out_.pack(stream, tree, particles, shapes);
  under_way_ = true;
  const auto links = [&](std::size_t p) {
    const int ahead = (partners_[p] - sites_.me() + sites_.count()) % sites_.count();
    return std::min(ahead, sites_.count() - ahead);
  };
  for (int far = sites_.count() / 2; far > 0; --far)
    for (std::size_t p = 0; p < partners_.size(); ++p)
      if (links(p) == far) sites_.send_parts(partners_[p], Phase::kTrees, number_, message_to(stream, p));
}

std::string of_rank(std::size_t rank, const Message& part) {
  return "of rank " + std::to_string(rank) + " " + std::to_string(part.size()) + " bytes";
}

void SiteTrees::refuse(std::size_t partner, const std::string& came) const {
  throw Error("what came of the tree of site " + sites_.name(partners_[partner]) + " is not what was expected", came,
              "run the same version with the same settings at all sites");
}

// Receives all messages first: the counts of all blocks determine their places.
void SiteTrees::receive_blocks(const Stream& stream) {
  std::vector<std::vector<Message>> parts;
  for (const int site : partners_) parts.push_back(sites_.receive_parts(site, Phase::kTrees, number_));
  std::vector<BlockCounts> came;
  has_block_.clear();
  for (std::size_t p = 0; p < parts.size(); ++p) {
    has_block_.emplace_back();
    for (std::size_t r = 0; r < parts[p].size(); ++r) {
      has_block_[p].push_back(!parts[p][r].empty());
      if (!has_block_[p][r]) continue;
      const auto header = read_block_header(parts[p][r], options_.compress);
      if (!header) refuse(p, of_rank(r, parts[p][r]));
      came.push_back(header->counts());
    }
  }
  if (came.size() > kMostRoots)
    throw Error("trees came of " + std::to_string(came.size()) + " ranks of other sites", "", "start fewer");
  in_.expect(stream, came, options_.compress);
  std::size_t b = 0;
  for (std::size_t p = 0; p < parts.size(); ++p)
    for (std::size_t r = 0; r < parts[p].size(); ++r) {
      if (!has_block_[p][r]) continue;
      take_block(stream, p, r, b++, parts[p][r]);
      parts[p][r] = Message();
    }
}

void SiteTrees::take_block(const Stream& stream, std::size_t partner, std::size_t rank, std::size_t b,
                           const Message& part) {
  const auto rest = read_rest_of_block(part, *read_block_header(part, options_.compress));
  if (!rest || !is_tree(*rest, in_.blocks.counts(b))) refuse(partner, of_rank(rank, part));
  std::byte* block = in_.packed.data() + in_.blocks.begin(b);
  const std::size_t payload = in_.blocks.payload_bytes(b);
  copy_to_device(stream, block, part.data() + sizeof(BlockHeader), payload);
  copy_to_device(stream, block + payload, rest->data(), rest->size());
}

void SiteTrees::receive_payload(const Stream& stream) {
  std::size_t b = 0;
  for (std::size_t p = 0; p < partners_.size(); ++p) {
    const std::vector<Message> parts = sites_.receive_parts(partners_[p], Phase::kTrees, number_);
    if (parts.size() != has_block_[p].size())
      refuse(p, std::to_string(parts.size()) + " parts, not " + std::to_string(has_block_[p].size()));
    for (std::size_t r = 0; r < parts.size(); ++r) {
      const std::uint64_t expected = has_block_[p][r] ? in_.blocks.payload_bytes(b) : 0;
      if (parts[r].size() != expected) refuse(p, of_rank(r, parts[r]));
      if (has_block_[p][r])
        copy_to_device(stream, in_.packed.data() + in_.blocks.begin(b++), parts[r].data(), expected);
    }
  }
}

SiteTrees::SiteTrees(Sites& sites, const LetOptions& options) : sites_(sites), options_(options) {
  in_.forest.tree.geometry.has_error_lengths = options.error_lengths;
}

void SiteTrees::rebuild(const Stream& stream, Octree& tree, const SourceParticle* particles, const WalkOptions& walk,
                        const WidenedSlabs& regions, std::uint64_t number) {
  if (under_way_) throw std::logic_error("trees for other sites are still on their way");
  select(stream, tree, walk, regions);
  send(stream, tree, particles, true, number);
}

void SiteTrees::update(const Stream& stream, Octree& tree, const SourceParticle* particles, std::uint64_t number) {
  if (under_way_) throw std::logic_error("trees for other sites are still on their way");
  send(stream, tree, particles, false, number);
}

void SiteTrees::finish(const Stream& stream) {
  if (!under_way_) return;
  if (with_shapes_)
    receive_blocks(stream);
  else
    receive_payload(stream);
  under_way_ = false;
  in_.unpack(stream, with_shapes_, whole_cells_ > 0);
}

}  // namespace maki::sites
