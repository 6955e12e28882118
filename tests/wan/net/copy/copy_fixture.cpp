#include "tests/wan/net/copy/copy_fixture.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <sstream>

namespace maki::wan::copy {
namespace {

constexpr std::size_t kMostQueued = 32;

std::string describe(const fs::path& path) {
  struct stat status {};
  if (lstat(path.c_str(), &status) != 0) return "nothing";
  if (S_ISDIR(status.st_mode)) return fmt::format("folder {:o}", status.st_mode & 07777);
  return fmt::format("type {:o} mode {:o} size {} time {}.{:09}", status.st_mode & S_IFMT, status.st_mode & 07777,
                     status.st_size, status.st_mtim.tv_sec, status.st_mtim.tv_nsec);
}

std::map<std::string, fs::path> all_below(const fs::path& folder) {
  std::map<std::string, fs::path> found;
  for (const auto& item : fs::recursive_directory_iterator(folder))
    found[fs::relative(item.path(), folder)] = item.path();
  return found;
}

}  // namespace

void write_file(const fs::path& path, const std::string& contents) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << contents;
}

std::string read_file(const fs::path& path) {
  std::ostringstream out;
  out << std::ifstream(path, std::ios::binary).rdbuf();
  return out.str();
}

std::string random_text(std::size_t bytes, unsigned seed) {
  std::mt19937_64 random(seed);
  std::string text(bytes, '\0');
  for (char& c : text) c = static_cast<char>(random());
  return text;
}

void make_tree(const fs::path& folder, int files, unsigned seed) {
  std::mt19937 random(seed);
  fs::create_directories(folder / "empty folder" / "inner");
  write_file(folder / "empty file", "");
  for (int i = 0; i < files; ++i) {
    const fs::path path =
        folder / fmt::format("d{}", i % 7) / fmt::format("e{}", i % 3) / fmt::format("file {}.dat", i);
    write_file(path, random_text(random() % 9000, seed + static_cast<unsigned>(i)));
    chmod(path.c_str(), i % 5 == 0 ? 0444 : 0640);
    const timespec times[2] = {{0, UTIME_OMIT}, {1000000000 + i, 123456789 - i}};
    utimensat(AT_FDCWD, path.c_str(), times, 0);
  }
  chmod((folder / "d1").c_str(), 0750);
}

std::string difference(const fs::path& a, const fs::path& b) {
  const auto in_a = all_below(a), in_b = all_below(b);
  for (const auto& [name, path] : in_b)
    if (!in_a.contains(name)) return name + " is only in the second";
  for (const auto& [name, path] : in_a) {
    const auto other = in_b.find(name);
    if (other == in_b.end()) return name + " is only in the first";
    if (describe(path) != describe(other->second))
      return name + ": " + describe(path) + " but " + describe(other->second);
    if (fs::is_regular_file(path) && read_file(path) != read_file(other->second)) return name + " has other contents";
  }
  return "";
}

int parts_below(const fs::path& folder) {
  int count = 0;
  for (const auto& [name, path] : all_below(folder)) count += is_part_name(path.filename().string());
  return count;
}

void PipeState::put(int end, Tag tag, Bytes message) {
  std::unique_lock lock(mutex_);
  auto& queue = queues_[{end, tag}];
  changed_.wait(lock, [&] { return broken_ || queue.size() < kMostQueued; });
  if (tag == kDataTag) {
    if (message.size > budget_) broken_ = true;
    budget_ -= std::min<std::uint64_t>(budget_, message.size);
  }
  changed_.notify_all();
  if (broken_) throw PathError("the connection was cut");
  queue.push_back(std::move(message));
}

// What had arrived is still delivered, as by a path.
Bytes PipeState::take(int end, Tag tag) { return *take_for(end, tag, 1e6); }

std::optional<Bytes> PipeState::take_for(int end, Tag tag, double seconds) {
  std::unique_lock lock(mutex_);
  auto& queue = queues_[{end, tag}];
  const auto there = [&] { return broken_ || (!queue.empty() && tag != held_); };
  if (!changed_.wait_for(lock, std::chrono::duration<double>(seconds), there)) return {};
  if (queue.empty()) throw PathError("the connection was cut");
  Bytes message = std::move(queue.front());
  queue.pop_front();
  changed_.notify_all();
  return message;
}

void PipeState::hold(Tag tag) {
  const std::lock_guard lock(mutex_);
  held_ = tag;
}

void PipeState::wait_for(Tag tag) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return broken_ || !queues_[{0, tag}].empty() || !queues_[{1, tag}].empty(); });
}

void PipeState::release(Tag) {
  const std::lock_guard lock(mutex_);
  held_ = 0;
  changed_.notify_all();
}

bool PipeState::broken() const {
  const std::lock_guard lock(mutex_);
  return broken_;
}

void PipeState::cut() {
  const std::lock_guard lock(mutex_);
  broken_ = true;
  changed_.notify_all();
}

}  // namespace maki::wan::copy
