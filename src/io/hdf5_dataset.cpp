#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "src/io/hdf5_file.hpp"

namespace maki {

namespace {

constexpr std::size_t kChunkRows = 65536;  // at most; chunks are equal, so that padding is small

void set_filters(hid_t properties, hid_t file_type, const Storage& storage) {
  if (storage.decimals) {
    H5Pset_fill_value(properties, file_type, nullptr);  // no fill value
    H5Pset_scaleoffset(properties, H5Z_SO_FLOAT_DSCALE, *storage.decimals);
    return;
  }
  H5Pset_shuffle(properties);
  H5Pset_deflate(properties, static_cast<unsigned>(storage.deflate));
}

}  // namespace

std::size_t chunk_rows(std::size_t rows) {
  const std::size_t chunks = std::max<std::size_t>(1, (rows + kChunkRows - 1) / kChunkRows);
  return std::max<std::size_t>(1, (rows + chunks - 1) / chunks);
}

H5Id create_dataset(hid_t parent, const std::string& name, hid_t file_type, std::size_t rows, std::size_t columns,
                    const Storage& storage) {
  const int rank = columns > 1 ? 2 : 1;
  const hsize_t shape[2] = {rows, columns};
  const hsize_t chunk[2] = {chunk_rows(rows), columns};
  H5Id space(H5Screate_simple(rank, shape, nullptr), H5Sclose);
  H5Id properties = dataset_properties();
  if (storage.in_chunks() && rows > 0) {
    H5Pset_chunk(properties, rank, chunk);
    set_filters(properties, file_type, storage);
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

// Chunks in the form of HDF5's filters, made without the library: by many ranks, or by threads beside it.

namespace {

using Bytes = std::vector<unsigned char>;

Bytes shuffle_and_deflate(const unsigned char* from, std::size_t count, std::size_t width, int level) {
  Bytes shuffled(count * width);  // the first bytes of all numbers, then the second ...
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t byte = 0; byte < width; ++byte) shuffled[byte * count + i] = from[i * width + byte];
  }
  uLongf bytes = compressBound(shuffled.size());
  Bytes stored(bytes);
  const int status = compress2(stored.data(), &bytes, shuffled.data(), shuffled.size(), level);
  if (status != Z_OK) throw Error("cannot compress a dataset", zError(status));
  stored.resize(bytes);
  return stored;
}

// Appends integers of a fixed number of bits, the highest bit first.
class BitWriter {
 public:
  explicit BitWriter(unsigned char* to) : to_(to) {}
  void put(std::uint64_t value, unsigned bits) {
    while (bits > 0) {
      const unsigned now = std::min(bits, 8 - used_);
      const auto piece = static_cast<unsigned>(value >> (bits - now)) & ((1u << now) - 1);
      *to_ = static_cast<unsigned char>(*to_ | piece << (8 - used_ - now));
      bits -= now;
      used_ += now;
      if (used_ == 8) ++to_, used_ = 0;
    }
  }

 private:
  unsigned char* to_;
  unsigned used_ = 0;  // bits of *to_
};

// The filter H5Z_FILTER_SCALEOFFSET for doubles without a fill value: 4 bytes with the number of bits of an integer, 1
// byte with the size of the next field, 8 with the least number; from byte 21 on the integers (x - least) 10^decimals.
// The library reserves one byte more than these take.
Bytes scale_and_offset(const double* numbers, std::size_t count, int decimals) {
  constexpr std::size_t kHeader = 21;
  const auto [least, most] = std::minmax_element(numbers, numbers + count);
  const double minimum = *least, scale = std::pow(10.0, decimals);
  const auto integer = [&](double x) { return static_cast<std::uint64_t>(std::llround(x * scale - minimum * scale)); };
  if (!((*most - minimum) * scale < 0x1p62))
    throw Error("cannot store a dataset", "its numbers have too wide a range for so many decimal digits");
  const auto bits = static_cast<std::uint32_t>(std::bit_width(integer(*most)));
  Bytes stored(kHeader + (count * bits) / 8 + 1);
  std::memcpy(stored.data(), &bits, sizeof bits);
  stored[4] = sizeof(minimum);
  std::memcpy(stored.data() + 5, &minimum, sizeof minimum);
  BitWriter writer(stored.data() + kHeader);
  for (std::size_t i = 0; i < count; ++i) writer.put(integer(numbers[i]), bits);
  return stored;
}

}  // namespace

Bytes filtered(const void* numbers, std::size_t count, std::size_t width, const Storage& storage) {
  if (storage.decimals) return scale_and_offset(static_cast<const double*>(numbers), count, *storage.decimals);
  return shuffle_and_deflate(static_cast<const unsigned char*>(numbers), count, width, storage.deflate);
}

hid_t hdf5_half_type() {
  static const H5Id type = [] {
    H5Id half(H5Tcopy(H5T_IEEE_F32LE), H5Tclose);
    H5Tset_fields(half, 15, 10, 5, 0, 10);
    H5Tset_size(half, 2);
    H5Tset_ebias(half, 15);
    return half;
  }();
  return type;
}

std::uint16_t half_of(float value) {
  constexpr std::uint32_t kLeastNormal = 0x38800000u;  // 2^-14
  constexpr std::uint32_t kBiases = 112u << 23;        // difference of the exponents' biases
  const auto bits = std::bit_cast<std::uint32_t>(value), sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7fffffffu;
  if (magnitude < kLeastNormal) return static_cast<std::uint16_t>(sign | std::lrint(std::fabs(value) * 0x1p24f));
  const std::uint32_t rounded = magnitude + 0xfff + (magnitude >> 13 & 1);  // to the nearest, halves to even
  return static_cast<std::uint16_t>(sign | (rounded - kBiases) >> 13);
}

}  // namespace maki
