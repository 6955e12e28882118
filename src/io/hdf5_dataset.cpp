#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>

#include "src/io/hdf5_file.hpp"

namespace maki {

namespace {

constexpr hsize_t kChunkRows = 65536;

}  // namespace

std::size_t chunk_rows(std::size_t rows) { return std::clamp<std::size_t>(rows, 1, kChunkRows); }

H5Id create_dataset(hid_t parent, const std::string& name, hid_t file_type, std::size_t rows, std::size_t columns,
                    int deflate) {
  const int rank = columns > 1 ? 2 : 1;
  const hsize_t shape[2] = {rows, columns};
  const hsize_t chunk[2] = {chunk_rows(rows), columns};
  H5Id space(H5Screate_simple(rank, shape, nullptr), H5Sclose);
  H5Id properties = dataset_properties();
  if (deflate > 0) {
    H5Pset_chunk(properties, rank, chunk);
    H5Pset_shuffle(properties);
    H5Pset_deflate(properties, static_cast<unsigned>(deflate));
  } else {
    H5Pset_alloc_time(properties, H5D_ALLOC_TIME_EARLY);
    H5Pset_fill_time(properties, H5D_FILL_TIME_NEVER);
  }
  H5Id dataset(H5Dcreate2(parent, name.c_str(), file_type, space, H5P_DEFAULT, properties, H5P_DEFAULT), H5Dclose);
  if (!dataset.valid()) throw hdf5_error(fmt::format("cannot make the dataset '{}'", name), "");
  return dataset;
}

std::uint64_t dataset_address(hid_t dataset) {
  const haddr_t address = H5Dget_offset(dataset);
  if (address != HADDR_UNDEF) return address;
  for (const std::size_t extent : dataset_shape(dataset)) {
    if (extent == 0) return 0;
  }
  throw hdf5_error("a dataset has no room in its file", "");
}

std::vector<unsigned char> shuffle_and_deflate(const void* numbers, std::size_t count, std::size_t width, int level) {
  const auto* from = static_cast<const unsigned char*>(numbers);
  std::vector<unsigned char> shuffled(count * width);  // the first bytes of all numbers, then the second ...
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t byte = 0; byte < width; ++byte) shuffled[byte * count + i] = from[i * width + byte];
  }
  uLongf bytes = compressBound(shuffled.size());
  std::vector<unsigned char> stored(bytes);
  const int status = compress2(stored.data(), &bytes, shuffled.data(), shuffled.size(), level);
  if (status != Z_OK) throw Error("cannot compress a dataset", zError(status));
  stored.resize(bytes);
  return stored;
}

void write_chunk(hid_t dataset, std::size_t first_row, const std::vector<unsigned char>& stored) {
  const hsize_t offset[2] = {first_row, 0};
  check_hdf5(H5Dwrite_chunk(dataset, H5P_DEFAULT, 0, offset, stored.size(), stored.data()), "cannot write a dataset");
}

H5Id open_dataset(hid_t parent, const std::string& name) {
  H5Id dataset(H5Dopen2(parent, name.c_str(), H5P_DEFAULT), H5Dclose);
  if (!dataset.valid()) throw hdf5_error(fmt::format("cannot open the dataset '{}'", name), "");
  return dataset;
}

std::vector<std::size_t> dataset_shape(hid_t dataset) {
  H5Id space(H5Dget_space(dataset), H5Sclose);
  const int rank = std::max(0, H5Sget_simple_extent_ndims(space));
  std::vector<hsize_t> shape(static_cast<std::size_t>(rank));
  H5Sget_simple_extent_dims(space, shape.data(), nullptr);
  return {shape.begin(), shape.end()};
}

namespace {

// Selections (memory space, file space) of some rows.
std::pair<H5Id, H5Id> select_rows(hid_t dataset, std::size_t first, std::size_t rows) {
  const auto shape = dataset_shape(dataset);
  const hsize_t columns = shape.size() > 1 ? shape[1] : 1;
  const hsize_t start[2] = {first, 0};
  const hsize_t count[2] = {rows, columns};
  const int rank = static_cast<int>(shape.size());
  H5Id file(H5Dget_space(dataset), H5Sclose);
  check_hdf5(H5Sselect_hyperslab(file, H5S_SELECT_SET, start, nullptr, count, nullptr),
             "cannot select rows of a dataset");
  return {H5Id(H5Screate_simple(rank, count, nullptr), H5Sclose), std::move(file)};
}

}  // namespace

void write_rows(hid_t dataset, std::size_t first, std::size_t rows, hid_t memory_type, const void* data) {
  if (rows == 0) return;
  const auto [memory, file] = select_rows(dataset, first, rows);
  check_hdf5(H5Dwrite(dataset, memory_type, memory, file, H5P_DEFAULT, data), "cannot write a dataset");
}

void read_rows(hid_t dataset, std::size_t first, std::size_t rows, hid_t memory_type, void* data) {
  if (rows == 0) return;
  const auto [memory, file] = select_rows(dataset, first, rows);
  check_hdf5(H5Dread(dataset, memory_type, memory, file, H5P_DEFAULT, data), "cannot read a dataset");
}

}  // namespace maki
