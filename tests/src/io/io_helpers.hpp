// A small snapshot and shares of it, directories of ranks, and numbers of HDF5 files.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "host/comm/communicator.hpp"
#include "kernels/error.hpp"
#include "src/io/hdf5_file.hpp"
#include "src/io/snapshot.hpp"
#include "src/io/snapshot_io.hpp"
#include "tests/messages.hpp"
#include "tests/places.hpp"
#include "tests/temp_dir.hpp"

namespace maki::test {

inline SnapshotHeader isolated_header(double time = 0) {
  SnapshotHeader header;
  header.comoving = false, header.time = time;
  return header;
}

// n particles on a twisted line through the box, all different, with the mean density that Omega0 asks for.
inline Snapshot make_snapshot(std::size_t n = 1000, bool equal_masses = true) {
  Snapshot s;
  s.header.time = 0.25;
  s.header.redshift = 3;
  s.header.box_size = 50;
  static_cast<Background&>(s.header) = {};
  const double mass = 0.308 * 27.7536627 * 125000.0 / static_cast<double>(n);
  for (std::size_t i = 0; i < n; ++i) {
    const double t = (static_cast<double>(i) + 0.5) / static_cast<double>(n);
    s.positions.push_back({50 * t, 50 * std::fmod(17.3 * t, 1.0), 50 * std::fmod(5.7 * t + 0.1, 1.0)});
    s.velocities.push_back({static_cast<float>(300 * t), static_cast<float>(-120 * t), static_cast<float>(7 + t)});
    s.masses.push_back(static_cast<float>(equal_masses ? mass : mass * (0.5 + t)));
    s.ids.push_back(7 + 3 * i);
  }
  return s;
}

inline Provenance make_provenance() {
  return {"[box]\nsize = \"50 Mpc/h\"\n", "Maki 0.1.0", "0123456789ab", "g++ 12.2.0", "CPU, 2 threads"};
}

// To change what is in it.
inline H5Id opened(const std::string& path) { return {H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT), H5Fclose}; }

inline void flip_bit(const std::string& path, std::uint64_t byte, int bit) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(static_cast<std::streamoff>(byte));
  const char flipped = static_cast<char>(file.get() ^ (1 << bit));
  file.seekp(static_cast<std::streamoff>(byte));
  file.put(flipped);
}

struct ReadSet {
  Snapshot set;
  ReadReport report;
};
inline ReadSet read_with_report(const std::string& path) {
  ReadSet read;
  read.set = read_snapshot(path, &read.report);
  return read;
}

// It cannot be read, for a reason with these words.
inline void expect_unreadable(const std::string& path, const std::vector<std::string>& words,
                              const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  expect_error([&] { read_snapshot(path); }, words, file, line);
}

// All numbers of a dataset.
inline std::vector<double> numbers_in(const std::string& path, const std::string& name) {
  H5Id file = open_hdf5(path);
  H5Id dataset = open_dataset(file, name);
  std::size_t count = 1;
  for (const std::size_t extent : dataset_shape(dataset)) count *= extent;
  std::vector<double> numbers(count);
  const herr_t status = H5Dread(dataset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, numbers.data());
  EXPECT_TRUE(count == 0 || status >= 0) << name;
  return numbers;
}

// Snapshots over ranks: a directory that all ranks share, and shares of a set that all know.

// Made by rank 0; gone when all are done with it.
class SharedDir {
 public:
  explicit SharedDir(const Communicator& ranks) : ranks_(ranks) {
    if (ranks.rank() == 0) own_ = std::make_unique<TempDir>();
    path_ = broadcast_text(ranks, own_ ? own_->path() : "");
  }
  ~SharedDir() { ranks_.barrier(); }
  SharedDir(const SharedDir&) = delete;
  SharedDir& operator=(const SharedDir&) = delete;
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }
  std::size_t entries() const { return std::distance(std::filesystem::directory_iterator(path_), {}); }

 private:
  Communicator ranks_;
  std::unique_ptr<TempDir> own_;
  std::string path_;
};

// Tests that all ranks make together.
class ManyRanks : public ::testing::Test {
 protected:
  const Communicator world = Communicator::world();
};
class InSharedDir : public ManyRanks {
 protected:
  const SharedDir dir{world};
};

// Rows [begin, end) of a set.
inline Snapshot rows_of(const Snapshot& all, std::size_t begin, std::size_t end) {
  const auto cut = [&](const auto& array) {
    return std::decay_t<decltype(array)>(array.begin() + static_cast<std::ptrdiff_t>(begin),
                                         array.begin() + static_cast<std::ptrdiff_t>(end));
  };
  return {all.header, cut(all.positions), cut(all.velocities), cut(all.masses), cut(all.ids)};
}

inline Snapshot even_share(const Snapshot& all, const Communicator& ranks) {
  const Share rows = share_of(all.size(), ranks.rank(), ranks.size());
  return rows_of(all, rows.first, rows.end);
}

// How a set is shared out: evenly; every second rank has nothing; the last rank has all.
enum class Shares { kEven, kGaps, kLast };

inline std::size_t begin_of(Shares how, std::size_t n, int rank, int ranks) {
  if (how == Shares::kLast) return rank < ranks ? 0 : n;
  if (how == Shares::kGaps && ranks > 1) rank -= rank % 2, ranks -= ranks % 2;
  return std::min<std::size_t>(n, share_begin(n, rank, ranks));
}

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

// Expects that the shares of all ranks, one after the other, are `whole` bit by bit. Collective.
inline void expect_shares_of(const Snapshot& whole, const Snapshot& share, const Communicator& ranks) {
  const Snapshot expected = even_share(whole, ranks);
  EXPECT_TRUE(same_bits(expected.positions, share.positions));
  EXPECT_TRUE(same_bits(expected.velocities, share.velocities));
  EXPECT_TRUE(same_bits(expected.masses, share.masses));
  EXPECT_TRUE(same_bits(expected.ids, share.ids));
  EXPECT_EQ(share.header, whole.header);
}

}  // namespace maki::test
