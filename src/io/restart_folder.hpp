// The folders of restarts (one process at a time): names, complete.toml, removal; and the arrays of a rank's file.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "src/io/hdf5_file.hpp"
#include "src/io/restart.hpp"

namespace maki::restart_folder {

// "restart_000123"; and the step of such a name, -1 for any other name.
std::string name_of(std::uint64_t step);
std::int64_t step_of(const std::string& name);
std::string rank_file(const std::string& folder, int rank);

// Makes an empty folder. Throws Error.
void begin(const std::string& folder);
// Writes complete.toml, which makes the folder a restart. Its last line is the checksum of all lines before. Throws
// Error.
void complete(const std::string& folder, const RestartInfo& info);

// State of a folder by its complete.toml; damaged: changed or cut off since it was written.
enum class Found { kIncomplete, kComplete, kDamaged };
Found read(const std::string& folder, RestartInfo& info);
// Removes the folder, complete.toml first. Errors are ignored.
void remove(const std::string& folder) noexcept;
// Folders with the name of a restart, complete or not, the earliest first. Throws Error.
std::vector<std::string> list(const std::string& directory);
// Removes incomplete restarts, and complete ones until `keep` are left. Keeps `newest`, and the one of step `needed`,
// from which all sites can resume.
void prune(const std::string& directory, const std::string& newest, int keep, std::uint64_t needed = 0);

}  // namespace maki::restart_folder

namespace maki {

// A column of numbers in a rank's file. `get` copies `count` rows from `first` on to `to`; `put` copies them back from
// `from`.
struct RestartColumn {
  const char* group;
  const char* name;
  hid_t memory_type, file_type;
  std::size_t columns, width;  // numbers a row, bytes a number
  std::size_t rows;
  std::function<void(std::size_t first, std::size_t count, void* to)> get;
  std::function<void(std::size_t first, std::size_t count, const void* from)> put;
};

// The columns refer to both arguments, whose lengths must not change meanwhile.
std::vector<RestartColumn> restart_columns(ParticleRows& particles, EscaperRows& escapers);

void resize(ParticleRows& rows, std::size_t n);
void resize(EscaperRows& rows, std::size_t n);

}  // namespace maki
