#include "src/io/hdf5_output.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <string_view>
#include <utility>

#include "host/comm/communicator.hpp"
#include "kernels/error.hpp"
#include "src/io/gadget.hpp"

namespace maki {

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

namespace maki::gadget {

namespace {

constexpr std::size_t kAtOnce = 32;  // chunks passed to HDF5 between two steps: some 50 MB at most

}  // namespace

std::uint64_t Chunks::end_chunk(int rank) const {
  return std::max(begin_chunk(rank), (begin_row(rank + 1) + rows_ - 1) / rows_);
}

int Chunks::owner(std::uint64_t chunk) const {
  const auto after = std::upper_bound(begins_.begin(), begins_.end(), chunk * rows_);
  return static_cast<int>(after - begins_.begin()) - 1;
}

std::uint64_t Chunks::end_row(int rank) const { return std::min(end_chunk(rank) * rows_, begins_.back()); }

ChunkedRows::ChunkedRows(const Part& part, RowSource source, const Storage& storage)
    : part_(part), source_(std::move(source)), storage_(storage), chunks_(part) {
  const int rank = part.ranks.rank();
  const std::size_t bytes = source_.row_bytes();
  std::vector<Communicator::Outgoing> out;
  std::vector<Communicator::Incoming> in;
  Bytes head;
  all_succeed(part.ranks, [&] {
    const std::uint64_t own = std::min(part.end(), chunks_.begin_chunk(rank) * chunks_.rows());
    if (own > part.begin()) {
      head.resize((own - part.begin()) * bytes);
      source_.fill(0, own - part.begin(), head.data());
      out.push_back({chunks_.owner(chunks_.begin_chunk(rank) - 1), head.data(), head.size()});
    }
    if (chunks_.end_chunk(rank) == chunks_.begin_chunk(rank)) return;
    tail_.resize((std::max(chunks_.end_row(rank), part.end()) - part.end()) * bytes);
    for (int r = rank + 1; r < part.ranks.size() && chunks_.begin_row(r) < chunks_.end_row(rank); ++r) {
      const std::uint64_t count = std::min(chunks_.begin_row(r + 1), chunks_.end_row(rank)) - chunks_.begin_row(r);
      if (count > 0) in.push_back({r, tail_.data() + (chunks_.begin_row(r) - part.end()) * bytes, count * bytes});
    }
  });
  part.ranks.exchange(out, in);
}

// One chunk, padded with the last row of all.
ChunkedRows::Bytes ChunkedRows::rows_of(std::uint64_t chunk) const {
  const std::size_t bytes = source_.row_bytes();
  const std::uint64_t first = chunk * chunks_.rows(), last = std::min(first + chunks_.rows(), part_.rows());
  const std::uint64_t own = std::min(last, part_.end());
  Bytes rows(chunks_.rows() * bytes);
  source_.fill(first - part_.begin(), own - first, rows.data());
  if (last > own) std::memcpy(rows.data() + (own - first) * bytes, tail_.data(), (last - own) * bytes);
  for (std::uint64_t row = last - first; row < chunks_.rows(); ++row)
    std::memcpy(rows.data() + row * bytes, rows.data() + (row - 1) * bytes, bytes);
  return rows;
}

void ChunkedRows::filter_own() {
  const int rank = part_.ranks.rank();
  for (std::uint64_t chunk = chunks_.begin_chunk(rank); chunk < chunks_.end_chunk(rank); ++chunk) {
    const Bytes rows = rows_of(chunk);
    filtered_.push_back(filtered(rows.data(), rows.size() / source_.width, source_.width, storage_));
  }
}

bool ChunkedRows::hand_over(hid_t dataset) {
  const Communicator& ranks = part_.ranks;
  const int me = ranks.rank();
  const std::uint64_t count = std::min<std::uint64_t>(kAtOnce, chunks_.count() - next_);
  const auto mine = [&](std::size_t i) -> Bytes& { return filtered_[next_ + i - chunks_.begin_chunk(me)]; };
  std::array<std::uint64_t, kAtOnce> sizes{};
  for (std::size_t i = 0; i < count; ++i)
    if (chunks_.owner(next_ + i) == me) sizes[i] = mine(i).size();
  ranks.sum(sizes);  // each is one rank's
  std::vector<Communicator::Outgoing> out;
  std::vector<Communicator::Incoming> in;
  std::array<Bytes, kAtOnce> come;
  for (std::size_t i = 0; i < count; ++i) {
    const int owner = chunks_.owner(next_ + i);
    if (owner == 0 && me == 0) come[i] = std::move(mine(i));
    if (owner == 0) continue;
    if (owner == me) out.push_back({0, mine(i).data(), mine(i).size()});
    if (me > 0) continue;
    come[i].resize(sizes[i]);
    in.push_back({owner, come[i].data(), come[i].size()});
  }
  ranks.exchange(out, in);
  root_succeeds(ranks, [&] {
    for (std::size_t i = 0; i < count; ++i) write_chunk(dataset, (next_ + i) * chunks_.rows(), come[i]);
  });
  for (std::size_t i = 0; i < count; ++i)
    if (chunks_.owner(next_ + i) == me) mine(i) = Bytes();
  next_ += count;
  return next_ == chunks_.count();
}

std::uint64_t ChunkedRows::turns_left() const { return (chunks_.count() - next_ + kAtOnce - 1) / kAtOnce; }

namespace {

// Numbers in the file have the byte order of those in memory.
static_assert(std::endian::native == std::endian::little);

// Names of attributes with the error of a number: in the dataset's unit, or relative.
constexpr const char* kMaxError = "MaxAbsoluteError";
constexpr const char* kMaxRelativeError = "MaxRelativeError";

template <class T, class Value>
Dataset make_dataset(const std::string& name, std::size_t columns, const Scaling& scaling, Value value) {
  return {name, hdf5_type<T>(), row_source<T>(columns, value), scaling};
}

template <class T>
Dataset coordinates_of(const Part& part, const Scaling& scaling) {
  return make_dataset<T>("Coordinates", 3, scaling,
                         [&](std::size_t i, std::size_t axis) { return coordinate<T>(part, i, axis); });
}

// Whole multiples of 10^-decimals, whatever the offset of a chunk; numbers that would round to the box side become 0.
Dataset fixed_coordinates(const Part& part, const Scaling& scaling) {
  const double scale = std::pow(10.0, *part.decimals);
  const double end = part.header.comoving ? part.header.box_size - 0.25 / scale : HUGE_VAL;
  Dataset fixed = make_dataset<double>("Coordinates", 3, scaling, [&part, scale, end](std::size_t i, std::size_t axis) {
    const double x = std::round(part.particles.position(part.at(i), axis) * part.length_factor * scale) / scale;
    return x < end ? x : 0;
  });
  fixed.storage = {0, part.decimals};
  fixed.attributes = {{kMaxError, 0.5 / scale}};
  return fixed;
}

Dataset coordinates_dataset(const Part& part, CoordinateNumbers numbers, const Scaling& scaling) {
  if (part.decimals) return fixed_coordinates(part, scaling);
  if (numbers != CoordinateNumbers::kFloat) return coordinates_of<double>(part, scaling);
  Dataset floats = coordinates_of<float>(part, scaling);
  if (part.header.box_size > 0) floats.attributes = {{kMaxError, part.header.box_size * 0x1p-24}};
  return floats;
}

Dataset velocities_dataset(const Part& part, VelocityNumbers numbers, const Scaling& scaling) {
  if (numbers == VelocityNumbers::kFloat)
    return make_dataset<float>("Velocities", 3, scaling,
                               [&](std::size_t i, std::size_t axis) { return velocity<float>(part, i, axis); });
  Dataset half = make_dataset<std::uint16_t>("Velocities", 3, scaling, [&](std::size_t i, std::size_t axis) {
    return half_of(velocity<float>(part, i, axis));
  });
  half.type = hdf5_half_type();
  half.attributes = {{kMaxRelativeError, 0x1p-11}, {kMaxError, 0x1p-25}};  // the larger of both
  return half;
}

template <class T>
Dataset ids_dataset(const Part& part, const Scaling& scaling) {
  return make_dataset<T>("ParticleIDs", 1, scaling, [&](std::size_t i, std::size_t) { return id<T>(part, i); });
}

template <class T>
Dataset extra_dataset(const Part& part, const ExtraDataset& extra) {
  const double factor =
      std::pow(part.length_factor, extra.length_scaling) * std::pow(part.mass_factor, extra.mass_scaling);
  const Scaling scaling{extra.description.c_str(), extra.a_scaling,    extra.h_scaling,
                        extra.length_scaling,      extra.mass_scaling, extra.velocity_scaling};
  Dataset dataset = make_dataset<T>(extra.name, extra.components, scaling, [&, factor](std::size_t i, std::size_t k) {
    return static_cast<T>(factor * extra.values[part.at(i) * extra.components + k]);
  });
  if (extra.gravitational_constant != 0) dataset.attributes = {{"G", extra.gravitational_constant}};
  return dataset;
}

// The datasets of a file; they refer to `part` and `extras`.
std::vector<Dataset> list_datasets(const Part& part, const std::vector<ExtraDataset>& extras) {
  const WriteOptions& options = part.options;
  const double a = part.header.comoving ? 1 : 0;
  const double h = part.header.units.with_h ? -1 : 0;
  const Scaling lengths{"Coordinates in units of U_L", a, h, 1, 0, 0};
  Scaling velocities{"Peculiar velocities over the root of a in units of U_V", a / 2, 0, 0, 0, 1};
  if (options.own_times) velocities.description = "Peculiar velocities over the root of Ascale in units of U_V";
  if (options.layout == FileLayout::kSwift)
    velocities = {"Peculiar velocities (a dx/dt) in units of U_L / U_t", 0, 0, 0, 0, 1};
  const Scaling masses{"Masses in units of U_M", 0, h, 0, 1, 0};
  const Scaling names{"Unique names of particles", 0, 0, 0, 0, 0};
  std::vector<Dataset> datasets;
  if (options.has("Coordinates")) datasets.push_back(coordinates_dataset(part, options.coordinates, lengths));
  if (options.has("Velocities")) datasets.push_back(velocities_dataset(part, options.velocities, velocities));
  if (options.has("Masses"))
    datasets.push_back(
        make_dataset<float>("Masses", 1, masses, [&](std::size_t i, std::size_t) { return mass<float>(part, i); }));
  if (options.has("ParticleIDs"))
    datasets.push_back(part.wide_ids ? ids_dataset<std::uint64_t>(part, names)
                                     : ids_dataset<std::uint32_t>(part, names));
  for (const ExtraDataset& extra : extras) {
    datasets.push_back(extra.double_precision ? extra_dataset<double>(part, extra) : extra_dataset<float>(part, extra));
  }
  for (Dataset& dataset : datasets) {
    if (!dataset.storage.in_chunks()) dataset.storage = options.deflate;
    if (part.rows() == 0) dataset.storage = {};
  }
  return datasets;
}

// Makes the call; adds the file's name to an Error without it.
template <class Call>
void naming(const std::string& path, Call call) {
  try {
    call();
  } catch (const Error& error) {
    if (std::string_view(error.what()).find("'" + path + "'") != std::string_view::npos) throw;
    throw Error(fmt::format("cannot write '{}': {}", path, error.what()));
  }
}

}  // namespace

Hdf5Output::Hdf5Output(FileName name, Part part, const Provenance& provenance, const std::vector<ExtraDataset>& extras)
    : name_(std::move(name)), part_(std::move(part)), datasets_(list_datasets(part_, extras)),
      addresses_(datasets_.size()) {
  for (std::size_t i = 0; i < datasets_.size(); ++i)
    if (datasets_[i].storage.in_chunks())
      chunked_.push_back({i, std::make_unique<ChunkedRows>(part_, datasets_[i].source, datasets_[i].storage)});
  naming(name_.path, [&] {
    root_succeeds(part_.ranks, [&] {
      create(provenance);
      if (is_laid_out()) close();
    });
  });
  part_.ranks.broadcast(addresses_.data(), addresses_.size() * sizeof(addresses_[0]), 0);
}

// Groups, attributes and empty datasets.
void Hdf5Output::create(const Provenance& provenance) {
  file_ = create_hdf5(name_.temporary);
  write_groups(file_, part_, provenance);
  H5Id group = create_group(file_, "PartType1");
  for (const Dataset& d : datasets_) {
    H5Id& dataset =
        open_.emplace_back(create_dataset(group, d.name, d.type, part_.rows(), d.source.columns, d.storage));
    if (part_.options.layout == FileLayout::kSwift)
      write_swift_scaling(dataset, d.scaling, part_.header);
    else
      write_scaling(dataset, d.scaling, part_.header.units);
    for (const auto& [attribute, value] : d.attributes) write_attribute(dataset, attribute, value);
    if (!d.storage.in_chunks()) addresses_[open_.size() - 1] = dataset_address(dataset);
  }
}

void Hdf5Output::close() {
  open_.clear();
  close_hdf5(file_, name_.path);
}

void Hdf5Output::write_own() {
  naming(name_.path, [&] {
    for (const Chunked& chunked : chunked_) chunked.rows->filter_own();
    if (chunked_.size() == datasets_.size() || part_.count() == 0) return;
    PositionedFile file(name_.temporary, name_.path);
    for (std::size_t i = 0; i < datasets_.size(); ++i)
      if (!datasets_[i].storage.in_chunks()) write_in_place(file, part_, datasets_[i].source, addresses_[i]);
    file.finish();
  });
}

bool Hdf5Output::hand_over() {
  if (is_laid_out()) return true;
  naming(name_.path, [&] {
    const Chunked& next = chunked_[done_];
    if (next.rows->hand_over(file_.valid() ? static_cast<hid_t>(open_[next.dataset]) : -1)) ++done_;
    if (done_ == chunked_.size()) root_succeeds(part_.ranks, [&] { close(); });
  });
  return done_ == chunked_.size();
}

std::uint64_t Hdf5Output::turns_left() const {
  std::uint64_t turns = 0;
  for (std::size_t i = done_; i < chunked_.size(); ++i) turns += chunked_[i].rows->turns_left();
  return turns;
}

}  // namespace maki::gadget
