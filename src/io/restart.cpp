#include "src/io/restart.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <functional>
#include <numeric>

#include "host/comm/agree.hpp"
#include "host/comm/share.hpp"
#include "kernels/device/error.hpp"
#include "src/io/hdf5_file.hpp"
#include "src/io/restart_folder.hpp"
#include "src/io/safe_file.hpp"

namespace maki {

namespace {

namespace folder = restart_folder;

constexpr std::size_t kRowsAtOnce = std::size_t{1} << 20;

// An array of a rank's file. `get` makes its numbers of some rows, `put` takes rows that were read.
struct Column {
  const char* group;
  const char* name;
  hid_t memory_type, file_type;
  std::size_t columns, width;  // numbers a row, bytes a number
  std::size_t rows;
  std::function<void(std::size_t first, std::size_t count, void* to)> get;
  std::function<void(std::size_t first, std::size_t count, const void* from)> put;
};

// number(i, k) is a reference to number k of row i.
template <class T, class Number>
Column column(const char* group, const char* name, std::size_t columns, std::size_t rows, Number number) {
  const auto get = [=](std::size_t first, std::size_t count, void* to) {
    T* const numbers = static_cast<T*>(to);
    for (std::size_t i = 0; i < count; ++i)
      for (std::size_t k = 0; k < columns; ++k) numbers[i * columns + k] = number(first + i, k);
  };
  const auto put = [=](std::size_t first, std::size_t count, const void* from) {
    const T* const numbers = static_cast<const T*>(from);
    for (std::size_t i = 0; i < count; ++i)
      for (std::size_t k = 0; k < columns; ++k) number(first + i, k) = numbers[i * columns + k];
  };
  return {group, name, hdf5_memory_type<T>(), hdf5_file_type<T>(), columns, sizeof(T), rows, get, put};
}

std::vector<Column> columns_of(ParticleRows& p, EscaperRows& e) {
  const auto position = [&p](std::size_t i, std::size_t k) -> std::uint32_t& {
    return k == 0 ? p.source[i].x : k == 1 ? p.source[i].y : p.source[i].z;
  };
  const auto remainder = [&p](std::size_t i, std::size_t k) -> std::uint16_t& {
    return k == 0 ? p.remainder[i].x : k == 1 ? p.remainder[i].y : p.remainder[i].z;
  };
  const auto momentum = [&p](std::size_t i, std::size_t k) -> float& { return p.momentum[k][i]; };
  const auto mass = [&p](std::size_t i, std::size_t) -> float& { return p.source[i].mass; };
  const auto id = [&p](std::size_t i, std::size_t) -> std::uint64_t& { return p.id[i]; };
  const char* const own = "Particles";
  const char* const gone = "Escapers";
  return {column<std::uint32_t>(own, "Positions", 3, p.size(), position),
          column<std::uint16_t>(own, "Remainders", 3, p.size(), remainder),
          column<float>(own, "Momenta", 3, p.size(), momentum),
          column<float>(own, "Masses", 1, p.size(), mass),
          column<std::uint64_t>(own, "ParticleIDs", 1, p.size(), id),
          column<double>(gone, "Positions", 3, e.size(),
                         [&e](std::size_t i, std::size_t k) -> double& { return e.positions[i][k]; }),
          column<float>(gone, "Velocities", 3, e.size(),
                        [&e](std::size_t i, std::size_t k) -> float& { return e.velocities[i][k]; }),
          column<float>(gone, "Masses", 1, e.size(), [&e](std::size_t i, std::size_t) -> float& { return e.masses[i]; }),
          column<std::uint64_t>(gone, "ParticleIDs", 1, e.size(),
                                [&e](std::size_t i, std::size_t) -> std::uint64_t& { return e.ids[i]; }),
          column<double>(gone, "Times", 1, e.size(),
                         [&e](std::size_t i, std::size_t) -> double& { return e.times[i]; })};
}

void resize(ParticleRows& rows, std::size_t n) {
  rows.source.resize(n);
  rows.remainder.resize(n);
  for (auto& axis : rows.momentum) axis.resize(n);
  rows.id.resize(n);
}

void resize(EscaperRows& rows, std::size_t n) {
  rows.positions.resize(n);
  rows.velocities.resize(n);
  rows.masses.resize(n);
  rows.ids.resize(n);
  rows.times.resize(n);
}

void write_numbers(hid_t file, const StateNumbers& numbers) {
  H5Id reals = create_group(file, "Reals"), counts = create_group(file, "Counts");
  for (const auto& [name, values] : numbers.reals) write_attribute(reals, name, values.data(), values.size());
  for (const auto& [name, values] : numbers.counts) write_attribute(counts, name, values.data(), values.size());
}

template <class T>
void read_numbers(hid_t group, std::map<std::string, std::vector<T>>& numbers) {
  const auto keep = [](hid_t, const char* name, const H5A_info_t*, void* names) -> herr_t {
    static_cast<std::vector<std::string>*>(names)->push_back(name);
    return 0;
  };
  std::vector<std::string> names;
  hsize_t at = 0;
  check_hdf5(H5Aiterate2(group, H5_INDEX_NAME, H5_ITER_INC, &at, keep, &names), "cannot list attributes");
  for (const std::string& name : names) numbers[name] = read_attribute<T>(group, name);
}

// The library makes the file and says where numbers go; they are written past it, for when a disk fills up in the
// middle of its own writes it cannot let go of the file.
std::vector<std::uint64_t> lay_out(const SafeFile& file, const std::vector<Column>& columns,
                                   const StateNumbers& numbers) {
  H5Id hdf5 = create_hdf5(file.temporary_path());
  write_numbers(hdf5, numbers);
  std::vector<std::uint64_t> addresses;
  std::map<std::string, H5Id> groups;
  for (const Column& c : columns) {
    if (!groups.contains(c.group)) groups[c.group] = create_group(hdf5, c.group);
    const H5Id dataset = create_dataset(groups[c.group], c.name, c.file_type, c.rows, c.columns, 0);
    addresses.push_back(dataset_address(dataset));
  }
  groups.clear();
  close_hdf5(hdf5, file.path());
  return addresses;
}

// Gives back its checksum.
std::string write_rank_file(const std::string& path, const Restart& restart) {
  // Columns read and write; here they only read.
  const std::vector<Column> columns =
      columns_of(const_cast<ParticleRows&>(restart.particles), const_cast<EscaperRows&>(restart.escapers));
  SafeFile file(path);
  const std::vector<std::uint64_t> addresses = lay_out(file, columns, restart.numbers);
  PositionedFile numbers(file.temporary_path(), path);
  std::vector<unsigned char> block;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const Column& c = columns[i];
    const std::size_t row_bytes = c.columns * c.width;
    for (std::size_t first = 0; first < c.rows; first += kRowsAtOnce) {
      const std::size_t count = std::min(kRowsAtOnce, c.rows - first);
      block.resize(count * row_bytes);
      c.get(first, count, block.data());
      numbers.write_at(addresses[i] + first * row_bytes, block.data(), block.size());
    }
  }
  numbers.finish();
  std::string checksum = folder::checksum(file.temporary_path());
  file.commit();
  return checksum;
}

// Rows of all files in their order, as one.
struct Rows {
  std::vector<std::uint64_t> begins{0};  // of each file
  Share mine;
};

// As many ranks as files: each its own. Else even shares.
Rows share_out(const std::vector<std::uint64_t>& sizes, const Communicator& ranks) {
  Rows rows;
  for (const std::uint64_t size : sizes) rows.begins.push_back(rows.begins.back() + size);
  const auto rank = static_cast<std::size_t>(ranks.rank());
  rows.mine = sizes.size() == static_cast<std::size_t>(ranks.size())
                  ? Share{rows.begins[rank], rows.begins[rank + 1]}
                  : share_of(rows.begins.back(), ranks.rank(), ranks.size());
  return rows;
}

// What of this file is this rank's goes where it belongs in the columns' rows.
void read_rows_of(const std::string& path, std::size_t file, const char* group, const Rows& rows,
                  const std::vector<Column>& columns) {
  const std::uint64_t begin = std::max(rows.mine.first, rows.begins[file]);
  const std::uint64_t end = std::min(rows.mine.end, rows.begins[file + 1]);
  if (begin >= end) return;
  const H5Id hdf5 = open_hdf5(path);
  const H5Id parent = open_group(hdf5, group);
  std::vector<unsigned char> block;
  for (const Column& c : columns) {
    if (std::string(c.group) != group) continue;
    const H5Id dataset = open_dataset(parent, c.name);
    const std::vector<std::size_t> shape = dataset_shape(dataset);
    if (shape.empty() || shape[0] != rows.begins[file + 1] - rows.begins[file])
      throw Error(fmt::format("'{}' does not belong to its restart", path), "it has another number of particles");
    for (std::uint64_t first = begin; first < end; first += kRowsAtOnce) {
      const std::size_t count = std::min<std::uint64_t>(kRowsAtOnce, end - first);
      block.resize(count * c.columns * c.width);
      read_rows(dataset, first - rows.begins[file], count, c.memory_type, block.data());
      c.put(first - rows.mine.first, count, block.data());
    }
  }
}

std::uint64_t rows_in(const std::string& path, const char* name) {
  const H5Id file = open_hdf5(path);
  return dataset_shape(open_dataset(file, name)).at(0);
}

void check_format(const RestartInfo& info) {
  if (info.format == kRestartFormat) return;
  throw Error(fmt::format("cannot resume from '{}'", info.path),
              fmt::format("it has format {}, this version of maki reads format {}", info.format, kRestartFormat),
              info.provenance.version.empty() ? "" : fmt::format("resume with {}", info.provenance.version));
}

// Files are shared out among the ranks.
void check_files(const RestartInfo& info, const Communicator& ranks) {
  for (std::size_t file = static_cast<std::size_t>(ranks.rank()); file < info.checksums.size();
       file += static_cast<std::size_t>(ranks.size())) {
    const std::string path = folder::rank_file(info.path, static_cast<int>(file));
    if (folder::checksum(path) != info.checksums[file])
      throw Error(fmt::format("'{}' is damaged", path), "its checksum is another one",
                  fmt::format("remove {} and resume from an earlier restart", info.path));
  }
}

}  // namespace

std::uint64_t RestartInfo::total() const { return std::accumulate(particles.begin(), particles.end(), std::uint64_t{0}); }

void copy_to_rows(const Stream& stream, const Particles& particles, ParticleRows& rows) {
  const std::size_t n = particles.size();
  resize(rows, n);
  copy_to_host(stream, rows.source.data(), particles.source.data(), n * sizeof(SourceParticle));
  copy_to_host(stream, rows.remainder.data(), particles.remainder.data(), n * sizeof(Remainder));
  const DeviceBuffer<float>* const axes[3] = {&particles.momentum.x, &particles.momentum.y, &particles.momentum.z};
  for (std::size_t axis = 0; axis < 3; ++axis)
    copy_to_host(stream, rows.momentum[axis].data(), axes[axis]->data(), n * sizeof(float));
  copy_to_host(stream, rows.id.data(), particles.id.data(), n * sizeof(std::uint64_t));
}

void copy_from_rows(const Stream& stream, const ParticleRows& rows, Particles& particles) {
  particles.source.upload(stream, rows.source);
  particles.remainder.upload(stream, rows.remainder);
  particles.momentum.x.upload(stream, rows.momentum[0]);
  particles.momentum.y.upload(stream, rows.momentum[1]);
  particles.momentum.z.upload(stream, rows.momentum[2]);
  particles.id.upload(stream, rows.id);
  stream.synchronize();
}

std::string write_restart(const std::string& directory, const Restart& restart, int keep, const Communicator& ranks) {
  const std::string path = (std::filesystem::path(directory) / folder::name_of(restart.info.step)).string();
  try {
    root_succeeds(ranks, [&] { folder::begin(path); });
    std::string checksum;
    all_succeed(ranks, [&] { checksum = write_rank_file(folder::rank_file(path, ranks.rank()), restart); });
    RestartInfo info = restart.info;
    info.format = kRestartFormat;
    info.path = path;
    info.checksums = gather_texts(ranks, checksum);
    info.particles.resize(static_cast<std::size_t>(ranks.size()));
    const std::uint64_t mine = restart.particles.size();
    ranks.all_gather(&mine, info.particles.data(), sizeof mine);
    root_succeeds(ranks, [&] { folder::complete(path, info); });
  } catch (const Error&) {
    if (ranks.rank() == 0) folder::remove(path);
    throw;
  }
  root_succeeds(ranks, [&] { folder::prune(directory, path, keep); });
  return path;
}

std::vector<RestartInfo> find_restarts(const std::string& path, const Communicator& ranks) {
  namespace fs = std::filesystem;
  std::vector<std::string> folders;
  root_succeeds(ranks, [&] {
    // "out/restart_000123/" has no filename.
    const fs::path given = fs::path(path).has_filename() ? fs::path(path) : fs::path(path).parent_path();
    const bool one = folder::step_of(given.filename().string()) >= 0 && fs::is_directory(given);
    folders = one ? std::vector<std::string>{given.string()} : folder::list(path);
    std::erase_if(folders, [](const std::string& name) {
      RestartInfo info;
      return !folder::read(name, info);
    });
  });
  std::string all;
  for (const std::string& name : folders) all += name + '\n';
  all = broadcast_text(ranks, all);
  std::vector<RestartInfo> found;
  all_succeed(ranks, [&] {
    for (std::size_t at = 0; at < all.size(); at = all.find('\n', at) + 1) {
      const std::string name = all.substr(at, all.find('\n', at) - at);
      if (!folder::read(name, found.emplace_back()))
        throw Error(fmt::format("cannot read '{}/complete.toml'", name), "not every rank sees it",
                    "use a directory that all machines of the job share");
    }
  });
  return found;
}

Restart read_restart(const RestartInfo& info, const Communicator& ranks) {
  check_format(info);
  all_succeed(ranks, [&] { check_files(info, ranks); });
  Restart restart;
  restart.info = info;
  all_succeed(ranks, [&] {
    const std::size_t files = info.particles.size();
    std::vector<std::uint64_t> escapers;
    for (std::size_t file = 0; file < files; ++file)
      escapers.push_back(rows_in(folder::rank_file(info.path, static_cast<int>(file)), "Escapers/ParticleIDs"));
    const Rows rows = share_out(info.particles, ranks), gone = share_out(escapers, ranks);
    resize(restart.particles, rows.mine.size());
    resize(restart.escapers, gone.mine.size());
    const std::vector<Column> columns = columns_of(restart.particles, restart.escapers);
    for (std::size_t file = 0; file < files; ++file) {
      const std::string path = folder::rank_file(info.path, static_cast<int>(file));
      read_rows_of(path, file, "Particles", rows, columns);
      read_rows_of(path, file, "Escapers", gone, columns);
    }
    const H5Id first = open_hdf5(folder::rank_file(info.path, 0));
    const H5Id reals = open_group(first, "Reals"), counts = open_group(first, "Counts");
    read_numbers(reals, restart.numbers.reals);
    read_numbers(counts, restart.numbers.counts);
  });
  return restart;
}

std::vector<std::string> remove_restarts_after(const std::string& directory, std::uint64_t step,
                                               const Communicator& ranks) {
  std::string all;
  root_succeeds(ranks, [&] {
    for (const std::string& name : folder::list(directory)) {
      RestartInfo info;
      const bool whole = folder::read(name, info);
      const std::string last = std::filesystem::path(name).filename().string();
      if (whole && static_cast<std::uint64_t>(folder::step_of(last)) <= step) continue;
      if (whole) all += last + '\n';
      folder::remove(name);
    }
  });
  all = broadcast_text(ranks, all);
  std::vector<std::string> names;
  for (std::size_t at = 0; at < all.size(); at = all.find('\n', at) + 1)
    names.push_back(all.substr(at, all.find('\n', at) - at));
  return names;
}

}  // namespace maki
