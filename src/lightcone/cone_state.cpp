#include "src/lightcone/cone_state.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <regex>
#include <set>
#include <sstream>
#include <utility>

#include "kernels/error.hpp"
#include "src/io/hdf5_file.hpp"
#include "src/io/safe_file.hpp"

namespace maki::spool {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kBlock = std::uint64_t{1} << 22;

[[noreturn]] void fail(const std::string& path, const char* what) {
  const int reason = errno;
  const bool full = reason == ENOSPC || reason == EDQUOT;
  throw Error(fmt::format("cannot {} '{}'", what, path), std::strerror(reason),
              full ? "free space on that disk, and go on from the last restart (maki resume)" : "");
}

// Shell and rank of a spool's name, -1 for other names.
std::array<int, 2> numbers_of(const std::string& name) {
  static const std::regex known(R"(conesnap_(\d{3,9})\.(\d{1,9})\.spool)");
  std::smatch match;
  if (!std::regex_match(name, match, known)) return {-1, -1};
  return {std::stoi(match[1]), std::stoi(match[2])};
}

// A file descriptor; closing it throws Error on failure.
class Descriptor {
 public:
  Descriptor(const std::string& path, int flags) : path_(path), number_(open(path.c_str(), flags | O_CLOEXEC, 0666)) {
    if (number_ < 0) fail(path, flags == O_RDONLY ? "read" : "write");
  }
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  operator int() const { return number_; }
  void close() {
    if (::close(std::exchange(number_, -1)) != 0) fail(path_, "write");
  }

 private:
  std::string path_;
  int number_;
};

// Reads `bytes` bytes at the present position into `to`.
void read_bytes(int file, const std::string& path, void* to, std::size_t bytes) {
  for (std::size_t done = 0; done < bytes;) {
    const ssize_t n = ::read(file, static_cast<char*>(to) + done, bytes - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(path, "read");
    if (n == 0)
      throw Error(fmt::format("'{}' has been cut off", path), fmt::format("{} bytes are missing", bytes - done));
    done += static_cast<std::size_t>(n);
  }
}

void require(const std::string& path, const Mark& found, const Mark& then) {
  if (found == then) return;
  throw Error(fmt::format("'{}' is damaged", path), fmt::format("its first {} bytes have another checksum", then.bytes),
              "go on from the last restart that is whole (maki resume)");
}

}  // namespace

void RunningMark::add(const void* data, std::size_t bytes) {
  sum_.add(data, bytes);
  bytes_ += bytes;
}

RunningMark reopen(const std::string& path, const Mark& then) {
  RunningMark found;
  if (then.bytes == 0) return found;
  const Descriptor file(path, O_RDONLY);
  std::vector<char> block(std::min<std::uint64_t>(kBlock, then.bytes));
  for (std::uint64_t left = then.bytes; left > 0; left -= block.size()) {
    block.resize(std::min<std::uint64_t>(left, block.size()));
    read_bytes(file, path, block.data(), block.size());
    found.add(block.data(), block.size());
  }
  require(path, found.mark(), then);
  return found;
}

std::string name_of(std::size_t shell, int rank) { return fmt::format("conesnap_{:03}.{}.spool", shell, rank); }

int shell_of(const std::string& name) { return numbers_of(name)[0]; }
int rank_of(const std::string& name) { return numbers_of(name)[1]; }

std::uint64_t bytes(const std::string& path) {
  std::error_code none;
  const std::uintmax_t size = fs::file_size(path, none);
  return none ? 0 : static_cast<std::uint64_t>(size);
}

void require_bytes(const std::string& path, std::uint64_t least) {
  if (const std::uint64_t found = bytes(path); found < least)
    throw Error(fmt::format("'{}' was removed or cut off during the run", path),
                fmt::format("{} of its {} bytes are there", found, least),
                "go on from the last restart that is whole (maki resume)");
}

void append(const std::string& path, const std::vector<ShellParticle>& records) {
  if (records.empty()) return;
  Descriptor file(path, O_WRONLY | O_CREAT | O_APPEND);
  const char* const first = reinterpret_cast<const char*>(records.data());
  const std::size_t all = records.size() * sizeof(ShellParticle);
  for (std::size_t done = 0; done < all;) {
    const ssize_t n = write(file, first + done, all - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(path, "write");
    done += static_cast<std::size_t>(n);
  }
  file.close();
}

void sync(const std::string& path, std::uint64_t least) {
  require_bytes(path, least);
  if (least == 0) return;
  Descriptor file(path, O_WRONLY);
  if (fsync(file) != 0 && errno != EINVAL && errno != EROFS) fail(path, "write");
  file.close();
}

void cut(const std::string& path, std::uint64_t bytes) {
  std::error_code error;
  if (bytes == 0)
    fs::remove(path, error);
  else
    fs::resize_file(path, bytes, error);
  if (error) throw Error(fmt::format("cannot cut '{}' to {} bytes", path, bytes), error.message());
}

void read(const std::string& path, const Mark& all, std::vector<ShellParticle>& to) {
  const std::size_t before = to.size();
  to.resize(before + all.bytes / sizeof(ShellParticle));
  RunningMark found;
  if (all.bytes > 0) read_bytes(Descriptor(path, O_RDONLY), path, to.data() + before, all.bytes);
  found.add(to.data() + before, all.bytes);
  require(path, found.mark(), all);
}

}  // namespace maki::spool

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
    H5Id dataset = create_dataset(group, std::to_string(shell), hdf5_type<std::uint64_t>(), map.counts.size(), 1, 0);
    write_rows(dataset, 0, map.counts.size(), hdf5_type<std::uint64_t>(), map.counts.data());
    write_attribute(dataset, "FirstPixel", map.first);
    write_attribute(dataset, "XXH3", checksum_of_counts(map.counts));
  }
}

void write_state(const std::string& path, const ConeState& state, int ranks) {
  SafeFile safe(path, true);
  const Hdf5Turn turn;
  H5Id file = create_hdf5(safe.temporary_path());
  write_attribute<std::int32_t>(file, "Ranks", ranks);
  const std::string spools = lines_of(state.spools);
  write_text_dataset(file, "Spools", spools);
  write_attribute(file, "SpoolsXXH3", checksum_of_spools(ranks, spools));
  write_attribute(file, "Quantum", state.quantum);
  write_maps(file, state.maps);
  close_hdf5(file, path);
  safe.commit();
}

MapShare read_map(hid_t group, const std::string& name, const std::string& path) {
  H5Id dataset = open_dataset(group, name);
  MapShare map;
  map.first = read_scalar<std::uint64_t>(dataset, "FirstPixel").value_or(0);
  map.counts.resize(dataset_shape(dataset).at(0));
  read_rows(dataset, 0, map.counts.size(), hdf5_type<std::uint64_t>(), map.counts.data());
  if (read_text(dataset, "XXH3") != checksum_of_counts(map.counts)) throw_damaged(path, "a map");
  return map;
}

ConeState read_state(const std::string& path, int ranks) {
  const Hdf5Turn turn;
  const H5Id file = open_hdf5(path);
  ConeState state;
  const std::string spools = read_text_dataset(file, "Spools");
  if (read_text(file, "SpoolsXXH3") != checksum_of_spools(ranks, spools)) throw_damaged(path, "the list of spools");
  state.spools = from_lines(spools);
  state.quantum = read_scalar<double>(file, "Quantum").value_or(0);
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
    const Hdf5Turn turn;
    count = read_scalar<std::int32_t>(open_hdf5(path), "Ranks").value_or(0);
  });
  ranks.broadcast(&count, sizeof count, 0);
  return count;
}

// The first file of a folder whose beginning cannot be read, and why; empty where all can.
std::string unreadable_file(const std::string& folder) {
  for (const std::string& name : names_in(folder)) {
    const std::string path = (fs::path(folder) / name).string();
    std::FILE* const file = std::fopen(path.c_str(), "rb");
    const bool fails = file == nullptr || (std::fgetc(file) == EOF && std::ferror(file) != 0);
    const int reason = errno;
    if (file != nullptr) std::fclose(file);
    if (fails && reason != ENOENT) return fmt::format("cannot read '{}' ({})", path, std::strerror(reason));
  }
  return {};
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
  } catch (const std::exception& error) {  // a damaged file may hold anything, and the C++ library find it
    const std::string unread = first_text(ranks, ranks.rank() == 0 ? unreadable_file(folder) : "");
    return unread.empty() ? fmt::format("a light cone: {}", error.what()) : unread;
  }
  return {};
}

std::vector<std::uint64_t> cone_state_steps(const std::string& folder) {
  std::set<std::uint64_t> steps;
  for (const std::string& name : names_in(folder)) {
    std::uint64_t step = 0;
    const char* const first = name.data() + std::string(kPrefix).size();
    if (name.starts_with(kPrefix) && std::from_chars(first, name.data() + name.size(), step).ec == std::errc())
      steps.insert(step);
  }
  return {steps.begin(), steps.end()};
}

void remove_cone_state(const std::string& folder, std::uint64_t step) {
  std::error_code ignored;
  for (const std::string& name : names_in(folder))
    if (name.starts_with(fmt::format("{}{:06}.", kPrefix, step))) fs::remove(fs::path(folder) / name, ignored);
}

}  // namespace maki
