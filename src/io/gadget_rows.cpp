// Rows of all ranks written into one file.
#include <algorithm>

#include "host/comm/communicator.hpp"
#include "src/io/gadget.hpp"
#include "src/io/gadget_write.hpp"

namespace maki::gadget {

namespace {

// Writes slab number `slab` of this rank's rows, if there is one.
void write_slab(PositionedFile& file, const Part& part, const RowSource& source, std::uint64_t address,
                std::uint64_t slab) {
  const std::uint64_t first = slab * kSlabRows;
  if (first >= part.count()) return;
  const std::uint64_t rows = std::min<std::uint64_t>(kSlabRows, part.count() - first);
  std::vector<unsigned char> bytes(rows * source.row_bytes());
  source.fill(first, rows, bytes.data());
  file.write_at(address + (part.begin() + first) * source.row_bytes(), bytes.data(), bytes.size());
}

std::uint64_t slabs_of(std::uint64_t rows) { return (rows + kSlabRows - 1) / kSlabRows; }

}  // namespace

void write_in_place(PositionedFile& file, const Part& part, const RowSource& source, std::uint64_t address) {
  for (std::uint64_t slab = 0; slab < slabs_of(part.count()); ++slab) write_slab(file, part, source, address, slab);
}

void write_together(PositionedFile& file, const Part& part, const RowSource& source, std::uint64_t address) {
  std::uint64_t most = 0;
  for (std::size_t r = 1; r < part.begins.size(); ++r) most = std::max(most, part.begins[r] - part.begins[r - 1]);
  for (std::uint64_t slab = 0; slab < slabs_of(most); ++slab)
    all_succeed(part.ranks, [&] { write_slab(file, part, source, address, slab); });
}

}  // namespace maki::gadget
