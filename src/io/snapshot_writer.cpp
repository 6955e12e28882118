// Writing particle sets, over ranks: at once, and beside the steps of a run.
#include "src/io/snapshot_writer.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <xxhash.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <filesystem>
#include <utility>

#include "host/comm/communicator.hpp"
#include "kernels/device/stream.hpp"
#include "kernels/error.hpp"
#include "src/io/gadget.hpp"
#include "src/io/gadget_write.hpp"
#include "src/io/hdf5_output.hpp"
#include "src/io/safe_file.hpp"
#include "src/io/snapshot_io.hpp"
#include "wan/sites/sites.hpp"

namespace maki {
namespace {

using gadget::Part;

// ---- what all ranks write -------------------------------------------------------------------------------------------

// Summary of the particles of a rank or a site, from which all choose the number formats of masses and ids.
struct Common {
  std::uint64_t n = 0;   // particles that are written
  std::uint64_t of = 0;  // particles of the run
  std::uint64_t largest_id = 0;
  float mass = 0;     // of the first particle
  bool equal = true;  // masses
  // For fixed32 without a box, from each particle's largest |coordinate|: the largest of all, the sum of the logarithms
  // of those above 0, and the number of those.
  double farthest = 0, logarithms = 0;
  std::uint64_t placed = 0;
  float fastest = 0;  // for half: the largest |component| of a velocity
};

// Largest |value(axis)|.
template <class Value>
auto largest_component(Value value) {
  return std::max({std::abs(value(0)), std::abs(value(1)), std::abs(value(2))});
}

Common common_of(const Part& part, std::size_t rows, const WriteOptions& options) {
  const ParticleSource& s = part.particles;
  Common mine{.n = rows, .of = s.size()};
  if (rows == 0) return mine;
  mine.mass = s.mass(part.at(0));
  for (std::size_t i = 0; i < rows; ++i) {
    const std::size_t at = part.at(i);
    mine.largest_id = std::max(mine.largest_id, s.id(at));
    mine.equal = mine.equal && s.mass(at) == mine.mass;
  }
  for (std::size_t i = 0; i < rows && options.coordinates == CoordinateNumbers::kFixed32 && !s.header().comoving; ++i) {
    const double farthest = largest_component([&](std::size_t axis) { return s.position(part.at(i), axis); });
    mine.farthest = std::max(mine.farthest, farthest);
    if (farthest > 0) ++mine.placed, mine.logarithms += std::log(farthest);
  }
  for (std::size_t i = 0; i < rows && options.velocities == VelocityNumbers::kHalf; ++i)
    mine.fastest =
        std::max(mine.fastest, largest_component([&](std::size_t axis) { return s.velocity(part.at(i), axis); }));
  return mine;
}

Common together(const std::vector<Common>& all) {
  Common whole;
  for (const Common& one : all) {
    whole.of += one.of;
    if (one.n == 0) continue;
    const bool first = whole.n == 0;
    whole.equal = whole.equal && one.equal && (first || one.mass == whole.mass);
    if (first) whole.mass = one.mass;
    whole.n += one.n;
    whole.largest_id = std::max(whole.largest_id, one.largest_id);
    whole.farthest = std::max(whole.farthest, one.farthest);
    whole.logarithms += one.logarithms;
    whole.placed += one.placed;
    whole.fastest = std::max(whole.fastest, one.fastest);
  }
  return whole;
}

std::vector<Common> of_all(const Common& mine, sites::Sites& sites) {
  std::vector<Common> all;
  for (const sites::Message& message :
       sites.gather(sites::Phase::kOutput, sites.next_number(sites::Phase::kOutput), sites::as_bytes_of(mine)))
    all.push_back(sites::value_of<Common>(message));
  return all;
}

// Decimal places such that the quantum of a coordinate is at most 2^-31 of the extent.
int fixed_decimals(double extent) {
  const double digits = extent > 0 ? std::ceil(std::log10(0x1p31 / extent)) : 0;
  if (digits >= 0 && digits <= 300) return static_cast<int>(digits);
  throw Error(fmt::format("coordinates up to {:g} cannot be written as fixed32", extent),
              "that form has at least one unit of length for its quantum, and no box of it is so large",
              "write them as float");
}

// Decimal places of an isolated set by the extent of nearly all particles, so that escapers do not take the others'
// digits; none where a double does not hold both.
std::optional<int> fixed_decimals_of(const Common& set, double length_factor) {
  constexpr double kMostOverTypical = 1024, kMostBeyond = 0x1p14;
  const double reach = set.farthest * length_factor;
  const double typical =
      set.placed > 0 ? std::exp(set.logarithms / static_cast<double>(set.placed)) * length_factor : 0;
  const double extent = 2 * std::min(reach, kMostOverTypical * typical);
  if (reach > kMostBeyond * extent || !(extent < 0x1p31)) return {};
  return fixed_decimals(extent);
}

void check_speed(double fastest) {
  if (fastest < 65520) return;
  throw Error(fmt::format("a velocity of {:g} does not fit into 16 bits", fastest),
              "they end at 65504 units of velocity", "write velocities as float");
}

}  // namespace

FileFactors set_file_units(SnapshotHeader& header, FileLayout layout) {
  FileFactors factors;
  header.redshift = header.comoving ? 1 / header.time - 1 : 0;
  const bool over_h = header.comoving && layout == FileLayout::kGadget4;
  if (header.comoving && header.units.with_h != over_h)
    factors.length = factors.mass = over_h ? header.hubble : 1 / header.hubble;
  if (over_h) factors.velocity = 1 / std::sqrt(header.time);
  header.box_size *= factors.length;
  // G in units over h: length^1 mass^-1 velocity^2 has no h, so the number does not change.
  header.units.with_h = over_h;
  return factors;
}

namespace {

// The rows of all ranks' shares, with the number formats of `options`. `chosen`: as Part::chosen. Throws Error, the
// same on all ranks. Collective, over the sites too.
Part whole_set(const ParticleSource& particles, std::shared_ptr<const std::vector<std::size_t>> chosen,
               const WriteOptions& options, const RunPlace& writers) {
  const auto& [ranks, sites] = writers;
  Part part{
      .particles = particles, .chosen = std::move(chosen), .ranks = ranks, .begins = {0}, .header = particles.header()};
  const std::size_t rows = part.chosen ? part.chosen->size() : particles.size();
  const std::vector<Common> of_ranks = gathered(ranks, common_of(part, rows, options));
  const Common whole = together(of_all(together(of_ranks), *sites));
  for (const Common& one : of_ranks) part.begins.push_back(part.begins.back() + one.n);
  part.total = whole.n;
  part.options = options;
  const auto most = std::max<std::uint64_t>(1, part.total);  // files, none of them empty
  part.files = sites->alone() ? static_cast<int>(std::min<std::uint64_t>(static_cast<unsigned>(options.files), most))
                              : sites->count();
  part.number = sites->me();
  if (!options.selection.is_whole()) part.options.selection.of_particles = whole.of;
  const FileFactors factors = set_file_units(part.header, options.layout);
  part.length_factor = factors.length, part.mass_factor = factors.mass, part.velocity_factor = factors.velocity;
  if (options.coordinates == CoordinateNumbers::kFixed32)
    part.decimals =
        part.header.comoving ? fixed_decimals(part.header.box_size) : fixed_decimals_of(whole, part.length_factor);
  if (options.velocities == VelocityNumbers::kHalf) check_speed(whole.fastest * part.velocity_factor);
  part.equal_mass = whole.equal ? whole.mass * part.mass_factor : 0;
  part.wide_ids = options.id_bits == 64 || (options.id_bits == 0 && whole.largest_id > 0xffffffffu);
  if (options.id_bits == 32 && whole.largest_id > 0xffffffffu) {
    throw Error(fmt::format("the id {} does not fit into 32 bits", whole.largest_id), "", "write 64-bit ids");
  }
  if (options.files < 1 || (options.files > 1 && !sites->alone())) {
    throw Error(fmt::format("cannot write {} particles to {} files", part.total, options.files));
  }
  return part;
}

Part part_of(const Part& all, int file) {
  const std::uint64_t begin = share_begin(all.total, file, all.files);
  const std::uint64_t end = share_begin(all.total, file + 1, all.files);
  Part part = all;
  part.number = file;
  for (std::uint64_t& row : part.begins) row = std::clamp(row, begin, end) - begin;
  part.first = std::max(begin, all.begin()) - all.begin();
  return part;
}

// The parts of `all`, one for each file that this site writes: with several sites one.
std::vector<Part> own_parts(const Part& all) {
  if (all.options.files < all.files) return {all};
  std::vector<Part> parts;
  for (int file = 0; file < all.files; ++file) parts.push_back(part_of(all, file));
  return parts;
}

}  // namespace

std::vector<std::string> file_names(const std::string& path, const WriteOptions& options) {
  std::vector<std::string> names;
  for (int file = 0; file < options.files; ++file)
    names.push_back(gadget::part_name(path, options.format, file, options.files));
  return names;
}

// ---- a snapshot at once ---------------------------------------------------------------------------------------------

namespace {

void check_fields(const WriteOptions& options) {
  for (const std::string& field : options.fields)
    if (std::find(kFieldNames.begin(), kFieldNames.end(), field) == kFieldNames.end())
      throw Error(fmt::format("there is no field '{}'", field), "",
                  fmt::format("fields are {}", fmt::join(kFieldNames, ", ")));
  if (options.id_bits != 0 && options.id_bits != 32 && options.id_bits != 64)
    throw Error(fmt::format("ids of {} bits cannot be written", options.id_bits), "",
                "use 32, 64, or 0: 32 where all fit");
  if (options.deflate < 0 || options.deflate > 9)
    throw Error(fmt::format("there is no compression {}", options.deflate), "", "use 0 (none) to 9");
  const bool hdf5 = options.format == SnapshotFormat::kGadgetHdf5;
  if (hdf5 && options.big_endian) throw Error("HDF5 files have no byte order to choose", "", "leave out big-endian");
  if (hdf5) return;
  if (options.deflate > 0) throw Error("binary files cannot be compressed", "", "write HDF5, or without compression");
  if (options.coordinates == CoordinateNumbers::kFixed32 || options.velocities == VelocityNumbers::kHalf ||
      options.fields.size() < kFieldNames.size() || options.layout != FileLayout::kGadget4)
    throw Error("binary files have all fields, as floats or doubles, in GADGET's layout", "", "write HDF5");
}

void check_arrays(const Snapshot& s, const WriteOptions& options, const std::vector<ExtraDataset>& extras) {
  if (s.velocities.size() != s.size() || s.masses.size() != s.size() || s.ids.size() != s.size()) {
    throw Error("cannot write a snapshot", "its arrays differ in length");
  }
  const SnapshotHeader& header = s.header;
  const bool needs_h = header.units.with_h != (options.layout == FileLayout::kGadget4);
  if (header.comoving && (!(header.time > 0) || (needs_h && !(header.hubble > 0)))) {
    throw Error("cannot write a snapshot", "a comoving set needs a scale factor and h");
  }
  check_fields(options);
  for (const auto& extra : extras) {
    if (options.format != SnapshotFormat::kGadgetHdf5) {
      throw Error(fmt::format("cannot write '{}' to a binary file", extra.name), "", "write HDF5");
    }
    if (extra.values.size() != s.size() * extra.components) {
      throw Error(fmt::format("cannot write '{}'", extra.name), "it does not have one entry for each particle");
    }
  }
}

}  // namespace

SnapshotFormat snapshot_format(const std::string& name) {
  if (name == "hdf5") return SnapshotFormat::kGadgetHdf5;
  if (name == "gadget1") return SnapshotFormat::kGadgetBinary1;
  if (name == "gadget2") return SnapshotFormat::kGadgetBinary2;
  throw Error(fmt::format("unknown snapshot format '{}'", name), "", "use hdf5, gadget1 or gadget2");
}

ExtraDataset acceleration_dataset(const std::vector<std::array<double, 3>>& acceleration,
                                  const SnapshotHeader& header) {
  ExtraDataset extra;
  extra.name = "Acceleration";
  extra.description =
      fmt::format("Minus the {}gradient of Potential in units of U_V^2 /U_L", header.comoving ? "comoving " : "");
  extra.components = 3;
  extra.values.reserve(3 * acceleration.size());
  for (const auto& a : acceleration) extra.values.insert(extra.values.end(), a.begin(), a.end());
  extra.length_scaling = -1;
  extra.velocity_scaling = 2;
  // The physical acceleration is a^-2 times this: Phi scales as 1/(a x), and the gradient adds another 1/a.
  if (header.comoving) extra.a_scaling = -2, extra.h_scaling = 1;
  extra.gravitational_constant = header.newton();
  return extra;
}

ExtraDataset potential_dataset(const std::vector<double>& potential, const SnapshotHeader& header) {
  ExtraDataset extra;
  extra.name = "Potential";
  extra.description = fmt::format("Potential Phi{} in units of U_V^2 ",
                                  header.comoving ? " of the comoving density contrast" : " of all particles");
  extra.values = potential;
  extra.velocity_scaling = 2;
  if (header.comoving) extra.a_scaling = -1;
  extra.gravitational_constant = header.newton();
  return extra;
}

namespace {

// Makes a part's file under its temporary name; rank 0 holds it in `files`. Collective.
gadget::FileName begin_file(const std::string& path, const Part& part, std::vector<SafeFile>& files) {
  gadget::FileName name{gadget::part_name(path, part.options.format, part.number, part.files), {}};
  root_succeeds(part.ranks, [&] {
    files.emplace_back(name.path, part.options.overwrite);
    name.temporary = files.back().temporary_path();
  });
  name.temporary = broadcast_text(part.ranks, name.temporary);
  return name;
}

std::vector<std::string> write_binary_set(const std::string& path, const Snapshot& snapshot,
                                          const WriteOptions& options, const RunPlace& writers) {
  const Communicator& ranks = writers.ranks;
  const SnapshotSource source(snapshot);
  std::vector<SafeFile> files;  // of rank 0
  std::vector<std::string> names;
  for (const Part& part : own_parts(whole_set(source, nullptr, options, writers))) {
    const gadget::FileName name = begin_file(path, part, files);
    gadget::write_binary_file(name, part);
    names.push_back(name.path);
  }
  root_succeeds(ranks, [&] {
    for (SafeFile& file : files) file.commit();
  });
  return names;
}

}  // namespace

std::vector<std::string> write_snapshot(const std::string& path, const Snapshot& snapshot, const Provenance& provenance,
                                        const WriteOptions& options, const std::vector<ExtraDataset>& extras,
                                        const RunPlace& writers) {
  all_succeed(writers.ranks, [&] { check_arrays(snapshot, options, extras); });
  if (options.format != SnapshotFormat::kGadgetHdf5) return write_binary_set(path, snapshot, options, writers);
  SnapshotWriter writer(writers);
  writer.begin(path, {std::make_shared<SnapshotSource>(snapshot), extras}, provenance, options);
  const SnapshotOutcome outcome = writer.wait();
  if (!outcome.problem.empty()) throw Error(outcome.problem);
  return outcome.files;
}

// ---- a snapshot beside the steps ------------------------------------------------------------------------------------

struct SnapshotWriter::Job {
  SnapshotToWrite set;
  std::vector<std::string> names;
  std::vector<SafeFile> files;  // of rank 0
  std::deque<gadget::Hdf5Output> outputs;
  std::size_t handed_over = 0;  // of these
  std::uint64_t turns = 0;      // of handing over
  double turn_seconds = 0;
  bool naming = false;  // all numbers are in the files

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

// What rank 0 has decided, on all ranks: their clocks differ.
bool first_says(const Communicator& ranks, bool mine) {
  ranks.broadcast(&mine, sizeof mine, 0);
  return mine;
}

}  // namespace

bool in_subset(std::uint64_t id, double fraction) {
  return fraction >= 1 || static_cast<double>(XXH3_64bits(&id, sizeof id)) * 0x1p-64 < fraction;
}

SnapshotWriter::SnapshotWriter(const RunPlace& writers) : writers_(writers), threads_(writers.ranks) {}

SnapshotWriter::~SnapshotWriter() {
  threads_.wait();
  const Hdf5Turn turn;
  job_.reset();
}

std::vector<std::string> SnapshotWriter::begin(const std::string& path, SnapshotToWrite set,
                                               const Provenance& provenance, const WriteOptions& options) {
  const RankThreads::MainWork work(threads_);
  const Communicator& ranks = writers_.ranks;
  const Part all = whole_set(*set.particles, chosen_of(set, options.selection), options, writers_);
  const Hdf5Turn turn;  // other sites may be threads of this process, and were waited for
  auto job = std::make_unique<Job>();
  job->set = std::move(set);
  for (const Part& part : own_parts(all)) {
    const gadget::FileName name = begin_file(path, part, job->files);
    job->names.push_back(name.path);
    gadget::Hdf5Output& output = job->outputs.emplace_back(name, part, provenance, job->set.extras);
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

std::optional<SnapshotOutcome> SnapshotWriter::look(double seconds) {
  return busy() && threads_.all_done() ? advance(seconds) : std::nullopt;
}

SnapshotOutcome SnapshotWriter::wait() {
  for (;;) {
    threads_.wait();
    if (std::optional<SnapshotOutcome> outcome = advance(HUGE_VAL)) return *std::move(outcome);
  }
}

// Proceeds from the numbers of all ranks to chunks in HDF5, to the files' names, and to the outcome. No thread is at
// work.
std::optional<SnapshotOutcome> SnapshotWriter::advance(double seconds) {
  const std::string problem = threads_.problem();
  const RankThreads::MainWork work(threads_);
  const Hdf5Turn turn;
  if (!problem.empty() || job_->naming) return conclude(problem);
  try {
    const auto begin = WallClock::now();
    while (job_->handed_over < job_->outputs.size()) {
      gadget::Hdf5Output& output = job_->outputs[job_->handed_over];
      const bool took_time = !output.is_laid_out();
      const auto turn_begin = WallClock::now();
      if (output.hand_over()) ++job_->handed_over;
      if (!took_time) continue;
      ++job_->turns;
      job_->turn_seconds += seconds_since(turn_begin);
      if (first_says(writers_.ranks, seconds_since(begin) >= seconds)) return {};
    }
  } catch (const Error& error) {
    return conclude(error.what());
  }
  job_->naming = true;
  if (writers_.ranks.rank() == 0) threads_.start([job = job_.get()] { job->commit(); });
  return {};
}

double SnapshotWriter::seconds_left() const {
  if (!busy() || job_->turns == 0) return 0;
  std::uint64_t left = 0;
  for (const gadget::Hdf5Output& output : job_->outputs) left += output.turns_left();
  return static_cast<double>(left) * job_->turn_seconds / static_cast<double>(job_->turns);
}

SnapshotOutcome SnapshotWriter::conclude(const std::string& problem) {
  SnapshotOutcome outcome{std::move(job_->names), problem, threads_.take_seconds()};
  job_.reset();
  return outcome;
}

double snapshot_bytes(const WriteOptions& options, bool long_ids) {
  double bytes = 0;
  if (options.has("Coordinates")) bytes += options.coordinates == CoordinateNumbers::kDouble ? 24 : 12;
  if (options.has("Velocities")) bytes += options.velocities == VelocityNumbers::kHalf ? 6 : 12;
  if (options.has("Masses")) bytes += 4;
  if (options.has("ParticleIDs")) bytes += long_ids ? 8 : 4;
  return bytes;
}

double snapshot_writer_bytes(const WriteOptions& options) {
  const double kept = options.selection.is_whole() ? 0 : sizeof(std::size_t);
  if (options.deflate > 0) return kept + snapshot_bytes(options);
  const bool fixed = options.has("Coordinates") && options.coordinates == CoordinateNumbers::kFixed32;
  return kept + (fixed ? 13 : 0);
}

}  // namespace maki
