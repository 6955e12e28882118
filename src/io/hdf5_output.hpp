// One HDF5 file of a snapshot on its way to the disk.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "src/io/gadget_chunks.hpp"
#include "src/io/gadget_write.hpp"

namespace maki::gadget {

// One dataset of /PartType1, and this rank's rows of it.
struct Dataset {
  std::string name;
  hid_t type;
  RowSource source;
  Scaling scaling;
  Storage storage = {};
  std::vector<std::pair<const char*, double>> attributes = {};
};

// In this order: the constructor, write_own() on each rank, and hand_over() until it returns true.
class Hdf5Output {
 public:
  // HDF5 makes the file on rank 0: all but the numbers of particles. Collective; throws Error, the same on all ranks. `extras`
  // have to outlive this.
  Hdf5Output(FileName name, Part part, const Provenance& provenance, const WriteOptions& options,
             const std::vector<ExtraDataset>& extras);
  Hdf5Output(const Hdf5Output&) = delete;
  Hdf5Output& operator=(const Hdf5Output&) = delete;

  // Whether all of the file's room is set aside, and the file closed by HDF5: nothing is left to be handed over.
  bool is_laid_out() const { return chunked_.empty(); }
  // This rank's numbers: those of datasets in one piece go to the disk, chunks into memory. By any thread: calls neither HDF5
  // nor MPI. Throws Error.
  void write_own();
  // Some chunks of all ranks go to HDF5. Returns whether all have, and the file is closed. Collective; throws Error, the same on
  // all ranks.
  bool hand_over();

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
  std::size_t done_ = 0;  // of these
  H5Id file_;             // of rank 0, while it is open
  std::vector<H5Id> open_;
};

}  // namespace maki::gadget
