#include "src/io/restart.hpp"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <sstream>

#include "kernels/error.hpp"

namespace maki::restart_folder {

namespace {

namespace fs = std::filesystem;

constexpr const char* kPrefix = "restart_";
constexpr const char* kComplete = "complete.toml";
constexpr const char* kSeal = "# checksum of all lines above: ";

toml::table to_table(const RestartInfo& info) {
  toml::array particles, checksums, site_keys;
  for (const std::uint64_t count : info.particles) particles.push_back(static_cast<std::int64_t>(count));
  for (const std::string& sum : info.checksums) checksums.push_back(sum);
  for (const std::string& key : info.site_keys) site_keys.push_back(key);
  return toml::table{{"format", static_cast<std::int64_t>(info.format)},
                     {"run", info.run},
                     {"step", static_cast<std::int64_t>(info.step)},
                     {"time", info.time},
                     {"ranks", static_cast<std::int64_t>(info.particles.size())},
                     {"particles", particles},
                     {"checksums", checksums},
                     {"site", info.site},
                     {"sites", info.sites},
                     {"site_keys", site_keys},
                     {"version", info.provenance.version},
                     {"git_hash", info.provenance.git_hash},
                     {"compiler", info.provenance.compiler},
                     {"device", info.provenance.device},
                     {"configuration", info.provenance.configuration}};
}

std::uint64_t count_in(const toml::table& table, const char* key) {
  return static_cast<std::uint64_t>(table[key].value_or(std::int64_t{0}));
}

std::vector<std::string> texts_in(const toml::table& table, const char* key) {
  std::vector<std::string> texts;
  if (const toml::array* const all = table[key].as_array())
    for (const toml::node& text : *all) texts.push_back(text.value_or(std::string()));
  return texts;
}

bool from_table(const toml::table& table, RestartInfo& info) {
  info.format = count_in(table, "format");
  info.run = table["run"].value_or(std::string());
  info.step = count_in(table, "step");
  info.time = table["time"].value_or(0.0);
  info.site = table["site"].value_or(0);
  info.sites = table["sites"].value_or(1);
  info.site_keys = texts_in(table, "site_keys");
  info.provenance = {table["configuration"].value_or(std::string()), table["version"].value_or(std::string()),
                     table["git_hash"].value_or(std::string()), table["compiler"].value_or(std::string()),
                     table["device"].value_or(std::string())};
  if (const toml::array* particles = table["particles"].as_array())
    for (const toml::node& count : *particles)
      info.particles.push_back(static_cast<std::uint64_t>(count.value_or(std::int64_t{0})));
  info.checksums = texts_in(table, "checksums");
  if (info.format != kRestartFormat) return info.format > 0;  // files of other formats are unknown
  return !info.particles.empty() && info.particles.size() == count_in(table, "ranks") &&
         info.particles.size() == info.checksums.size();
}

// Whether the text ends with its own checksum; none where it has no checksum, or a damaged checksum line.
std::optional<bool> seal_holds(const std::string& text) {
  const std::size_t at = text.rfind(kSeal);
  if (at == std::string::npos) return {};
  return text.substr(at) == kSeal + checksum_of(std::string_view(text).substr(0, at)) + '\n';
}

}  // namespace

std::string name_of(std::uint64_t step) { return fmt::format("{}{:06}", kPrefix, step); }

std::int64_t step_of(const std::string& name) {
  const std::size_t prefix = std::strlen(kPrefix);
  const bool fits = name.starts_with(kPrefix) && name.size() > prefix && name.size() < prefix + 18 &&
                    name.find_first_not_of("0123456789", prefix) == std::string::npos;
  return fits ? std::stoll(name.substr(prefix)) : -1;
}

std::string rank_file(const std::string& folder, int rank) {
  return (fs::path(folder) / fmt::format("rank_{}.hdf5", rank)).string();
}

void begin(const std::string& folder) {
  remove(folder);
  std::error_code error;
  fs::create_directory(folder, error);
  if (error)
    throw Error(fmt::format("cannot make the folder '{}'", folder), error.message(),
                "check the disk, and the permissions of the output directory");
}

void complete(const std::string& folder, const RestartInfo& info) {
  std::ostringstream lines;
  lines << "# A restart of maki: maki resume goes on from here.\n" << to_table(info) << '\n';
  const std::string text = lines.str();
  SafeFile file((fs::path(folder) / kComplete).string());
  file.write(text);
  file.write(kSeal + checksum_of(text) + '\n');
  file.commit();
  sync_directory(fs::path(folder).parent_path().string());
}

Found read(const std::string& folder, RestartInfo& info) {
  const fs::path path = fs::path(folder) / kComplete;
  std::error_code error;
  const std::uintmax_t bytes = fs::file_size(path, error);
  if (error == std::errc::no_such_file_or_directory || error == std::errc::not_a_directory) return Found::kIncomplete;
  const std::string text = error ? "" : bytes_of_file(path);
  if (error || text.size() != bytes) return Found::kUnreadable;
  try {
    info = {};
    info.path = folder;
    if (!from_table(toml::parse(text), info)) return Found::kDamaged;
  } catch (const toml::parse_error&) {
    return Found::kDamaged;
  }
  const bool sealed = seal_holds(text).value_or(info.format != kRestartFormat);  // other formats may have no checksum
  return sealed ? Found::kComplete : Found::kDamaged;
}

void remove(const std::string& folder) noexcept {
  std::error_code ignored;
  if (fs::remove(fs::path(folder) / kComplete, ignored)) sync_directory(folder);
  fs::remove_all(folder, ignored);
}

std::vector<std::string> list(const std::string& directory) {
  std::vector<std::pair<std::int64_t, std::string>> found;
  std::error_code error;
  if (const fs::directory_iterator there(directory, error); error)
    throw Error(fmt::format("cannot read the directory '{}'", directory), error.message(),
                "give the output directory of a run");
  for (const std::string& name : names_in(directory)) {
    const fs::path path = fs::path(directory) / name;
    if (step_of(name) >= 0 && !fs::is_regular_file(path, error)) found.emplace_back(step_of(name), path.string());
  }
  std::sort(found.begin(), found.end());
  std::vector<std::string> folders;
  for (auto& [step, folder] : found) folders.push_back(std::move(folder));
  return folders;
}

void prune(const std::string& directory, const RestartInfo& newest, int keep, std::uint64_t needed) {
  int others = 0;
  std::uint64_t newer = 0;  // step of the complete restart that follows in time
  std::vector<std::string> folders = list(directory);
  std::reverse(folders.begin(), folders.end());
  for (const std::string& folder : folders) {
    RestartInfo info;
    if (fs::path(folder).filename() == fs::path(newest.path).filename()) {
      newer = static_cast<std::uint64_t>(step_of(fs::path(folder).filename().string()));
      continue;
    }
    const Found found = read(folder, info);
    const bool complete = found == Found::kComplete;
    if (found == Found::kUnreadable || (complete && info.run != newest.run)) continue;
    const bool stays = complete && (++others < keep || (needed > 0 && (info.step == needed || newer == needed)));
    if (complete) newer = info.step;
    if (!stays) remove(folder);
  }
}

}  // namespace maki::restart_folder

namespace maki {

namespace {

// A column whose number k of row i is number(i, k), a reference.
template <class T, class Number>
RestartColumn column(const char* group, const char* name, std::size_t columns, std::size_t rows, Number number) {
  const auto put = [=](std::size_t first, std::size_t count, const void* from) {
    const T* const numbers = static_cast<const T*>(from);
    for (std::size_t i = 0; i < count; ++i)
      for (std::size_t k = 0; k < columns; ++k) number(first + i, k) = numbers[i * columns + k];
  };
  return {group, name, hdf5_type<T>(), rows, row_source<T>(columns, number), put};
}

}  // namespace

std::vector<RestartColumn> restart_columns(ParticleRows& p, EscaperRows& e) {
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
  std::vector<RestartColumn> columns = {
      column<std::uint32_t>(own, "Positions", 3, p.size(), position),
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
      column<double>(gone, "Times", 1, e.size(), [&e](std::size_t i, std::size_t) -> double& { return e.times[i]; })};
  if (p.long_acceleration)
    columns.push_back(column<float>(own, kLongAccelerations, 3, p.size(), [&p](std::size_t i, std::size_t k) -> float& {
      return (*p.long_acceleration)[k][i];
    }));
  return columns;
}

void resize(ParticleRows& rows, std::size_t n) {
  rows.source.resize(n);
  rows.remainder.resize(n);
  for (auto& axis : rows.momentum) axis.resize(n);
  rows.id.resize(n);
  if (rows.long_acceleration)
    for (auto& axis : *rows.long_acceleration) axis.resize(n);
}

void resize(EscaperRows& rows, std::size_t n) {
  rows.positions.resize(n);
  rows.velocities.resize(n);
  rows.masses.resize(n);
  rows.ids.resize(n);
  rows.times.resize(n);
}

void copy_to_rows(const Stream& stream, const Particles& particles, ParticleRows& rows) {
  const std::size_t n = particles.size();
  resize(rows, n);
  copy_to_host(stream, rows.source.data(), particles.source.data(), n * sizeof(SourceParticle));
  copy_to_host(stream, rows.remainder.data(), particles.remainder.data(), n * sizeof(Remainder));
  copy_to_rows(stream, particles.momentum, rows.momentum);
  copy_to_host(stream, rows.id.data(), particles.id.data(), n * sizeof(std::uint64_t));
}

void copy_to_rows(const Stream& stream, const VectorArray& vectors, HostVectors& rows) {
  const DeviceBuffer<float>* const axes[3] = {&vectors.x, &vectors.y, &vectors.z};
  for (std::size_t axis = 0; axis < 3; ++axis) {
    rows[axis].resize(axes[axis]->size());
    copy_to_host(stream, rows[axis].data(), axes[axis]->data(), rows[axis].size() * sizeof(float));
  }
}

void copy_from_rows(const Stream& stream, const HostVectors& rows, VectorArray& vectors) {
  DeviceBuffer<float>* const axes[3] = {&vectors.x, &vectors.y, &vectors.z};
  for (std::size_t axis = 0; axis < 3; ++axis) axes[axis]->upload(stream, rows[axis]);
  stream.synchronize();
}

void copy_from_rows(const Stream& stream, const ParticleRows& rows, Particles& particles) {
  particles.source.upload(stream, rows.source);
  particles.remainder.upload(stream, rows.remainder);
  copy_from_rows(stream, rows.momentum, particles.momentum);
  particles.id.upload(stream, rows.id);
  stream.synchronize();
}

}  // namespace maki
