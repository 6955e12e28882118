#include "src/lightcone/cone_state.hpp"

#include <fmt/format.h>

#include <charconv>
#include <filesystem>
#include <set>
#include <sstream>

#include "kernels/error.hpp"
#include "src/io/checksum.hpp"
#include "src/io/hdf5_file.hpp"
#include "src/io/safe_file.hpp"

namespace maki {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPrefix = "state_";

std::string path_of(const std::string& folder, std::uint64_t step, int rank) {
  return (fs::path(folder) / fmt::format("{}{:06}.{}.hdf5", kPrefix, step, rank)).string();
}

// A line for each spool: name, bytes, checksum.
std::string lines_of(const std::map<std::string, spool::Mark>& spools) {
  std::string lines;
  for (const auto& [name, mark] : spools) lines += fmt::format("{} {} {}\n", name, mark.bytes, mark.checksum);
  return lines;
}

std::map<std::string, spool::Mark> from_lines(const std::string& lines) {
  std::map<std::string, spool::Mark> spools;
  std::istringstream text(lines);
  spool::Mark mark;
  for (std::string name; text >> name >> mark.bytes >> mark.checksum;) spools[name] = mark;
  return spools;
}

std::string checksum_of_spools(int ranks, const std::string& lines) {
  return checksum_of(fmt::format("{} ranks\n{}", ranks, lines));
}

[[noreturn]] void throw_damaged(const std::string& path, const char* what) {
  throw Error(fmt::format("'{}' is damaged", path), fmt::format("the checksum of {} is another one", what),
              "resume an earlier restart (maki resume .../restart_NNNNNN)");
}

std::string checksum_of_counts(const std::vector<std::uint64_t>& counts) {
  return checksum_of({reinterpret_cast<const char*>(counts.data()), counts.size() * sizeof(std::uint64_t)});
}

void write_maps(hid_t file, const std::map<std::size_t, MapShare>& maps) {
  H5Id group = create_group(file, "Maps");
  for (const auto& [shell, map] : maps) {
    H5Id dataset =
        create_dataset(group, std::to_string(shell), hdf5_file_type<std::uint64_t>(), map.counts.size(), 1, 0);
    write_rows(dataset, 0, map.counts.size(), hdf5_memory_type<std::uint64_t>(), map.counts.data());
    write_attribute(dataset, "FirstPixel", map.first);
    write_attribute(dataset, "XXH3", checksum_of_counts(map.counts));
  }
}

void write_state(const std::string& path, const ConeState& state, int ranks) {
  SafeFile safe(path, true);
  H5Id file = create_hdf5(safe.temporary_path());
  write_attribute<std::int32_t>(file, "Ranks", ranks);
  const std::string spools = lines_of(state.spools);
  write_text_dataset(file, "Spools", spools);
  write_attribute(file, "SpoolsXXH3", checksum_of_spools(ranks, spools));
  write_maps(file, state.maps);
  close_hdf5(file, path);
  safe.commit();
}

std::vector<std::string> link_names(hid_t group) {
  std::vector<std::string> names;
  const auto add = [](hid_t, const char* name, const H5L_info_t*, void* to) -> herr_t {
    static_cast<std::vector<std::string>*>(to)->emplace_back(name);
    return 0;
  };
  hsize_t at = 0;
  check_hdf5(H5Literate(group, H5_INDEX_NAME, H5_ITER_INC, &at, add, &names), "cannot list what a file holds");
  return names;
}

MapShare read_map(hid_t group, const std::string& name, const std::string& path) {
  H5Id dataset = open_dataset(group, name);
  MapShare map;
  map.first = read_scalar<std::uint64_t>(dataset, "FirstPixel").value_or(0);
  map.counts.resize(dataset_shape(dataset).at(0));
  read_rows(dataset, 0, map.counts.size(), hdf5_memory_type<std::uint64_t>(), map.counts.data());
  if (read_text(dataset, "XXH3") != checksum_of_counts(map.counts)) throw_damaged(path, "a map");
  return map;
}

ConeState read_state(const std::string& path, int ranks) {
  const H5Id file = open_hdf5(path);
  ConeState state;
  const std::string spools = read_text_dataset(file, "Spools");
  if (read_text(file, "SpoolsXXH3") != checksum_of_spools(ranks, spools)) throw_damaged(path, "the list of spools");
  state.spools = from_lines(spools);
  const H5Id maps = open_group(file, "Maps");
  for (const std::string& name : link_names(maps)) state.maps[std::stoul(name)] = read_map(maps, name, path);
  return state;
}

// How many ranks wrote the state.
int ranks_of(const std::string& folder, std::uint64_t step, const Communicator& ranks) {
  std::int32_t count = 0;
  root_succeeds(ranks, [&] {
    const std::string path = path_of(folder, step, 0);
    if (!fs::exists(path))
      throw Error(fmt::format("the light cone in '{}' has no state of step {}", folder, step),
                  "the run cannot go on with it from there", "resume another restart, or begin with maki run");
    count = read_scalar<std::int32_t>(open_hdf5(path), "Ranks").value_or(0);
  });
  ranks.broadcast(&count, sizeof count, 0);
  return count;
}

}  // namespace

void write_cone_state(const std::string& folder, std::uint64_t step, const ConeState& state,
                      const Communicator& ranks) {
  all_succeed(ranks, [&] { write_state(path_of(folder, step, ranks.rank()), state, ranks.size()); });
}

std::vector<ConeState> read_cone_states(const std::string& folder, std::uint64_t step, const Communicator& ranks) {
  const int count = ranks_of(folder, step, ranks);
  std::vector<ConeState> states;
  all_succeed(ranks, [&] {
    for (int rank = ranks.rank(); rank < count; rank += ranks.size())
      states.push_back(read_state(path_of(folder, step, rank), count));
  });
  return states;
}

std::map<std::string, spool::RunningMark> reopen_spools(const std::string& folder, const std::vector<ConeState>& states,
                                                        const Communicator& ranks) {
  std::string mine;
  for (const ConeState& state : states) mine += lines_of(state.spools);
  std::map<std::string, spool::RunningMark> spools;
  const std::vector<std::string> all = gather_texts(ranks, mine);
  all_succeed(ranks, [&] {
    for (const std::string& lines : all)
      for (const auto& [name, mark] : from_lines(lines))
        if (spool::rank_of(name) % ranks.size() == ranks.rank())
          spools.emplace(name, spool::reopen((fs::path(folder) / name).string(), mark));
  });
  return spools;
}

std::string damage_of_cone(const std::string& folder, std::uint64_t step, const Communicator& ranks) {
  try {
    (void)reopen_spools(folder, read_cone_states(folder, step, ranks), ranks);
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

std::vector<std::uint64_t> cone_state_steps(const std::string& folder) {
  std::set<std::uint64_t> steps;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    std::uint64_t step = 0;
    const char* const first = name.data() + std::string(kPrefix).size();
    if (name.starts_with(kPrefix) && std::from_chars(first, name.data() + name.size(), step).ec == std::errc())
      steps.insert(step);
  }
  return {steps.begin(), steps.end()};
}

void remove_cone_state(const std::string& folder, std::uint64_t step) {
  std::error_code ignored;
  for (int rank = 0; fs::remove(path_of(folder, step, rank), ignored); ++rank) {
  }
}

}  // namespace maki
