#include "src/io/hdf5_file.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <pthread.h>
#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <new>

namespace maki {

namespace {

// Larger datasets begin at a page boundary, so that different writers share few pages.
constexpr hsize_t kAlignedFrom = 65536;
constexpr hsize_t kPage = 4096;

// HDF5's exit handler would flush files again after a failed write, and crash; all files are closed here instead. This
// setting has to precede the library's first call; even the name of a type is a call.
const herr_t no_exit_handler = H5dont_atexit();

// HDF5's error stack goes into exceptions instead of stderr.
void prepare_hdf5() {
  (void)no_exit_handler;
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
}

herr_t keep_innermost(unsigned depth, const H5E_error2_t* entry, void* text) {
  if (depth == 0 && entry->desc) *static_cast<std::string*>(text) = entry->desc;
  return 0;
}

std::string innermost_reason() {
  std::string text;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keep_innermost, &text);
  // Descriptions of failed system calls hold "... error message = 'No space left on device', ...".
  const std::string mark = "error message = '";
  if (const auto at = text.find(mark); at != std::string::npos) {
    const auto begin = at + mark.size();
    text = text.substr(begin, text.find('\'', begin) - begin);
  }
  return text.empty() ? "HDF5 gave no reason" : text;
}

// Only one process writes a file through the library at a time, and some network file systems have no locks.
H5Id access_without_locks() {
  H5Id access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  H5Pset_file_locking(access, false, true);
  return access;
}

std::recursive_mutex& library() {
  static std::recursive_mutex mutex;
  // A forked process has only the thread that forked, so no other thread may be in HDF5 then. In the new process that
  // thread has another number, by which a recursive mutex would not know its owner: the mutex is made anew.
  [[maybe_unused]] static const int for_forks =
      pthread_atfork([] { mutex.lock(); }, [] { mutex.unlock(); }, [] { new (&mutex) std::recursive_mutex; });
  return mutex;
}

}  // namespace

Hdf5Turn::Hdf5Turn() : lock_(library()) {}

H5Id& H5Id::operator=(H5Id&& other) noexcept {
  if (this != &other) {
    (void)close();
    id_ = std::exchange(other.id_, -1);
    closer_ = other.closer_;
  }
  return *this;
}

herr_t H5Id::close() {
  const hid_t id = std::exchange(id_, -1);
  return id >= 0 && closer_ ? closer_(id) : 0;
}

Error hdf5_error(const std::string& problem, const std::string& advice) {
  const std::string reason = innermost_reason();
  const bool full = reason == std::strerror(ENOSPC) || reason == std::strerror(EDQUOT);
  const bool limit = reason == std::strerror(EFBIG);
  return Error(problem, reason,
               full    ? "free space on that disk or write somewhere else; nothing was left behind"
               : limit ? "raise the limit on file sizes (ulimit -f) or write somewhere else; nothing was left behind"
                       : advice);
}

void check_hdf5(herr_t status, const std::string& problem) {
  if (status < 0) throw hdf5_error(problem, "");
}

H5Id dataset_properties() {
  H5Id properties(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
  H5Pset_obj_track_times(properties, false);
  return properties;
}

bool is_hdf5(const std::string& path) {
  const Hdf5Turn turn;
  prepare_hdf5();
  return H5Fis_hdf5(path.c_str()) > 0;
}

H5Id open_hdf5(const std::string& path) {
  prepare_hdf5();
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) {
    throw Error(fmt::format("cannot read '{}'", path), std::strerror(errno), "check the name of the file");
  }
  if (!is_hdf5(path)) throw Error(fmt::format("cannot read '{}'", path), "not an HDF5 file", "check the file");
  const H5Id access = access_without_locks();  // outlives the error, as any other call clears the error stack
  H5Id file(H5Fopen(path.c_str(), H5F_ACC_RDONLY, access), H5Fclose);
  if (!file.valid()) {
    throw hdf5_error(fmt::format("cannot read '{}'", path), "the file is damaged or incomplete; copy or make it again");
  }
  return file;
}

H5Id create_hdf5(const std::string& path) {
  prepare_hdf5();
  const H5Id access = access_without_locks();
  H5Pset_alignment(access, kAlignedFrom, kPage);
  H5Id file(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access), H5Fclose);
  if (!file.valid()) throw hdf5_error(fmt::format("cannot write '{}'", path), "check the directory");
  return file;
}

void close_hdf5(H5Id& file, const std::string& name) {
  check_hdf5(H5Fflush(file, H5F_SCOPE_LOCAL), fmt::format("cannot write '{}'", name));
  check_hdf5(file.close(), fmt::format("cannot write '{}'", name));
}

bool hdf5_exists(hid_t parent, const std::string& name) { return H5Lexists(parent, name.c_str(), H5P_DEFAULT) > 0; }

std::vector<std::string> link_names(hid_t group) {
  std::vector<std::string> names;
  const auto add = [](hid_t, const char* name, const H5L_info_t*, void* to) -> herr_t {
    static_cast<std::vector<std::string>*>(to)->emplace_back(name);
    return 0;
  };
  hsize_t at = 0;
  check_hdf5(H5Literate(group, H5_INDEX_NAME, H5_ITER_INC, &at, add, &names), "cannot list what a file holds");
  return names;
}

H5Id create_group(hid_t parent, const std::string& name) {
  H5Id group(H5Gcreate2(parent, name.c_str(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), H5Gclose);
  if (!group.valid()) throw hdf5_error(fmt::format("cannot make the group '{}'", name), "");
  return group;
}

H5Id open_group(hid_t parent, const std::string& name) {
  H5Id group(H5Gopen2(parent, name.c_str(), H5P_DEFAULT), H5Gclose);
  if (!group.valid()) throw hdf5_error(fmt::format("cannot open the group '{}'", name), "");
  return group;
}

static_assert(std::endian::native == std::endian::little);
// clang-format off
template <> hid_t hdf5_type<double>() { return H5T_IEEE_F64LE; }
template <> hid_t hdf5_type<float>() { return H5T_IEEE_F32LE; }
template <> hid_t hdf5_type<std::int32_t>() { return H5T_STD_I32LE; }
template <> hid_t hdf5_type<std::int64_t>() { return H5T_STD_I64LE; }
template <> hid_t hdf5_type<std::uint16_t>() { return H5T_STD_U16LE; }
template <> hid_t hdf5_type<std::uint32_t>() { return H5T_STD_U32LE; }
template <> hid_t hdf5_type<std::uint64_t>() { return H5T_STD_U64LE; }
// clang-format on

namespace {

void write_attribute(hid_t object, const std::string& name, hid_t type, hid_t space, const void* values) {
  H5Id attribute(H5Acreate2(object, name.c_str(), type, space, H5P_DEFAULT, H5P_DEFAULT), H5Aclose);
  if (!attribute.valid()) throw hdf5_error(fmt::format("cannot make the attribute '{}'", name), "");
  check_hdf5(H5Awrite(attribute, type, values), fmt::format("cannot write the attribute '{}'", name));
}

}  // namespace

template <class T>
void write_attribute(hid_t object, const std::string& name, const T* values, std::size_t count) {
  const hsize_t size = count;
  H5Id space(count ? H5Screate_simple(1, &size, nullptr) : H5Screate(H5S_SCALAR), H5Sclose);
  write_attribute(object, name, hdf5_type<T>(), space, values);
}

template <class T>
std::vector<T> read_attribute(hid_t object, const std::string& name) {
  if (H5Aexists(object, name.c_str()) <= 0) return {};
  H5Id attribute(H5Aopen(object, name.c_str(), H5P_DEFAULT), H5Aclose);
  H5Id type(H5Aget_type(attribute), H5Tclose);
  const H5T_class_t kind = H5Tget_class(type);
  if (kind != H5T_INTEGER && kind != H5T_FLOAT && kind != H5T_ENUM) return {};
  H5Id space(H5Aget_space(attribute), H5Sclose);
  std::vector<T> values(static_cast<std::size_t>(std::max<hssize_t>(0, H5Sget_simple_extent_npoints(space))));
  if (values.empty()) return values;
  if (kind == H5T_ENUM) {  // h5py's bool
    H5Id number(H5Tget_super(type), H5Tclose);
    std::vector<std::byte> bytes(values.size() * std::max(sizeof(T), H5Tget_size(type)));
    check_hdf5(H5Aread(attribute, type, bytes.data()), fmt::format("cannot read the attribute '{}'", name));
    check_hdf5(H5Tconvert(number, hdf5_type<T>(), values.size(), bytes.data(), nullptr, H5P_DEFAULT),
               fmt::format("cannot read the attribute '{}'", name));
    std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
    return values;
  }
  check_hdf5(H5Aread(attribute, hdf5_type<T>(), values.data()), fmt::format("cannot read the attribute '{}'", name));
  return values;
}

template <class T>
std::optional<T> read_scalar(hid_t object, const std::string& name) {
  const auto values = read_attribute<T>(object, name);
  return values.empty() ? std::nullopt : std::optional<T>(values.front());
}

#define MAKI_ATTRIBUTE_TYPE(T)                                                        \
  template void write_attribute<T>(hid_t, const std::string&, const T*, std::size_t); \
  template std::vector<T> read_attribute<T>(hid_t, const std::string&);               \
  template std::optional<T> read_scalar<T>(hid_t, const std::string&);
MAKI_ATTRIBUTE_TYPE(double)
MAKI_ATTRIBUTE_TYPE(float)
MAKI_ATTRIBUTE_TYPE(std::int32_t)
MAKI_ATTRIBUTE_TYPE(std::uint32_t)
MAKI_ATTRIBUTE_TYPE(std::uint64_t)
#undef MAKI_ATTRIBUTE_TYPE

namespace {

// Variable length: h5py returns such attributes as str.
H5Id text_type() {
  H5Id type(H5Tcopy(H5T_C_S1), H5Tclose);
  H5Tset_size(type, H5T_VARIABLE);
  H5Tset_cset(type, H5T_CSET_UTF8);
  return type;
}

// Reads one string of fixed or variable length through `read`, a call of H5Aread or H5Dread on (type, buffer).
template <class Read>
std::string read_one_text(hid_t file_type, Read read) {
  H5Id memory(H5Tcopy(file_type), H5Tclose);
  if (H5Tis_variable_str(file_type) > 0) {
    char* text = nullptr;
    if (read(memory, &text) < 0 || !text) return {};
    std::string copy(text);
    H5free_memory(text);
    return copy;
  }
  std::string text(H5Tget_size(file_type), '\0');
  if (read(memory, text.data()) < 0) return {};
  return text.substr(0, text.find('\0'));
}

// Whether there is one string, and not an array of them.
bool is_one(hid_t space) { return H5Sget_simple_extent_npoints(space) == 1; }

}  // namespace

void write_attribute(hid_t object, const std::string& name, const std::string& text) {
  H5Id type = text_type();
  const char* characters = text.c_str();
  write_attribute(object, name, type, H5Id(H5Screate(H5S_SCALAR), H5Sclose), &characters);
}

void write_fixed_text(hid_t object, const std::string& name, const std::string& text) {
  H5Id type(H5Tcopy(H5T_C_S1), H5Tclose);
  H5Tset_size(type, std::max<std::size_t>(1, text.size()));
  H5Tset_strpad(type, H5T_STR_NULLPAD);
  write_attribute(object, name, type, H5Id(H5Screate(H5S_SCALAR), H5Sclose), text.c_str());
}

std::optional<std::string> read_text(hid_t object, const std::string& name) {
  if (H5Aexists(object, name.c_str()) <= 0) return std::nullopt;
  H5Id attribute(H5Aopen(object, name.c_str(), H5P_DEFAULT), H5Aclose);
  H5Id type(H5Aget_type(attribute), H5Tclose), space(H5Aget_space(attribute), H5Sclose);
  if (H5Tget_class(type) != H5T_STRING || !is_one(space)) return std::nullopt;
  return read_one_text(type, [&](hid_t memory, void* buffer) { return H5Aread(attribute, memory, buffer); });
}

void write_text_dataset(hid_t parent, const std::string& name, const std::string& text) {
  H5Id type = text_type();
  const char* characters = text.c_str();
  H5Id space(H5Screate(H5S_SCALAR), H5Sclose);
  H5Id properties = dataset_properties();
  H5Id dataset(H5Dcreate2(parent, name.c_str(), type, space, H5P_DEFAULT, properties, H5P_DEFAULT), H5Dclose);
  if (!dataset.valid()) throw hdf5_error(fmt::format("cannot make the dataset '{}'", name), "");
  check_hdf5(H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, &characters),
             fmt::format("cannot write the dataset '{}'", name));
}

std::string read_text_dataset(hid_t parent, const std::string& name) {
  if (!hdf5_exists(parent, name)) return {};
  H5Id dataset = open_dataset(parent, name);
  H5Id type(H5Dget_type(dataset), H5Tclose), space(H5Dget_space(dataset), H5Sclose);
  if (H5Tget_class(type) != H5T_STRING || !is_one(space)) return {};
  return read_one_text(type, [&](hid_t memory, void* buffer) {
    return H5Dread(dataset, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, buffer);
  });
}

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
