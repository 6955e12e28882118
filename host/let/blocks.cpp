#include "host/let/blocks.hpp"

namespace maki {
namespace {

constexpr std::uint64_t kBlockAlignment = 16;

}  // namespace

Blocks::Blocks(const Stream& stream, const std::vector<BlockCounts>& counts, bool compress)
    : compress_(compress), counts_(counts), begin_(1, 0) {
  const std::size_t entries = counts.size() + 1;
  std::vector<std::uint64_t> starts(4 * entries, 0);
  for (std::size_t b = 0; b < counts.size(); ++b) {
    total_.particles += counts[b].particles;
    total_.multipoles += counts[b].multipoles;
    total_.cells += counts[b].cells;
    begin_.push_back((begin_.back() + message_bytes(b) + kBlockAlignment - 1) / kBlockAlignment * kBlockAlignment);
    const std::uint64_t next[4] = {total_.particles, total_.multipoles, total_.cells, begin_.back()};
    for (std::size_t k = 0; k < 4; ++k) starts[k * entries + b + 1] = next[k];
  }
  starts_.upload(stream, starts);
}

std::uint64_t Blocks::payload_bytes(std::size_t block) const { return BlockSections(counts_[block], compress_).shapes; }

std::uint64_t Blocks::message_bytes(std::size_t block) const { return BlockSections(counts_[block], compress_).end; }

BlocksView Blocks::view() const {
  const std::size_t entries = counts_.size() + 1;
  const std::uint64_t* at = starts_.data();
  const auto n = static_cast<std::uint32_t>(counts_.size());
  return {at, at + entries, at + 2 * entries, at + 3 * entries, n, compress_};
}

}  // namespace maki
