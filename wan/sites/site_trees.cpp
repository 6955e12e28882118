#include "wan/sites/site_trees.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "host/let/forest.hpp"
#include "host/let/local_essential_tree.hpp"
#include "kernels/device/stream.hpp"
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

struct SiteTrees::Parts {
  Sites& sites;
  const LetOptions options;

  std::vector<int> partners;                 // sites that get trees, in the order of the ring
  std::vector<std::size_t> block_of;         // by partner: index of the block in `out`; kNone: this rank sends nothing
  std::vector<std::vector<bool>> has_block;  // by partner and its ranks: whether a block was received
  LetSending out;
  LetReceiving in;
  int whole_cells = 0;

  bool under_way = false, with_shapes = false;
  std::uint64_t number = 0;
  static constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

  Parts(Sites& s, const LetOptions& o) : sites(s), options(o) {
    in.forest.tree.geometry.has_error_lengths = o.error_lengths;
  }

  void choose_partners(bool cutoff);
  void select(const Stream& stream, Octree& tree, const WalkOptions& walk, const WidenedSlabs& regions);
  void send(const Stream& stream, Octree& tree, const SourceParticle* particles, bool shapes, std::uint64_t n);
  Message message_to(const Stream& stream, std::size_t partner);
  void receive_blocks(const Stream& stream);
  void take_block(const Stream& stream, std::size_t partner, std::size_t rank, std::size_t b, const Message& part);
  void receive_payload(const Stream& stream);
  [[noreturn]] void refuse(std::size_t partner, const std::string& came) const;
};

void SiteTrees::Parts::choose_partners(bool cutoff) {
  partners.clear();
  for (int site = 0; site < sites.count(); ++site)
    if (site != sites.me() && (!cutoff || site == sites.left() || site == sites.right())) partners.push_back(site);
}

void SiteTrees::Parts::select(const Stream& stream, Octree& tree, const WalkOptions& walk,
                              const WidenedSlabs& regions) {
  const bool cutoff = walk.r_cut > 0;
  choose_partners(cutoff);
  std::vector<WalkTarget> targets;
  for (const int site : partners) {
    const WalkTarget slab = slab_target(regions.slabs, site, cutoff, whole_cells > 0 ? 0 : regions.drift);
    targets.push_back(whole_cells > 0 ? grow_to_whole_cells(slab, walk.r_cut, whole_cells) : slab);
  }
  const auto found = select_essential(stream, tree, let_rule(walk, options, whole_cells), targets, out.selection);
  std::vector<BlockCounts> sent;
  block_of.assign(partners.size(), kNone);
  for (std::size_t p = 0; p < partners.size(); ++p) {
    if (found[p].cells == 0) continue;
    block_of[p] = sent.size();
    sent.push_back(found[p]);
  }
  out.blocks = Blocks(stream, sent, options.compress);
}

// Copies the message to a partner to the host; one at a time is held there.
Message SiteTrees::Parts::message_to(const Stream& stream, std::size_t partner) {
  const std::size_t b = block_of[partner];
  if (b == kNone) return {};
  const std::byte* block = out.packed.data() + out.blocks.begin(b);
  const std::size_t payload = out.blocks.payload_bytes(b), before = with_shapes ? sizeof(BlockHeader) : 0;
  Message message(before + payload);
  copy_to_host(stream, message.data() + before, block, payload);
  if (!with_shapes) return message;
  std::vector<std::byte> rest(out.blocks.message_bytes(b) - payload);
  copy_to_host(stream, rest.data(), block + payload, rest.size());
  finish_block_message(out.blocks.counts(b), options.compress, rest, message);
  return message;
}

// Sends to the furthest sites first: their messages take longest.
void SiteTrees::Parts::send(const Stream& stream, Octree& tree, const SourceParticle* particles, bool shapes,
                            std::uint64_t n) {
  with_shapes = shapes;
  number = n;
  out.pack(stream, tree, particles, shapes);
  under_way = true;
  const auto links = [&](std::size_t p) {
    const int ahead = (partners[p] - sites.me() + sites.count()) % sites.count();
    return std::min(ahead, sites.count() - ahead);
  };
  for (int far = sites.count() / 2; far > 0; --far)
    for (std::size_t p = 0; p < partners.size(); ++p)
      if (links(p) == far) sites.send_parts(partners[p], Phase::kTrees, number, message_to(stream, p));
}

std::string of_rank(std::size_t rank, const Message& part) {
  return "of rank " + std::to_string(rank) + " " + std::to_string(part.size()) + " bytes";
}

void SiteTrees::Parts::refuse(std::size_t partner, const std::string& came) const {
  throw Error("what came of the tree of site " + sites.name(partners[partner]) + " is not what was expected", came,
              "run the same version with the same settings at all sites");
}

// Receives all messages first: the counts of all blocks determine their places.
void SiteTrees::Parts::receive_blocks(const Stream& stream) {
  std::vector<std::vector<Message>> parts;
  for (const int site : partners) parts.push_back(sites.receive_parts(site, Phase::kTrees, number));
  std::vector<BlockCounts> came;
  has_block.clear();
  for (std::size_t p = 0; p < parts.size(); ++p) {
    has_block.emplace_back();
    for (std::size_t r = 0; r < parts[p].size(); ++r) {
      has_block[p].push_back(!parts[p][r].empty());
      if (!has_block[p][r]) continue;
      const auto header = read_block_header(parts[p][r], options.compress);
      if (!header) refuse(p, of_rank(r, parts[p][r]));
      came.push_back(header->counts());
    }
  }
  if (came.size() > kMostRoots)
    throw Error("trees came of " + std::to_string(came.size()) + " ranks of other sites", "", "start fewer");
  in.expect(stream, came, options.compress);
  std::size_t b = 0;
  for (std::size_t p = 0; p < parts.size(); ++p)
    for (std::size_t r = 0; r < parts[p].size(); ++r) {
      if (!has_block[p][r]) continue;
      take_block(stream, p, r, b++, parts[p][r]);
      parts[p][r] = Message();
    }
}

void SiteTrees::Parts::take_block(const Stream& stream, std::size_t partner, std::size_t rank, std::size_t b,
                                  const Message& part) {
  const auto rest = read_rest_of_block(part, *read_block_header(part, options.compress));
  if (!rest || !is_tree(*rest, in.blocks.counts(b))) refuse(partner, of_rank(rank, part));
  std::byte* block = in.packed.data() + in.blocks.begin(b);
  const std::size_t payload = in.blocks.payload_bytes(b);
  copy_to_device(stream, block, part.data() + sizeof(BlockHeader), payload);
  copy_to_device(stream, block + payload, rest->data(), rest->size());
}

void SiteTrees::Parts::receive_payload(const Stream& stream) {
  std::size_t b = 0;
  for (std::size_t p = 0; p < partners.size(); ++p) {
    const std::vector<Message> parts = sites.receive_parts(partners[p], Phase::kTrees, number);
    if (parts.size() != has_block[p].size())
      refuse(p, std::to_string(parts.size()) + " parts, not " + std::to_string(has_block[p].size()));
    for (std::size_t r = 0; r < parts.size(); ++r) {
      const std::uint64_t expected = has_block[p][r] ? in.blocks.payload_bytes(b) : 0;
      if (parts[r].size() != expected) refuse(p, of_rank(r, parts[r]));
      if (has_block[p][r]) copy_to_device(stream, in.packed.data() + in.blocks.begin(b++), parts[r].data(), expected);
    }
  }
}

SiteTrees::SiteTrees(Sites& sites, const LetOptions& options) : parts_(std::make_unique<Parts>(sites, options)) {}
SiteTrees::~SiteTrees() = default;

void SiteTrees::send_whole_cells(int level) { parts_->whole_cells = level; }

void SiteTrees::rebuild(const Stream& stream, Octree& tree, const SourceParticle* particles, const WalkOptions& walk,
                        const WidenedSlabs& regions, std::uint64_t number) {
  if (parts_->under_way) throw std::logic_error("trees for other sites are still on their way");
  parts_->select(stream, tree, walk, regions);
  parts_->send(stream, tree, particles, true, number);
}

void SiteTrees::update(const Stream& stream, Octree& tree, const SourceParticle* particles, std::uint64_t number) {
  if (parts_->under_way) throw std::logic_error("trees for other sites are still on their way");
  parts_->send(stream, tree, particles, false, number);
}

void SiteTrees::finish(const Stream& stream) {
  Parts& p = *parts_;
  if (!p.under_way) return;
  if (p.with_shapes)
    p.receive_blocks(stream);
  else
    p.receive_payload(stream);
  p.under_way = false;
  p.in.unpack(stream, p.with_shapes, p.whole_cells > 0);
}

Octree& SiteTrees::forest() { return parts_->in.forest.tree; }
const DeviceBuffer<SourceParticle>& SiteTrees::particles() const { return parts_->in.forest.particles; }

}  // namespace maki::sites
