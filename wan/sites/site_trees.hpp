// Exchange of local essential trees between sites, as by LocalEssentialTree between ranks
// (host/let/local_essential_tree.hpp), but for slabs in place of the ranks' boxes, and with one message each way and no
// agreement beforehand.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "host/let/blocks.hpp"
#include "host/let/forest.hpp"
#include "host/let/local_essential_tree.hpp"
#include "kernels/device/stream.hpp"
#include "kernels/tree/octree.hpp"
#include "kernels/tree/walk.hpp"
#include "wan/sites/ring.hpp"
#include "wan/sites/sites.hpp"
#include "wan/sites/slabs.hpp"

namespace maki::sites {

// The region that holds a site's particles: its slab widened by `drift` (sides) on both faces, over the whole box in y
// and z. Distances to it are those to the nearer face, also across the edge of the box. In isolated sets (not
// `periodic`) particles are in the middle half of the box.
WalkTarget slab_target(const Slabs& slabs, int site, bool periodic, float drift);

// Slabs with room for particles that have left theirs: each is widened by `drift` (sides) on both faces.
struct WidenedSlabs {
  const Slabs& slabs;
  float drift = 0;
};

class SiteTrees {
 public:
  // Collective over the site's ranks. `options.compress`: alike at all sites.
  SiteTrees(Sites& sites, const LetOptions& options);

  // As LocalEssentialTree::send_whole_cells(), for the neighbours' slabs.
  void send_whole_cells(int level) { whole_cells_ = level; }

  // Selects parts of each rank's tree for the slabs of the partners and sends them; every partner gets a message, maybe
  // an empty one. Partners are the neighbours with a cutoff, all other sites without. `number` rises from call to call,
  // alike at all sites. Otherwise as LocalEssentialTree::rebuild().
  void rebuild(const Stream& stream, Octree& tree, const SourceParticle* particles, const WalkOptions& walk,
               const WidenedSlabs& regions, std::uint64_t number);
  // Sends the payload alone, for the selection of the last rebuild().
  void update(const Stream& stream, Octree& tree, const SourceParticle* particles, std::uint64_t number);
  void finish(const Stream& stream);  // waits for all messages; the forest may be used by work queued on `stream`

  // The forest and its particles as in LocalEssentialTree: blocks from all ranks of all partner sites, the same on
  // every rank of this site, in the order of the sites in the ring and then of their ranks.
  Octree& forest() { return in_.forest.tree; }
  const DeviceBuffer<SourceParticle>& particles() const { return in_.forest.particles; }

 private:
  void select(const Stream& stream, Octree& tree, const WalkOptions& walk, const WidenedSlabs& regions);
  void send(const Stream& stream, Octree& tree, const SourceParticle* particles, bool shapes, std::uint64_t number);
  Message message_to(const Stream& stream, std::size_t partner);
  void receive_blocks(const Stream& stream);
  void take_block(const Stream& stream, std::size_t partner, std::size_t rank, std::size_t b, const Message& part);
  void receive_payload(const Stream& stream);
  [[noreturn]] void refuse(std::size_t partner, const std::string& came) const;

  static constexpr std::size_t kNone = ~std::size_t{0};

  Sites& sites_;
  const LetOptions options_;
  std::vector<int> partners_;                 // sites that get trees, in the order of the ring
  std::vector<std::size_t> block_of_;         // by partner: index of the block in out_; kNone: this rank sends nothing
  std::vector<std::vector<bool>> has_block_;  // by partner and its ranks: whether a block was received
  LetSending out_;
  LetReceiving in_;
  int whole_cells_ = 0;
  bool under_way_ = false, with_shapes_ = false;
  std::uint64_t number_ = 0;
};

// ---- one block of a tree (host/let/blocks.hpp) as a message --------------------------------------------------------

struct BlockHeader {
  std::uint64_t particles = 0, multipoles = 0, cells = 0;
  std::uint32_t compressed = 0;
  std::uint32_t mass = 0;  // the bits of a mass that all particles have; 0 where masses follow
  std::uint64_t shape_bytes = 0;
  BlockCounts counts() const { return {particles, multipoles, cells}; }
};

// A leaf of up to 244 particles, a divided cell (245 to 252) and a closed one have one byte, a larger leaf five.
void append_shapes(std::span<const std::uint32_t> shapes, Message& to);
// Decodes `count` shapes, which take all of `from`; nullopt where they do not.
std::optional<std::vector<std::uint32_t>> read_shapes(std::span<const std::byte> from, std::uint64_t count);

// Completes a message that holds room for the header and then the payload. `rest`: the bytes that follow the payload in
// the block, which are shapes and, in compressed blocks, masses.
void finish_block_message(const BlockCounts& counts, bool compress, std::span<const std::byte> rest, Message& message);

// The header; nullopt where the message cannot be that of a block with this setting.
std::optional<BlockHeader> read_block_header(const Message& message, bool compress);
// The bytes that follow the payload in the block; nullopt where the length of the message is wrong.
std::optional<std::vector<std::byte>> read_rest_of_block(const Message& message, const BlockHeader& header);
// Whether `rest` begins with the shapes of a tree with the given counts and without empty leaves. Forests are built
// from them without further checks, and walked with a stack that is as deep as a tree can be.
bool is_tree(std::span<const std::byte> rest, const BlockCounts& counts);

}  // namespace maki::sites
