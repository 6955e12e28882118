// Writing of one HDF5 file of a snapshot, and of its datasets in filtered chunks, with rows on many ranks.
#pragma once

#include <hdf5.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "src/io/gadget_write.hpp"

namespace maki {

// IEEE's 16-bit floating-point numbers, little-endian, below 65520.
hid_t hdf5_half_type();
std::uint16_t half_of(float value);  // the nearest

// A chunk of `count` numbers of `width` bytes as HDF5's filters would store it. Does not call HDF5.
std::vector<unsigned char> filtered(const void* numbers, std::size_t count, std::size_t width, const Storage& storage);

}  // namespace maki

namespace maki::gadget {

// Division of a dataset's chunks among ranks: the rank with a chunk's first row owns the chunk and filters all of it.
// A rank holds the rows [begin_row, next rank's begin_row) and owns the chunks [begin_chunk, end_chunk).
class Chunks {
 public:
  explicit Chunks(const Part& part) : begins_(part.begins), rows_(chunk_rows(part.rows())) {}

  std::uint64_t rows() const { return rows_; }  // of a chunk
  std::uint64_t count() const { return (begins_.back() + rows_ - 1) / rows_; }
  std::uint64_t begin_chunk(int rank) const { return (begin_row(rank) + rows_ - 1) / rows_; }
  std::uint64_t end_chunk(int rank) const;
  int owner(std::uint64_t chunk) const;
  std::uint64_t begin_row(int rank) const { return begins_[static_cast<std::size_t>(rank)]; }
  std::uint64_t end_row(int rank) const;  // of the rank's chunks

 private:
  std::vector<std::uint64_t> begins_;
  std::uint64_t rows_;
};

// Writes a dataset: filter_own() on each rank, then hand_over() until it returns true.
class ChunkedRows {
 public:
  // Sends rows of other ranks' chunks to these ranks. Collective. `part` has to outlive this.
  ChunkedRows(const Part& part, RowSource source, const Storage& storage);

  // Filters this rank's chunks into memory. Any thread may call it: it calls neither HDF5 nor MPI.
  void filter_own();
  // Writes the next chunks of all ranks to `dataset`, which rank 0 has open. Returns whether they were the last.
  // Collective; throws Error, the same on all ranks.
  bool hand_over(hid_t dataset);
  std::uint64_t turns_left() const;  // of hand_over()

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

// One dataset of /PartType1, and this rank's rows of it.
struct Dataset {
  std::string name;
  hid_t type;
  RowSource source;
  Scaling scaling;
  Storage storage = {};
  std::vector<std::pair<const char*, double>> attributes = {};
};

// Order of calls: the constructor, write_own() on each rank, and hand_over() until it returns true.
class Hdf5Output {
 public:
  // Rank 0 makes the file by HDF5, without the particles' numbers. Collective; throws Error, the same on all ranks.
  // `extras` have to outlive this.
  Hdf5Output(FileName name, Part part, const Provenance& provenance, const std::vector<ExtraDataset>& extras);
  Hdf5Output(const Hdf5Output&) = delete;
  Hdf5Output& operator=(const Hdf5Output&) = delete;

  // Whether all of the file's space is allocated, and HDF5 has closed the file: no chunks remain for hand_over().
  bool is_laid_out() const { return chunked_.empty(); }
  // Writes this rank's numbers of datasets in one piece to the disk, and chunks into memory. Any thread may call it: it
  // calls neither HDF5 nor MPI. Throws Error.
  void write_own();
  // Passes some chunks of all ranks to HDF5. Returns whether all are written and the file is closed. Collective; throws
  // Error, the same on all ranks.
  bool hand_over();
  std::uint64_t turns_left() const;  // of hand_over()

  const FileName& name() const { return name_; }

 private:
  struct Chunked {
    std::size_t dataset;
    std::unique_ptr<ChunkedRows> rows;
  };
  void create(const Provenance& provenance);
  void close();

  FileName name_;
  Part part_;  // datasets refer to it
  std::vector<Dataset> datasets_;
  std::vector<std::uint64_t> addresses_;  // of datasets in one piece
  std::vector<Chunked> chunked_;
  std::size_t done_ = 0;  // chunked datasets that are written
  H5Id file_;             // of rank 0, while it is open
  std::vector<H5Id> open_;
};

}  // namespace maki::gadget
