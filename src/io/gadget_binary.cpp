// GADGET's binary types 1 and 2, in either byte order, with 32- or 64-bit numbers and ids.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <fstream>
#include <limits>
#include <string_view>
#include <utility>

#include "host/comm/communicator.hpp"
#include "kernels/error.hpp"
#include "src/io/gadget.hpp"
#include "src/io/gadget_write.hpp"

namespace maki::gadget {

namespace {

constexpr const char* kAdvice = "the file is damaged or incomplete; copy or make it again";

struct Block {
  std::uint64_t offset, bytes;  // place and length of the data in the file
};

class BinaryReader {
 public:
  explicit BinaryReader(const std::string& path) : path_(path), in_(path, std::ios::binary | std::ios::ate) {
    if (!in_) throw Error(fmt::format("cannot read '{}'", path), "it cannot be opened", "check its permissions");
    size_ = static_cast<std::uint64_t>(in_.tellg());
    std::uint32_t first = 0;
    get(0, &first, sizeof(first));
    swap_ = is_header_size(byte_swapped(first)) || first == byte_swapped(kLabelBytes);
    labelled_ = word(0) == kLabelBytes;
    const auto block = next(0, "HEAD");
    if (block.bytes > sizeof(BinaryHeader) || !is_header_size(static_cast<std::uint32_t>(block.bytes))) {
      fail(fmt::format("the header has {} bytes instead of 256", block.bytes));
    }
    header_at_ = block.offset;
    own_types_ = types_of_own_header(static_cast<std::uint32_t>(block.bytes));
    if (own_types_ == 0) get(block.offset, &header_, sizeof(header_));
    if (swap_) swap_header(header_);
    end_of_header_ = block.offset + block.bytes + sizeof(std::uint32_t);
  }

  const BinaryHeader& header() const { return header_; }
  // Of GADGET-4's own header: its types, 0 for GADGET-2's; and number `index` of its 64-bit ones.
  std::size_t own_types() const { return own_types_; }
  template <class T>
  T own_number(std::size_t index) {
    T value{};
    get(header_at_ + sizeof(std::uint64_t) * index, &value, sizeof(T));
    return swap_ ? byte_swapped(value) : value;
  }
  bool swapped() const { return swap_; }
  bool labelled() const { return labelled_; }

  // Finds the blocks of positions, velocities, ids and masses of `particles`, of which `massive` (0: no such block) have
  // a mass of their own. Type 1 has them in this order, type 2 labels them.
  std::array<Block, 4> blocks(std::uint64_t particles, std::uint64_t massive) {
    numbers_ = {3 * particles, 3 * particles, particles, massive};
    std::array<Block, 4> found{};
    std::uint64_t at = end_of_header_;
    for (std::size_t i = 0; i < (massive > 0 ? 4u : 3u); ++i) {
      if (labelled_) at = find(kLabels[i]);
      found[i] = next(at, kLabels[i]);
      at = found[i].offset + found[i].bytes + sizeof(std::uint32_t);
    }
    return found;
  }

  // Calls put(index, value) for the numbers [first, first + count) of a block of T.
  template <class T, class Put>
  void each(const Block& block, std::uint64_t first, std::uint64_t count, Put put) {
    std::vector<T> slab;
    for (std::uint64_t done = 0; done < count; done += kRowsAtOnce) {
      slab.resize(static_cast<std::size_t>(std::min<std::uint64_t>(kRowsAtOnce, count - done)));
      get(block.offset + (first + done) * sizeof(T), slab.data(), slab.size() * sizeof(T));
      for (std::size_t i = 0; i < slab.size(); ++i) put(done + i, swap_ ? byte_swapped(slab[i]) : slab[i]);
    }
  }

  [[noreturn]] void fail(const std::string& reason, const std::string& advice = kAdvice) const {
    throw Error(fmt::format("cannot read '{}'", path_), reason, advice);
  }

 private:
  void get(std::uint64_t at, void* data, std::size_t bytes) {
    if (at + bytes > size_) fail(fmt::format("the file ends at byte {}, {} are needed", size_, at + bytes));
    in_.seekg(static_cast<std::streamoff>(at));
    in_.read(static_cast<char*>(data), static_cast<std::streamsize>(bytes));
    if (!in_) fail(fmt::format("bytes {} to {} cannot be read", at, at + bytes), "check the disk");
  }
  std::uint32_t word(std::uint64_t at) {
    std::uint32_t value = 0;
    get(at, &value, sizeof(value));
    return swap_ ? byte_swapped(value) : value;
  }

  // The block whose record (or label, in type 2) starts at `at`. The length there has its low 32 bits only: it is what
  // the header promises, or, of other blocks, the first after which the same word stands.
  Block next(std::uint64_t at, const std::string& what) {
    if (labelled_) at += kLabelBytes + 2 * sizeof(std::uint32_t);
    const std::uint32_t low = word(at);
    const std::uint64_t data = at + sizeof(std::uint32_t);
    const auto closed = [&](std::uint64_t bytes) {
      return data + bytes + sizeof(std::uint32_t) <= size_ && word(data + bytes) == low;
    };
    const auto known = static_cast<std::size_t>(std::ranges::find(kLabels, what) - kLabels.begin());
    for (const std::uint64_t width : {4u, 8u}) {
      const std::uint64_t bytes = known < kLabels.size() ? width * numbers_[known] : 0;
      if (bytes > 0 && static_cast<std::uint32_t>(bytes) == low && closed(bytes)) return {data, bytes};
    }
    constexpr std::uint64_t kTurn = std::uint64_t{1} << 32;
    const bool empty = known == kLabels.size() || numbers_[known] == 0;
    const std::uint64_t least = low == 0 && !empty ? kTurn : low;
    for (std::uint64_t bytes = least; data + bytes + sizeof(std::uint32_t) <= size_; bytes += kTurn) {
      if (closed(bytes)) return {data, bytes};
    }
    if (data + least + sizeof(std::uint32_t) <= size_) {
      fail(fmt::format("the block '{}' of {} bytes is not closed by its length", what, least));
    }
    fail(fmt::format("the file ends at byte {}, within the block '{}' of {} bytes", size_, what, least));
  }

  // Offset of a block's label in a file of type 2.
  std::uint64_t find(const std::string& label) {
    for (std::uint64_t at = end_of_header_; at < size_;) {
      char name[4];
      get(at + sizeof(std::uint32_t), name, 4);
      if (label.compare(0, 4, name, 4) == 0) return at;
      const Block block = next(at, std::string(name, 4));
      at = block.offset + block.bytes + sizeof(std::uint32_t);
    }
    fail(fmt::format("there is no block '{}'", label));
  }

  static constexpr std::array<const char*, 4> kLabels{"POS ", "VEL ", "ID  ", "MASS"};

  std::string path_;
  std::ifstream in_;
  std::array<std::uint64_t, 4> numbers_{};  // of the blocks of kLabels
  std::uint64_t size_ = 0, header_at_ = 0, end_of_header_ = 0;
  std::size_t own_types_ = 0;
  bool swap_ = false, labelled_ = false;
  BinaryHeader header_{};
};

// Bytes of one number in a block of `count` numbers. Throws Error unless 4 or 8.
std::uint64_t width(const BinaryReader& in, const Block& block, std::uint64_t count, const char* label) {
  for (const std::uint64_t bytes : {4u, 8u}) {
    if (block.bytes == count * bytes) return bytes;
  }
  in.fail(fmt::format("the block '{}' has {} bytes, the header promises {} numbers", label, block.bytes, count));
}

template <class Put>
void read_reals(BinaryReader& in, const Block& block, std::uint64_t first, std::uint64_t count, std::uint64_t bytes,
                Put put) {
  if (bytes == 4) {
    in.each<float>(block, first, count, put);
  } else {
    in.each<double>(block, first, count, put);
  }
}

}  // namespace

bool looks_binary(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::uint32_t first = 0;
  if (!in.read(reinterpret_cast<char*>(&first), sizeof(first))) return false;
  return std::ranges::any_of(std::array{first, byte_swapped(first)},
                             [](std::uint32_t bytes) { return is_header_size(bytes) || bytes == kLabelBytes; });
}

namespace {

void read_own_header(BinaryReader& in, FileHeader& header) {
  const std::size_t types = in.own_types(), after = 3 * types;
  for (std::size_t type = 0; type < types; ++type) {
    header.counts[type] = in.own_number<std::uint64_t>(type);
    header.totals[type] = in.own_number<std::uint64_t>(types + type);
    header.mass_table[type] = in.own_number<double>(2 * types + type);
  }
  header.set.time = in.own_number<double>(after);
  header.set.redshift = in.own_number<double>(after + 1);
  header.set.box_size = in.own_number<double>(after + 2);
  header.files = std::max(1, in.own_number<std::int32_t>(after + 3));
}

void read_gadget2_header(const BinaryReader& in, FileHeader& header) {
  const BinaryHeader& h = in.header();
  for (std::size_t type = 0; type < kTypes; ++type) {
    if (h.counts[type] < 0) in.fail(fmt::format("the header counts {} particles of type {}", h.counts[type], type));
    header.counts[type] = static_cast<std::uint64_t>(h.counts[type]);
    header.totals[type] = h.totals_low[type] + (std::uint64_t{h.totals_high[type]} << 32);
    header.mass_table[type] = h.mass_table[type];
  }
  header.files = std::max(1, h.files);
  header.set.time = h.time;
  header.set.redshift = h.redshift;
  header.set.box_size = h.box_size;
  header.set.omega0 = h.omega0;
  header.set.omega_lambda = h.omega_lambda;
  header.set.hubble = h.hubble;
}

// The number of particles that have masses in a block.
std::uint64_t own_masses(const FileHeader& header) {
  std::uint64_t count = 0;
  for (std::size_t type = 0; type < kTypes; ++type) count += header.mass_table[type] > 0 ? 0 : header.counts[type];
  return count;
}

}  // namespace

FileHeader read_binary_header(const std::string& path) {
  BinaryReader in(path);
  FileHeader header;
  header.format = fmt::format("{} binary type {}, {} endian", in.own_types() > 0 ? "GADGET-4" : "GADGET",
                              in.labelled() ? 2 : 1, in.swapped() ? "big" : "little");
  if (in.own_types() > 0) {
    read_own_header(in, header);
  } else {
    read_gadget2_header(in, header);
  }
  if (header.files == 1) header.totals = header.counts;
  if (sum(header.counts) > 0)
    (void)in.blocks(sum(header.counts), own_masses(header));  // throws where the file is truncated
  return header;
}

void read_binary_particles(const std::string& path, const FileHeader& header, const Rows& rows, Snapshot& s) {
  BinaryReader in(path);
  const std::uint64_t n = sum(header.counts), wanted = rows.end - rows.begin;
  const std::uint64_t with_mass = own_masses(header);
  if (wanted == 0) return;
  const auto [positions, velocities, ids, masses] = in.blocks(n, with_mass);
  read_reals(in, positions, 3 * rows.begin, 3 * wanted, width(in, positions, 3 * n, "POS "),
             [&](std::uint64_t i, auto x) { s.positions[rows.at + i / 3][i % 3] = x; });
  read_reals(in, velocities, 3 * rows.begin, 3 * wanted, width(in, velocities, 3 * n, "VEL "),
             [&](std::uint64_t i, auto v) { s.velocities[rows.at + i / 3][i % 3] = static_cast<float>(v); });
  const auto put_id = [&](std::uint64_t i, auto id) { s.ids[rows.at + i] = id; };
  if (width(in, ids, n, "ID  ") == 4) {
    in.each<std::uint32_t>(ids, rows.begin, wanted, put_id);
  } else {
    in.each<std::uint64_t>(ids, rows.begin, wanted, put_id);
  }
  std::uint64_t type_begin = 0, in_block = 0;
  for (std::size_t type = 0; type < kTypes; type_begin += header.counts[type], ++type) {
    const std::uint64_t begin = std::max(rows.begin, type_begin);
    const std::uint64_t end = std::min(rows.end, type_begin + header.counts[type]);
    const std::size_t at = rows.at + (begin - rows.begin);
    if (begin < end && header.mass_table[type] > 0) {
      std::fill_n(&s.masses[at], end - begin, static_cast<float>(header.mass_table[type]));
    } else if (begin < end) {
      read_reals(in, masses, in_block + (begin - type_begin), end - begin, width(in, masses, with_mass, "MASS"),
                 [&](std::uint64_t i, auto m) { s.masses[at + i] = static_cast<float>(m); });
    }
    if (!(header.mass_table[type] > 0)) in_block += header.counts[type];
  }
}

// Writing the same types.

static_assert(std::endian::native == std::endian::little);

namespace {

// One file: the bytes that rank 0 writes (header, labels, markers), and the blocks, whose rows all ranks write.
class BinaryOutput {
 public:
  explicit BinaryOutput(const Part& part)
      : part_(part), swap_(part.options.big_endian), labelled_(part.options.format == SnapshotFormat::kGadgetBinary2) {}

  void header(BinaryHeader h) {
    if (swap_) swap_header(h);
    begin_block("HEAD", sizeof(h));
    put(std::string_view(reinterpret_cast<const char*>(&h), sizeof(h)));
    put(std::uint32_t{sizeof(h)});
  }

  // A block of numbers value(i, column) of type T.
  template <class T, class Value>
  void block(const char* label, std::size_t columns, Value value) {
    const std::uint64_t bytes = part_.rows() * columns * sizeof(T);
    begin_block(label, bytes);
    const auto ordered_value = [this, value](std::size_t i, std::size_t column) { return ordered(value(i, column)); };
    blocks_.push_back({end_, row_source<T>(columns, ordered_value)});
    end_ += bytes;
    put(static_cast<std::uint32_t>(bytes));
  }

  // Collective; throws the same Error on all ranks.
  void write(const FileName& name) const {
    root_succeeds(part_.ranks, [&] {  // up to the last marker: the file has its full size before other ranks open it
      PositionedFile file(name.temporary, name.path);
      for (const auto& [at, bytes] : between_) file.write_at(at, bytes.data(), bytes.size());
      file.finish();
    });
    all_succeed(part_.ranks, [&] {
      PositionedFile file(name.temporary, name.path);
      for (const auto& [at, rows] : blocks_) write_in_place(file, part_, rows, at);
      file.finish();
    });
  }

 private:
  template <class T>
  T ordered(T value) const {
    return swap_ ? byte_swapped(value) : value;
  }
  void put(std::string_view bytes) {
    between_.emplace_back(end_, bytes);
    end_ += bytes.size();
  }
  void put(std::uint32_t word) {
    word = ordered(word);
    put(std::string_view(reinterpret_cast<const char*>(&word), sizeof(word)));
  }
  // Label and first marker.
  void begin_block(const char* label, std::uint64_t bytes) {
    if (labelled_) {
      put(kLabelBytes);
      put(std::string_view(label));
      put(static_cast<std::uint32_t>(bytes +
                                     2 * sizeof(std::uint32_t)));  // bytes that a reader skips to the next block
      put(kLabelBytes);
    }
    put(static_cast<std::uint32_t>(bytes));
  }

  const Part& part_;
  bool swap_, labelled_;
  std::uint64_t end_ = 0;
  std::vector<std::pair<std::uint64_t, std::string>> between_;
  std::vector<std::pair<std::uint64_t, RowSource>> blocks_;
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
void add_reals(BinaryOutput& out, const Part& part) {
  out.block<T>("POS ", 3, [&](std::size_t i, std::size_t axis) { return coordinate<T>(part, i, axis); });
  out.block<T>("VEL ", 3, [&](std::size_t i, std::size_t axis) { return velocity<T>(part, i, axis); });
}

template <class T>
void add_ids(BinaryOutput& out, const Part& part) {
  out.block<T>("ID  ", 1, [&](std::size_t i, std::size_t) { return id<T>(part, i); });
}

template <class T>
void add_masses(BinaryOutput& out, const Part& part) {
  out.block<T>("MASS", 1, [&](std::size_t i, std::size_t) { return mass<T>(part, i); });
}

}  // namespace

void write_binary_file(const FileName& name, const Part& part) {
  if (part.rows() > static_cast<std::uint64_t>(std::numeric_limits<std::int32_t>::max())) {
    throw Error(fmt::format("cannot write '{}'", name.path),
                fmt::format("{} particles, GADGET's binary types hold 2^31 - 1", part.rows()),
                "write more files or HDF5");
  }
  const bool doubles = part.options.coordinates == CoordinateNumbers::kDouble;
  BinaryOutput out(part);
  out.header(make_header(part, doubles));
  doubles ? add_reals<double>(out, part) : add_reals<float>(out, part);
  part.wide_ids ? add_ids<std::uint64_t>(out, part) : add_ids<std::uint32_t>(out, part);
  if (part.equal_mass == 0) doubles ? add_masses<double>(out, part) : add_masses<float>(out, part);
  out.write(name);
}

}  // namespace maki::gadget
