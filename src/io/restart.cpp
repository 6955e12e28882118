#include "src/io/restart.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>

#include "host/comm/communicator.hpp"
#include "kernels/error.hpp"
#include "src/io/hdf5_file.hpp"

// ---- reading --------------------------------------------------------------------------------------------------------

namespace maki {
namespace {

namespace folder = restart_folder;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size(); at = text.find('\n', at) + 1)
    lines.push_back(text.substr(at, text.find('\n', at) - at));
  return lines;
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
      block.resize(count * c.source.row_bytes());
      read_rows(dataset, first - rows.begins[file], count, c.type, block.data());
      c.put(first - rows.mine.first, count, block.data());
    }
  }
}

std::uint64_t rows_in(const std::string& path, const char* name) {
  const H5Id file = open_hdf5(path);
  return dataset_shape(open_dataset(file, name)).at(0);
}

// Escapers in each rank's file. A rank opens a share of the files: opening all on each takes a file system of a cluster
// half an hour. Collective.
std::vector<std::uint64_t> escapers_of_files(const RestartInfo& info, const Communicator& ranks) {
  std::vector<std::uint64_t> rows(info.particles.size());
  all_succeed(ranks, [&] {
    const Hdf5Turn turn;
    for (auto file = static_cast<std::size_t>(ranks.rank()); file < rows.size();
         file += static_cast<std::size_t>(ranks.size()))
      rows[file] = rows_in(folder::rank_file(info.path, static_cast<int>(file)), "Escapers/ParticleIDs");
  });
  ranks.sum(rows);  // each is one rank's
  return rows;
}

// The damage of a file; empty where its checksum is right, and "cannot read ..." where it may be right.
std::string damage_of_file(const std::string& path, const std::string& checksum) {
  std::error_code unknown;
  if (!std::filesystem::exists(path, unknown) && !unknown) return fmt::format("'{}' is missing", path);
  try {
    return checksum_of_file(path) == checksum ? "" : fmt::format("'{}' has another checksum", path);
  } catch (const Error& error) {
    return error.what();
  }
}

}  // namespace

std::vector<RestartInfo> find_restarts(const std::string& path, const Communicator& ranks,
                                       std::vector<std::string>* damaged) {
  namespace fs = std::filesystem;
  std::string complete, broken;  // names, a line each
  root_succeeds(ranks, [&] {
    // A path with a slash at its end, "out/restart_000123/", has no filename.
    const fs::path given = fs::path(path).has_filename() ? fs::path(path) : fs::path(path).parent_path();
    const bool one = folder::step_of(given.filename().string()) >= 0 && fs::is_directory(given);
    for (const std::string& name : one ? std::vector<std::string>{given.string()} : folder::list(path)) {
      RestartInfo info;
      const folder::Found found = folder::read(name, info);
      if (found == folder::Found::kUnreadable)
        throw Error(fmt::format("cannot read '{}/complete.toml'", name), "it is there, and the restart may be whole",
                    "see to its permissions and to the disk, or name another restart to go on from");
      if (found != folder::Found::kIncomplete) (found == folder::Found::kComplete ? complete : broken) += name + '\n';
    }
  });
  std::vector<RestartInfo> found;
  const std::vector<std::string> names = lines_of(broadcast_text(ranks, complete));
  all_succeed(ranks, [&] {
    for (const std::string& name : names)
      if (folder::read(name, found.emplace_back()) != folder::Found::kComplete)
        throw Error(fmt::format("cannot read '{}/complete.toml'", name), "not every rank sees it",
                    "use a directory that all machines of the job share");
  });
  if (damaged) *damaged = lines_of(broadcast_text(ranks, broken));
  return found;
}

void require_known_format(const RestartInfo& info) {
  if (info.format == kRestartFormat) return;
  const Provenance& by = info.provenance;
  throw Error(fmt::format("cannot resume from '{}'", info.path),
              fmt::format("it has format {}, this version of maki reads format {}", info.format, kRestartFormat),
              by.version.empty()
                  ? ""
                  : fmt::format("resume with {}{}{}", by.version, by.git_hash.empty() ? "" : ", commit ", by.git_hash));
}

std::string damage_of(const RestartInfo& info, const Communicator& ranks) {
  std::string mine;
  all_succeed(ranks, [&] {  // a rank may be out of memory
    for (auto rank = static_cast<std::size_t>(ranks.rank()); rank < info.checksums.size() && mine.empty();
         rank += static_cast<std::size_t>(ranks.size()))
      mine = damage_of_file(folder::rank_file(info.path, static_cast<int>(rank)), info.checksums[rank]);
  });
  return first_text(ranks, mine);
}

Restart read_restart(const RestartInfo& info, const Communicator& ranks, bool known_whole) {
  require_known_format(info);
  if (const std::string damage = known_whole ? "" : damage_of(info, ranks); !damage.empty())
    throw Error(fmt::format("the restart '{}' is damaged", info.path), damage,
                "remove it and resume from an earlier restart");
  Restart restart;
  restart.info = info;
  const std::vector<std::uint64_t> escapers = escapers_of_files(info, ranks);
  all_succeed(ranks, [&] {
    const Hdf5Turn turn;
    const std::size_t files = info.particles.size();
    const Rows rows = share_out(info.particles, ranks), gone = share_out(escapers, ranks);
    const H5Id first = open_hdf5(folder::rank_file(info.path, 0));
    if (hdf5_exists(open_group(first, "Particles"), kLongAccelerations)) restart.particles.long_acceleration.emplace();
    resize(restart.particles, rows.mine.size());
    resize(restart.escapers, gone.mine.size());
    const std::vector<RestartColumn> columns = restart_columns(restart.particles, restart.escapers);
    for (std::size_t file = 0; file < files; ++file) {
      const std::string path = folder::rank_file(info.path, static_cast<int>(file));
      read_rows_of(path, file, "Particles", rows, columns);
      read_rows_of(path, file, "Escapers", gone, columns);
    }
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
      const folder::Found found = folder::read(name, info);
      const bool may_be_whole = found == folder::Found::kComplete || found == folder::Found::kUnreadable;
      const std::string last = std::filesystem::path(name).filename().string();
      if (may_be_whole && static_cast<std::uint64_t>(folder::step_of(last)) <= step) continue;
      if (may_be_whole) all += last + '\n';
      folder::remove(name);
    }
  });
  return lines_of(broadcast_text(ranks, all));
}

// ---- writing --------------------------------------------------------------------------------------------------------

struct RestartWriter::Folder {
  std::string directory;
  RestartInfo info;
  int keep;
  std::uint64_t needed;
  std::string checksum = {};  // of this rank's file, by its thread

  // Makes the folder a restart, and removes older ones. Throws Error.
  void complete() const;
  // Removes what was begun; not a restart of another run, whose directory may have taken the name of this run's.
  void remove() const noexcept;
};

void RestartWriter::Folder::remove() const noexcept try {
  RestartInfo there;
  const folder::Found found = folder::read(info.path, there);
  if (found == folder::Found::kUnreadable || (found == folder::Found::kComplete && there.run != info.run)) return;
  folder::remove(info.path);
} catch (const std::exception&) {  // no memory: it stays
}

void RestartWriter::Folder::complete() const {
  try {
    folder::complete(info.path, info);
  } catch (const std::exception&) {
    remove();
    throw;
  }
  try {
    folder::prune(directory, info, keep, needed);
  } catch (const std::exception&) {  // the directory cannot be listed: the next restart tries again
  }
}

namespace {

void write_numbers(hid_t file, const StateNumbers& numbers) {
  H5Id reals = create_group(file, "Reals"), counts = create_group(file, "Counts");
  for (const auto& [name, values] : numbers.reals) write_attribute(reals, name, values.data(), values.size());
  for (const auto& [name, values] : numbers.counts) write_attribute(counts, name, values.data(), values.size());
}

// HDF5 makes the file and returns the addresses of the numbers, which are then written without it: the library cannot
// close a file after its own write met a full disk, and only one thread may call it.
std::vector<std::uint64_t> lay_out(const SafeFile& file, const std::vector<RestartColumn>& columns,
                                   const StateNumbers& numbers) {
  H5Id hdf5 = create_hdf5(file.temporary_path());
  write_numbers(hdf5, numbers);
  std::vector<std::uint64_t> addresses;
  std::map<std::string, H5Id> groups;
  for (const RestartColumn& c : columns) {
    if (!groups.contains(c.group)) groups[c.group] = create_group(hdf5, c.group);
    const H5Id dataset = create_dataset(groups[c.group], c.name, c.type, c.rows, c.source.columns, 0);
    addresses.push_back(dataset_address(dataset));
  }
  groups.clear();
  close_hdf5(hdf5, file.path());
  return addresses;
}

// The file of a rank, laid out.
struct RankFile {
  SafeFile file;
  std::vector<RestartColumn> columns;
  std::vector<std::uint64_t> addresses;  // of the columns
  std::shared_ptr<const void> owner;     // of the data of the columns
};

RankFile begin_file(const std::string& path, int rank, const StateNumbers& numbers, const RestartRows& rows) {
  // Columns are for reading and writing; here the rows do not change.
  RankFile begun{SafeFile(folder::rank_file(path, rank)),
                 restart_columns(const_cast<ParticleRows&>(rows.particles), const_cast<EscaperRows&>(rows.escapers)),
                 {},
                 rows.owner};
  begun.addresses = lay_out(begun.file, begun.columns, numbers);
  begun.file.reserve(std::filesystem::file_size(begun.file.temporary_path()));
  return begun;
}

// Returns the checksum.
std::string write_file(RankFile& begun) {
  PositionedFile numbers(begun.file.temporary_path(), begun.file.path());
  for (std::size_t i = 0; i < begun.columns.size(); ++i)
    write_rows_at(numbers, begun.columns[i].source, begun.columns[i].rows, begun.addresses[i]);
  numbers.finish();
  const std::string checksum = checksum_of_file(begun.file.temporary_path());
  begun.file.commit();
  return checksum;
}

}  // namespace

void RestartWriter::begin(const std::string& directory, const RestartInfo& of, const StateNumbers& numbers,
                          const RestartRows& rows, int keep, std::uint64_t needed) {
  const RankThreads::MainWork work(threads_);
  const Hdf5Turn turn;
  const auto made = std::make_shared<Folder>(Folder{directory, of, keep, needed});
  RestartInfo& info = made->info;
  info.format = kRestartFormat;
  info.path = (std::filesystem::path(directory) / folder::name_of(of.step)).string();
  info.particles = gathered(ranks_, std::uint64_t{rows.particles.size()});
  auto file = std::make_shared<std::optional<RankFile>>();  // destroyed with the thread's work
  try {
    root_succeeds(ranks_, [&] { folder::begin(info.path); });
    all_succeed(ranks_, [&] { file->emplace(begin_file(info.path, ranks_.rank(), numbers, rows)); });
  } catch (const std::exception& error) {  // of one rank, also what all_succeed() makes an Error for several
    file->reset();
    if (ranks_.rank() == 0) made->remove();
    throw Error(message_of(error));
  }
  completing_ = ranks_.size() == 1;  // no other rank to wait for
  threads_.start([file = std::move(file), made, alone = completing_] {
    made->checksum = write_file(**file);
    if (!alone) return;
    made->info.checksums = {made->checksum};
    made->complete();
  });
  folder_ = made;
}

std::optional<RestartOutcome> RestartWriter::look() { return busy() && threads_.all_done() ? advance() : std::nullopt; }

RestartOutcome RestartWriter::wait() {
  for (;;) {
    threads_.wait();
    if (const std::optional<RestartOutcome> outcome = advance()) return *outcome;
  }
}

// Proceeds from the files of all ranks to complete.toml, and then to the outcome. All ranks' threads have finished.
std::optional<RestartOutcome> RestartWriter::advance() {
  const std::string problem = threads_.problem();
  if (!problem.empty() || completing_) return conclude(problem);
  folder_->info.checksums = gather_texts(ranks_, folder_->checksum);
  completing_ = true;
  if (ranks_.rank() == 0) threads_.start([folder = folder_] { folder->complete(); });
  return {};
}

RestartOutcome RestartWriter::conclude(const std::string& problem) {
  if (!problem.empty() && ranks_.rank() == 0) folder_->remove();
  RestartOutcome outcome{folder_->info.step, folder_->info.path, problem, threads_.take_seconds()};
  folder_.reset();
  return outcome;
}

}  // namespace maki
