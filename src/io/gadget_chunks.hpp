// Datasets in filtered chunks, whose rows lie on many ranks.
#pragma once

#include <hdf5.h>

#include <cstdint>
#include <vector>

#include "src/io/gadget_write.hpp"

namespace maki::gadget {

// Division of a dataset's chunks among ranks: a chunk is filtered by the rank that has its first row.
class Chunks {
 public:
  explicit Chunks(const Part& part) : begins_(part.begins), rows_(chunk_rows(part.rows())) {}

  std::uint64_t rows() const { return rows_; }  // of a chunk
  std::uint64_t count() const { return (begins_.back() + rows_ - 1) / rows_; }
  std::uint64_t first(int rank) const { return (begin(rank) + rows_ - 1) / rows_; }
  std::uint64_t last(int rank) const;
  int owner(std::uint64_t chunk) const;
  std::uint64_t begin(int rank) const { return begins_[static_cast<std::size_t>(rank)]; }
  std::uint64_t end(int rank) const;  // one past the last row that the rank filters

 private:
  std::vector<std::uint64_t> begins_;
  std::uint64_t rows_;
};

// A dataset on its way: filter_own() on each rank, then hand_over() until it returns true.
class ChunkedRows {
 public:
  // Rows that belong to another rank's chunk go there. Collective. `part` has to outlive this.
  ChunkedRows(const Part& part, RowSource source, const Storage& storage);

  // Filters this rank's chunks into memory. By any thread: calls neither HDF5 nor MPI.
  void filter_own();
  // The next chunks of all ranks go to `dataset`, which rank 0 has open. Returns whether they were the last. Collective; throws
  // Error, the same on all ranks.
  bool hand_over(hid_t dataset);

 private:
  using Bytes = std::vector<unsigned char>;
  Bytes rows_of(std::uint64_t chunk) const;

  const Part& part_;
  RowSource source_;
  Storage storage_;
  Chunks chunks_;
  Bytes tail_;                   // rows of later ranks that this rank's last chunk needs
  std::vector<Bytes> filtered_;  // this rank's chunks
  std::uint64_t next_ = 0;       // to be handed over
};

}  // namespace maki::gadget
