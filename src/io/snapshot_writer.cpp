#include "src/io/snapshot_writer.hpp"

#include <xxhash.h>

#include <algorithm>
#include <deque>
#include <filesystem>
#include <utility>

#include "host/comm/communicator.hpp"
#include "kernels/error.hpp"
#include "src/io/gadget.hpp"
#include "src/io/hdf5_output.hpp"
#include "src/io/safe_file.hpp"
#include "wan/sites/sites.hpp"

namespace maki {

struct SnapshotWriter::Job {
  SnapshotToWrite set;
  std::vector<std::string> names;
  std::vector<SafeFile> files;  // of rank 0
  std::deque<gadget::Hdf5Output> outputs;
  std::size_t handed_over = 0;  // of these
  bool naming = false;          // all numbers are in the files

  void write_own() {
    for (gadget::Hdf5Output& output : outputs) output.write_own();
  }
  void commit() {
    for (SafeFile& file : files) file.commit();
  }
  bool is_laid_out() const {
    return std::all_of(outputs.begin(), outputs.end(), [](const auto& output) { return output.is_laid_out(); });
  }
};

namespace {

// Rows of the particles to write; none for all.
std::shared_ptr<const std::vector<std::size_t>> chosen_of(const SnapshotToWrite& set, const ParticleSelection& by) {
  if (by.is_whole()) return nullptr;
  auto rows = std::make_shared<std::vector<std::size_t>>();
  for (std::size_t i = 0; i < set.particles->size(); ++i)
    if (in_subset(set.particles->id(i), by.fraction) && (!by.in_groups || set.in_groups[i])) rows->push_back(i);
  return rows;
}

}  // namespace

bool in_subset(std::uint64_t id, double fraction) {
  return fraction >= 1 || static_cast<double>(XXH3_64bits(&id, sizeof id)) * 0x1p-64 < fraction;
}

SnapshotWriter::SnapshotWriter(const RunPlace& writers) : writers_(writers), threads_(writers.ranks) {}

SnapshotWriter::~SnapshotWriter() = default;

std::vector<std::string> SnapshotWriter::begin(const std::string& path, SnapshotToWrite set,
                                               const Provenance& provenance, const WriteOptions& options) {
  begun_ = std::chrono::steady_clock::now();
  const Communicator& ranks = writers_.ranks;
  auto job = std::make_unique<Job>();
  job->set = std::move(set);
  const gadget::Part all =
      gadget::whole_set(*job->set.particles, chosen_of(job->set, options.selection), options, writers_);
  for (const gadget::Part& part : gadget::own_parts(all, options.files)) {
    gadget::FileName name{gadget::part_name(path, options.format, part.number, part.files), {}};
    root_succeeds(ranks, [&] {
      job->files.emplace_back(name.path, options.overwrite);
      name.temporary = job->files.back().temporary_path();
    });
    name.temporary = broadcast_text(ranks, name.temporary);
    job->names.push_back(name.path);
    gadget::Hdf5Output& output = job->outputs.emplace_back(name, part, provenance, options, job->set.extras);
    root_succeeds(ranks, [&] {
      if (output.is_laid_out()) job->files.back().reserve(std::filesystem::file_size(name.temporary));
    });
  }
  job->naming = job->is_laid_out() && ranks.size() == 1;  // no other rank to wait for
  job_ = std::move(job);
  threads_.start([job = job_.get()] {
    job->write_own();
    if (job->naming) job->commit();
  });
  return job_->names;
}

std::optional<SnapshotOutcome> SnapshotWriter::look() {
  return busy() && threads_.all_done() ? advance() : std::nullopt;
}

SnapshotOutcome SnapshotWriter::wait() {
  for (;;) {
    threads_.wait();
    if (std::optional<SnapshotOutcome> outcome = advance()) return *std::move(outcome);
  }
}

// Proceeds from the numbers of all ranks to chunks in HDF5, to the files' names, and to the outcome. No thread is at
// work.
std::optional<SnapshotOutcome> SnapshotWriter::advance() {
  const std::string problem = threads_.problem();
  if (!problem.empty() || job_->naming) return conclude(problem);
  try {
    while (job_->handed_over < job_->outputs.size()) {
      gadget::Hdf5Output& output = job_->outputs[job_->handed_over];
      const bool took_time = !output.is_laid_out();
      if (output.hand_over()) ++job_->handed_over;
      if (took_time) return {};
    }
  } catch (const Error& error) {
    return conclude(error.what());
  }
  job_->naming = true;
  if (writers_.ranks.rank() == 0) threads_.start([job = job_.get()] { job->commit(); });
  return {};
}

SnapshotOutcome SnapshotWriter::conclude(const std::string& problem) {
  const std::chrono::duration<double> since = std::chrono::steady_clock::now() - begun_;
  SnapshotOutcome outcome{std::move(job_->names), problem, since.count()};
  job_.reset();
  return outcome;
}

double snapshot_bytes(const WriteOptions& options) {
  double bytes = 0;
  if (options.has("Coordinates")) bytes += options.coordinates == CoordinateNumbers::kDouble ? 24 : 12;
  if (options.has("Velocities")) bytes += options.velocities == VelocityNumbers::kHalf ? 6 : 12;
  if (options.has("Masses")) bytes += 4;
  if (options.has("ParticleIDs")) bytes += 8;
  return bytes;
}

double snapshot_writer_bytes(const WriteOptions& options) {
  const double kept = options.selection.is_whole() ? 0 : sizeof(std::size_t);
  if (options.deflate > 0) return kept + snapshot_bytes(options);
  const bool fixed = options.has("Coordinates") && options.coordinates == CoordinateNumbers::kFixed32;
  return kept + (fixed ? 13 : 0);
}

}  // namespace maki
