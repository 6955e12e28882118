// The calls of HDF5 that Maki uses, with owners for identifiers, and Errors with the library's own reason.
#pragma once

#include <hdf5.h>

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/error.hpp"

namespace maki {

// Keeps other threads out of HDF5, which mostly is built without locks of its own. Every function that calls HDF5 holds
// a turn until its identifiers are closed; a thread can hold several turns at once. Needed for the threads of a program
// in Python.
class Hdf5Turn {
 public:
  Hdf5Turn();

 private:
  std::unique_lock<std::recursive_mutex> lock_;
};

// Owns one HDF5 identifier. Converts to hid_t for calls of the library.
class H5Id {
 public:
  using Closer = herr_t (*)(hid_t);
  H5Id() = default;
  H5Id(hid_t id, Closer closer) : id_(id), closer_(closer) {}
  H5Id(H5Id&& other) noexcept : id_(std::exchange(other.id_, -1)), closer_(other.closer_) {}
  H5Id& operator=(H5Id&& other) noexcept;
  ~H5Id() { (void)close(); }

  operator hid_t() const { return id_; }
  bool valid() const { return id_ >= 0; }
  herr_t close();  // negative on failure

 private:
  hid_t id_ = -1;
  Closer closer_ = nullptr;
};

// An Error whose reason is the innermost message of HDF5's error stack (the system's message where there is one).
Error hdf5_error(const std::string& problem, const std::string& advice);

// Throws hdf5_error for a negative status.
void check_hdf5(herr_t status, const std::string& problem);

// Whether the file starts as HDF5 files do, complete or not.
bool is_hdf5(const std::string& path);

// Opens for reading; throws Error for missing, foreign and truncated files. `create` empties an existing file.
H5Id open_hdf5(const std::string& path);
H5Id create_hdf5(const std::string& path);
// Flushes and closes a file that was written; throws Error (`name` goes into the message).
void close_hdf5(H5Id& file, const std::string& name);

bool hdf5_exists(hid_t parent, const std::string& name);
// The names of the links in a group, sorted.
std::vector<std::string> link_names(hid_t group);
H5Id create_group(hid_t parent, const std::string& name);
H5Id open_group(hid_t parent, const std::string& name);

// The type of T in memory and in files, little-endian.
template <class T>
hid_t hdf5_type();

// Attributes. A count of 0 writes a scalar.
template <class T>
void write_attribute(hid_t object, const std::string& name, const T* values, std::size_t count);
template <class T>
void write_attribute(hid_t object, const std::string& name, T value) {
  write_attribute<T>(object, name, &value, 0);
}
void write_attribute(hid_t object, const std::string& name, const std::string& text);
inline void write_attribute(hid_t object, const std::string& name, const char* text) {
  write_attribute(object, name, std::string(text));
}
// A string of fixed length, which h5py returns as bytes.
void write_fixed_text(hid_t object, const std::string& name, const std::string& text);
// Numbers of any type, converted; empty where there is no such attribute.
template <class T>
std::vector<T> read_attribute(hid_t object, const std::string& name);
template <class T>
std::optional<T> read_scalar(hid_t object, const std::string& name);
std::optional<std::string> read_text(hid_t object, const std::string& name);

// Creation properties of datasets, without times: the same set gives the same file, whenever it is written.
H5Id dataset_properties();

// Storage of a dataset's numbers in a file: in one piece, allocated at creation, or in chunks of `chunk_rows(rows)`
// rows that pass one of HDF5's own filters.
struct Storage {
  Storage(int deflate_level = 0, std::optional<int> decimal_digits = {})
      : deflate(deflate_level), decimals(decimal_digits) {}
  int deflate;                  // 1 to 9 shuffle and compress
  std::optional<int> decimals;  // for doubles: scale-offset, whole multiples of 10^-decimals, without deflate
  bool in_chunks() const { return deflate > 0 || decimals; }
};
std::size_t chunk_rows(std::size_t rows);
// Datasets of `rows` x `columns` numbers; one-dimensional where columns is 1.
H5Id create_dataset(hid_t parent, const std::string& name, hid_t file_type, std::size_t rows, std::size_t columns,
                    const Storage& storage);
H5Id open_dataset(hid_t parent, const std::string& name);
// The file address of the numbers of a dataset in one piece; 0 for one without rows.
std::uint64_t dataset_address(hid_t dataset);
// Writes one chunk in its stored form, as filtered() (hdf5_output.hpp) gives it.
void write_chunk(hid_t dataset, std::size_t first_row, const std::vector<unsigned char>& stored);
std::vector<std::size_t> dataset_shape(hid_t dataset);
void write_rows(hid_t dataset, std::size_t first, std::size_t rows, hid_t memory_type, const void* data);
void read_rows(hid_t dataset, std::size_t first, std::size_t rows, hid_t memory_type, void* data);
// The new dataset of type T with the numbers value(row, column).
template <class T, class Value>
H5Id write_column(hid_t parent, const std::string& name, std::size_t rows, std::size_t columns, Value value) {
  std::vector<T> numbers;
  numbers.reserve(rows * columns);
  for (std::size_t row = 0; row < rows; ++row)
    for (std::size_t column = 0; column < columns; ++column) numbers.push_back(static_cast<T>(value(row, column)));
  H5Id dataset = create_dataset(parent, name, hdf5_type<T>(), rows, columns, 0);
  write_rows(dataset, 0, rows, hdf5_type<T>(), numbers.data());
  return dataset;
}

void write_text_dataset(hid_t parent, const std::string& name, const std::string& text);
std::string read_text_dataset(hid_t parent, const std::string& name);

}  // namespace maki
