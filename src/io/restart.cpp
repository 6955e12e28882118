#include "src/io/restart.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <numeric>

#include "host/comm/communicator.hpp"
#include "kernels/device/fft.hpp"
#include "kernels/error.hpp"
#include "src/io/hdf5_file.hpp"
#include "src/io/restart_folder.hpp"
#include "src/io/safe_file.hpp"

namespace maki {

namespace {

namespace folder = restart_folder;

constexpr std::size_t kRowsAtOnce = std::size_t{1} << 20;

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

// HDF5 makes the file and gives the addresses of the numbers, which are then written without it: where a disk fills up
// in the middle of a write of its own, the library cannot close the file.
std::vector<std::uint64_t> lay_out(const SafeFile& file, const std::vector<RestartColumn>& columns,
                                   const StateNumbers& numbers) {
  H5Id hdf5 = create_hdf5(file.temporary_path());
  write_numbers(hdf5, numbers);
  std::vector<std::uint64_t> addresses;
  std::map<std::string, H5Id> groups;
  for (const RestartColumn& c : columns) {
    if (!groups.contains(c.group)) groups[c.group] = create_group(hdf5, c.group);
    const H5Id dataset = create_dataset(groups[c.group], c.name, c.file_type, c.rows, c.columns, 0);
    addresses.push_back(dataset_address(dataset));
  }
  groups.clear();
  close_hdf5(hdf5, file.path());
  return addresses;
}

// Returns the file's checksum.
std::string write_rank_file(const std::string& path, const StateNumbers& state, const ParticleRows& particles,
                            const EscaperRows& escapers) {
  // Columns serve reading and writing; the rows are not changed here.
  const std::vector<RestartColumn> columns =
      restart_columns(const_cast<ParticleRows&>(particles), const_cast<EscaperRows&>(escapers));
  SafeFile file(path);
  const std::vector<std::uint64_t> addresses = lay_out(file, columns, state);
  PositionedFile numbers(file.temporary_path(), path);
  std::vector<unsigned char> block;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const RestartColumn& c = columns[i];
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

// Rows of all files, one file after another, and this rank's part of them.
struct Rows {
  std::vector<std::uint64_t> begins{0};  // first row of each file
  Share mine;
};

// Each rank's own file where there are as many ranks as files, else even shares.
Rows share_out(const std::vector<std::uint64_t>& sizes, const Communicator& ranks) {
  Rows rows;
  for (const std::uint64_t size : sizes) rows.begins.push_back(rows.begins.back() + size);
  const auto rank = static_cast<std::size_t>(ranks.rank());
  rows.mine = sizes.size() == static_cast<std::size_t>(ranks.size())
                  ? Share{rows.begins[rank], rows.begins[rank + 1]}
                  : share_of(rows.begins.back(), ranks.rank(), ranks.size());
  return rows;
}

// Reads this rank's rows of one file into their places in the columns.
void read_rows_of(const std::string& path, std::size_t file, const char* group, const Rows& rows,
                  const std::vector<RestartColumn>& columns) {
  const std::uint64_t begin = std::max(rows.mine.first, rows.begins[file]);
  const std::uint64_t end = std::min(rows.mine.end, rows.begins[file + 1]);
  if (begin >= end) return;
  const H5Id hdf5 = open_hdf5(path);
  const H5Id parent = open_group(hdf5, group);
  std::vector<unsigned char> block;
  for (const RestartColumn& c : columns) {
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

// Compares sizes and checksums; each rank checks some of the files.
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

std::uint64_t RestartInfo::total() const {
  return std::accumulate(particles.begin(), particles.end(), std::uint64_t{0});
}

std::string write_restart(const std::string& directory, const RestartInfo& of, const StateNumbers& numbers,
                          const RestartRows& rows, int keep, const Communicator& ranks) {
  std::string path = (std::filesystem::path(directory) / folder::name_of(of.step)).string();
  try {
    root_succeeds(ranks, [&] { folder::begin(path); });
    std::string checksum;
    all_succeed(ranks, [&] {
      checksum = write_rank_file(folder::rank_file(path, ranks.rank()), numbers, rows.particles, rows.escapers);
      save_fft_wisdom(folder::plans_file(path, ranks.rank()));
    });
    RestartInfo info = of;
    info.format = kRestartFormat;
    info.path = path;
    info.checksums = gather_texts(ranks, checksum);
    info.particles.resize(static_cast<std::size_t>(ranks.size()));
    const std::uint64_t mine = rows.particles.size();
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
    // A path with a slash at its end, "out/restart_000123/", has no filename.
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

void require_known_format(const RestartInfo& info) {
  if (info.format == kRestartFormat) return;
  throw Error(fmt::format("cannot resume from '{}'", info.path),
              fmt::format("it has format {}, this version of maki reads format {}", info.format, kRestartFormat),
              info.provenance.version.empty() ? "" : fmt::format("resume with {}", info.provenance.version));
}

Restart read_restart(const RestartInfo& info, const Communicator& ranks) {
  require_known_format(info);
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
    const std::vector<RestartColumn> columns = restart_columns(restart.particles, restart.escapers);
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

void take_plans(const RestartInfo& info, const Communicator& ranks) {
  load_fft_wisdom(folder::plans_file(info.path, ranks.rank()));
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
