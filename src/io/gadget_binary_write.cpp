// Writing GADGET's binary types 1 and 2.
#include <fmt/format.h>

#include <bit>
#include <limits>
#include <optional>

#include "host/comm/communicator.hpp"
#include "kernels/error.hpp"
#include "src/io/gadget.hpp"
#include "src/io/gadget_write.hpp"

namespace maki::gadget {

namespace {

static_assert(std::endian::native == std::endian::little);

// One file: rank 0 writes the header and the markers around blocks, all ranks their rows between these.
class BinaryWriter {
 public:
  BinaryWriter(const FileName& name, const Part& part, const WriteOptions& options, std::uint64_t bytes)
      : part_(part), swap_(options.big_endian), labelled_(options.format == SnapshotFormat::kGadgetBinary2) {
    // The file gets its full size before other ranks open it.
    root_succeeds(part.ranks, [&] { open(name).resize(bytes + blocks(part) * frame()); });
    all_succeed(part.ranks, [&] { open(name); });
  }

  // Writes a block of numbers value(i, column) of type T.
  template <class T, class Value>
  void block(const char* label, std::size_t columns, Value value) {
    const std::uint64_t bytes = part_.rows() * columns * sizeof(T);
    const std::uint64_t rows_at = open_block(label, bytes);
    const auto ordered_value = [this, value](std::size_t i, std::size_t column) { return ordered(value(i, column)); };
    write_together(*file_, part_, row_source<T>(columns, ordered_value), rows_at);
  }

  void header(BinaryHeader h) {
    if (swap_) swap_header(h);
    const std::uint64_t at = open_block("HEAD", sizeof(h));
    root_succeeds(part_.ranks, [&] { file_->write_at(at, &h, sizeof(h)); });
  }

  void finish() {
    all_succeed(part_.ranks, [&] { file_->finish(); });
  }

 private:
  static std::uint64_t blocks(const Part& part) { return part.equal_mass == 0 ? 5 : 4; }
  std::uint64_t frame() const { return (labelled_ ? kLabelBytes + 2 * sizeof(std::uint32_t) : 0) + kMarkers; }
  PositionedFile& open(const FileName& name) { return file_ ? *file_ : file_.emplace(name.temporary, name.path); }
  template <class T>
  T ordered(T value) const {
    return swap_ ? byte_swapped(value) : value;
  }

  // Writes label and markers of a block, and moves on behind it. Returns the place of its data.
  std::uint64_t open_block(const char* label, std::uint64_t bytes) {
    std::string before, after;
    const auto put = [&](std::string& to, std::uint64_t number) {
      const auto word = ordered(static_cast<std::uint32_t>(number));
      to.append(reinterpret_cast<const char*>(&word), sizeof(word));
    };
    if (labelled_) {
      put(before, kLabelBytes);
      before += label;
      put(before, bytes + kMarkers);  // number of bytes that a reader skips to the next block
      put(before, kLabelBytes);
    }
    put(before, bytes);
    put(after, bytes);
    const std::uint64_t data = at_ + before.size();
    root_succeeds(part_.ranks, [&] {
      file_->write_at(at_, before.data(), before.size());
      file_->write_at(data + bytes, after.data(), after.size());
    });
    at_ = data + bytes + after.size();
    return data;
  }

  static constexpr std::uint64_t kMarkers = 2 * sizeof(std::uint32_t);
  const Part& part_;
  bool swap_, labelled_;
  std::optional<PositionedFile> file_;
  std::uint64_t at_ = 0;
};

BinaryHeader make_header(const Part& part, bool doubles) {
  BinaryHeader h{};
  h.counts[1] = static_cast<std::int32_t>(part.rows());
  h.totals_low[1] = static_cast<std::uint32_t>(part.total);
  h.totals_high[1] = static_cast<std::uint32_t>(part.total >> 32);
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

template <class T>
void write_reals(BinaryWriter& out, const Part& part) {
  out.block<T>("POS ", 3, [&](std::size_t i, std::size_t axis) { return coordinate<T>(part, i, axis); });
  out.block<T>("VEL ", 3, [&](std::size_t i, std::size_t axis) { return velocity<T>(part, i, axis); });
}

template <class T>
void write_ids(BinaryWriter& out, const Part& part) {
  out.block<T>("ID  ", 1, [&](std::size_t i, std::size_t) { return id<T>(part, i); });
}

template <class T>
void write_masses(BinaryWriter& out, const Part& part) {
  out.block<T>("MASS", 1, [&](std::size_t i, std::size_t) { return mass<T>(part, i); });
}

}  // namespace

void write_binary_file(const FileName& name, const Part& part, const WriteOptions& options) {
  if (part.rows() > static_cast<std::uint64_t>(std::numeric_limits<std::int32_t>::max())) {
    throw Error(fmt::format("cannot write '{}'", name.path),
                fmt::format("{} particles, GADGET's binary types hold 2^31 - 1", part.rows()),
                "write more files or HDF5");
  }
  const bool doubles = options.coordinates == CoordinateNumbers::kDouble;
  const std::uint64_t real = doubles ? 8 : 4, reals = part.equal_mass == 0 ? 7 : 6;
  const std::uint64_t bytes = sizeof(BinaryHeader) + part.rows() * (reals * real + (part.wide_ids ? 8 : 4));
  BinaryWriter out(name, part, options, bytes);
  out.header(make_header(part, doubles));
  doubles ? write_reals<double>(out, part) : write_reals<float>(out, part);
  part.wide_ids ? write_ids<std::uint64_t>(out, part) : write_ids<std::uint32_t>(out, part);
  if (part.equal_mass == 0) doubles ? write_masses<double>(out, part) : write_masses<float>(out, part);
  out.finish();
}

}  // namespace maki::gadget
