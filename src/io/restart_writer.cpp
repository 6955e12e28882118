#include "src/io/restart_writer.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>

#include "kernels/device/fft.hpp"
#include "kernels/error.hpp"
#include "src/io/checksum.hpp"
#include "src/io/hdf5_file.hpp"
#include "src/io/restart_folder.hpp"
#include "src/io/safe_file.hpp"

namespace maki {

namespace folder = restart_folder;

struct RestartWriter::Folder {
  std::string directory;
  RestartInfo info;
  int keep;
  std::uint64_t needed;

  // Makes the folder a restart, and removes older ones. Throws Error.
  void complete() const;
};

void RestartWriter::Folder::complete() const {
  try {
    folder::complete(info.path, info);
  } catch (const std::exception&) {
    folder::remove(info.path);
    throw;
  }
  try {
    folder::prune(directory, info.path, keep, needed);
  } catch (const Error&) {  // the directory cannot be listed: the next restart tries again
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
    const H5Id dataset = create_dataset(groups[c.group], c.name, c.file_type, c.rows, c.columns, 0);
    addresses.push_back(dataset_address(dataset));
  }
  groups.clear();
  close_hdf5(hdf5, file.path());
  return addresses;
}

// The files of a rank, laid out.
struct RankFiles {
  SafeFile file;
  std::vector<RestartColumn> columns;
  std::vector<std::uint64_t> addresses;  // of the columns
  std::string plans_path, plans;         // no file where there are none
  std::shared_ptr<const void> owner;     // of the data of the columns
};

RankFiles begin_files(const std::string& path, int rank, const StateNumbers& numbers, const RestartRows& rows) {
  // Columns are for reading and writing; here the rows do not change.
  RankFiles files{SafeFile(folder::rank_file(path, rank)),
                  restart_columns(const_cast<ParticleRows&>(rows.particles), const_cast<EscaperRows&>(rows.escapers)),
                  {},
                  folder::plans_file(path, rank),
                  fft_wisdom(),
                  rows.owner};
  files.addresses = lay_out(files.file, files.columns, numbers);
  files.file.reserve(std::filesystem::file_size(files.file.temporary_path()));
  return files;
}

void write_columns(const RankFiles& files) {
  PositionedFile numbers(files.file.temporary_path(), files.file.path());
  std::vector<unsigned char> block;
  for (std::size_t i = 0; i < files.columns.size(); ++i) {
    const RestartColumn& c = files.columns[i];
    const std::size_t row_bytes = c.columns * c.width;
    for (std::size_t first = 0; first < c.rows; first += kRowsAtOnce) {
      const std::size_t count = std::min(kRowsAtOnce, c.rows - first);
      block.resize(count * row_bytes);
      c.get(first, count, block.data());
      numbers.write_at(files.addresses[i] + first * row_bytes, block.data(), block.size());
    }
  }
  numbers.finish();
}

// Returns the checksum of the plans; "" where there are none.
std::string write_plans(const RankFiles& files) {
  if (files.plans.empty()) return {};
  SafeFile file(files.plans_path);
  file.write(files.plans);
  file.commit();
  return checksum_of(files.plans);
}

RestartPart write_files(RankFiles& files) {
  write_columns(files);
  RestartPart part{checksum_of_file(files.file.temporary_path()), {}};
  files.file.commit();
  part.plans = write_plans(files);
  return part;
}

}  // namespace

void RestartWriter::begin(const std::string& directory, const RestartInfo& of, const StateNumbers& numbers,
                          const RestartRows& rows, int keep, std::uint64_t needed) {
  begun_ = std::chrono::steady_clock::now();
  folder_ = std::make_shared<Folder>(Folder{directory, of, keep, needed});
  RestartInfo& info = folder_->info;
  info.format = kRestartFormat;
  info.path = (std::filesystem::path(directory) / folder::name_of(of.step)).string();
  info.particles = gathered(ranks_, std::uint64_t{rows.particles.size()});
  auto files = std::make_shared<std::optional<RankFiles>>();  // destroyed with the thread's work
  try {
    root_succeeds(ranks_, [&] { folder::begin(info.path); });
    all_succeed(ranks_, [&] { files->emplace(begin_files(info.path, ranks_.rank(), numbers, rows)); });
  } catch (const Error&) {
    files->reset();
    if (ranks_.rank() == 0) folder::remove(info.path);
    throw;
  }
  completing_ = ranks_.size() == 1;  // no other rank to wait for
  part_ = std::make_shared<RestartPart>();
  threads_.start([files = std::move(files), part = part_, alone = completing_ ? folder_ : nullptr] {
    *part = write_files(**files);
    if (!alone) return;
    alone->info.checksums = {part->checksum};
    alone->info.plans = {part->plans};
    alone->complete();
  });
  busy_ = true;
}

std::optional<RestartOutcome> RestartWriter::look() { return busy_ && threads_.all_done() ? advance() : std::nullopt; }

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
  folder_->info.checksums = gather_texts(ranks_, part_->checksum);
  folder_->info.plans = gather_texts(ranks_, part_->plans);
  completing_ = true;
  if (ranks_.rank() == 0) threads_.start([folder = folder_] { folder->complete(); });
  return {};
}

RestartOutcome RestartWriter::conclude(const std::string& problem) {
  const std::chrono::duration<double> since = std::chrono::steady_clock::now() - begun_;
  if (!problem.empty() && ranks_.rank() == 0) folder::remove(folder_->info.path);
  RestartOutcome outcome{folder_->info.step, folder_->info.path, problem, since.count()};
  folder_.reset();
  busy_ = false;
  return outcome;
}

}  // namespace maki
