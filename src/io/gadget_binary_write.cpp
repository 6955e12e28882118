// Writing GADGET's binary types 1 and 2.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>

#include "kernels/device/error.hpp"
#include "src/io/gadget.hpp"
#include "src/io/gadget_binary.hpp"

namespace maki::gadget {

namespace {

static_assert(std::endian::native == std::endian::little);

class BinaryWriter {
 public:
  BinaryWriter(SafeFile& file, const WriteOptions& options)
      : file_(file), swap_(options.big_endian), labelled_(options.format == SnapshotFormat::kGadgetBinary2) {}

  // Writes a block of count x columns numbers, given by value(i, column).
  template <class T, class Value>
  void block(const char* label, std::size_t count, std::size_t columns, Value value) {
    const std::uint64_t bytes = std::uint64_t{count} * columns * sizeof(T);
    begin(label, bytes);
    std::vector<T> slab;
    for (std::size_t first = 0; first < count; first += kSlabRows) {
      slab.resize(std::min(kSlabRows, count - first) * columns);
      for (std::size_t i = 0; i < slab.size(); ++i) slab[i] = ordered(value(first + i / columns, i % columns));
      file_.write(slab.data(), slab.size() * sizeof(T));
    }
    marker(bytes);
  }

  void header(BinaryHeader h) {
    if (swap_) swap_header(h);
    begin("HEAD", sizeof(h));
    file_.write(&h, sizeof(h));
    marker(sizeof(h));
  }

 private:
  template <class T> T ordered(T value) const { return swap_ ? byte_swapped(value) : value; }
  void marker(std::uint64_t bytes) {
    const auto word = ordered(static_cast<std::uint32_t>(bytes));
    file_.write(&word, sizeof(word));
  }
  void begin(const char* label, std::uint64_t bytes) {
    if (labelled_) {
      marker(kLabelBytes);
      file_.write(label, 4);
      marker(bytes + 2 * sizeof(std::uint32_t));  // what a reader has to skip
      marker(kLabelBytes);
    }
    marker(bytes);
  }

  SafeFile& file_;
  bool swap_, labelled_;
};

BinaryHeader make_header(const Part& part, bool doubles) {
  BinaryHeader h{};
  const std::uint64_t total = part.snapshot.size();
  h.counts[1] = static_cast<std::int32_t>(part.count);
  h.totals_low[1] = static_cast<std::uint32_t>(total);
  h.totals_high[1] = static_cast<std::uint32_t>(total >> 32);
  h.mass_table[1] = part.equal_mass;
  h.time = part.header.time;
  h.redshift = part.header.redshift;
  h.files = part.files;
  h.box_size = part.header.box_size;
  h.omega0 = part.header.omega0;
  h.omega_lambda = part.header.omega_lambda;
  h.hubble = part.header.hubble > 0 ? part.header.hubble : 1;
  h.flag_double = doubles;
  return h;
}

template <class T> void write_reals(BinaryWriter& out, const Part& part) {
  out.block<T>("POS ", part.count, 3, [&](std::size_t i, std::size_t axis) { return coordinate<T>(part, i, axis); });
  out.block<T>("VEL ", part.count, 3, [&](std::size_t i, std::size_t axis) { return velocity<T>(part, i, axis); });
}

template <class T> void write_ids(BinaryWriter& out, const Part& part) {
  out.block<T>("ID  ", part.count, 1, [&](std::size_t i, std::size_t) {
    return static_cast<T>(part.snapshot.ids[part.first + i]);
  });
}

template <class T> void write_masses(BinaryWriter& out, const Part& part) {
  out.block<T>("MASS", part.count, 1, [&](std::size_t i, std::size_t) { return mass<T>(part, i); });
}

}  // namespace

void write_binary_file(SafeFile& file, const Part& part, const WriteOptions& options) {
  if (part.count > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max())) {
    throw Error(fmt::format("cannot write '{}'", file.path()),
                fmt::format("{} particles, GADGET's binary types hold 2^31 - 1", part.count),
                "write more files or HDF5");
  }
  const bool doubles = options.double_coordinates;
  BinaryWriter out(file, options);
  out.header(make_header(part, doubles));
  doubles ? write_reals<double>(out, part) : write_reals<float>(out, part);
  part.wide_ids ? write_ids<std::uint64_t>(out, part) : write_ids<std::uint32_t>(out, part);
  if (part.equal_mass == 0) doubles ? write_masses<double>(out, part) : write_masses<float>(out, part);
}

}  // namespace maki::gadget
