// Snapshots over ranks: a directory that all ranks share, and shares of a set that all know.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "host/comm/communicator.hpp"
#include "src/io/snapshot_io.hpp"
#include "tests/src/io/io_helpers.hpp"

namespace maki::test {

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

// Rows [begin, end) of a set.
inline Snapshot rows_of(const Snapshot& all, std::size_t begin, std::size_t end) {
  const auto cut = [&](const auto& array) {
    return std::decay_t<decltype(array)>(array.begin() + static_cast<std::ptrdiff_t>(begin),
                                         array.begin() + static_cast<std::ptrdiff_t>(end));
  };
  return {all.header, cut(all.positions), cut(all.velocities), cut(all.masses), cut(all.ids)};
}

// How a set is shared out: evenly; every second rank has nothing; the last rank has all.
enum class Shares { kEven, kGaps, kLast };

inline std::size_t begin_of(Shares how, std::size_t n, int rank, int ranks) {
  if (how == Shares::kLast) return rank < ranks ? 0 : n;
  if (how == Shares::kGaps && ranks > 1) rank -= rank % 2, ranks -= ranks % 2;
  return std::min<std::size_t>(n, share_begin(n, rank, ranks));
}

inline std::string contents(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

template <class T>
bool same_bits(const std::vector<T>& whole, const std::vector<T>& part, std::uint64_t first) {
  return part.empty() || std::memcmp(whole.data() + first, part.data(), part.size() * sizeof(T)) == 0;
}

// Expects that the shares of all ranks, one after the other, are `whole` bit by bit. Collective.
inline void expect_shares_of(const Snapshot& whole, const Snapshot& share, const Communicator& ranks) {
  const Share rows = share_of(whole.size(), ranks.rank(), ranks.size());
  ASSERT_EQ(share.positions.size(), rows.size());
  ASSERT_EQ(share.velocities.size(), rows.size());
  ASSERT_EQ(share.masses.size(), rows.size());
  ASSERT_EQ(share.ids.size(), rows.size());
  EXPECT_TRUE(same_bits(whole.positions, share.positions, rows.first));
  EXPECT_TRUE(same_bits(whole.velocities, share.velocities, rows.first));
  EXPECT_TRUE(same_bits(whole.masses, share.masses, rows.first));
  EXPECT_TRUE(same_bits(whole.ids, share.ids, rows.first));
  EXPECT_EQ(share.header.comoving, whole.header.comoving);
  EXPECT_EQ(share.header.time, whole.header.time);
  EXPECT_EQ(share.header.redshift, whole.header.redshift);
  EXPECT_EQ(share.header.box_size, whole.header.box_size);
  EXPECT_EQ(share.header.omega0, whole.header.omega0);
}

}  // namespace maki::test
