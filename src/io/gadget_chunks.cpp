#include "src/io/gadget_chunks.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "host/comm/communicator.hpp"

namespace maki::gadget {

namespace {

constexpr std::size_t kAtOnce = 32;  // chunks that are handed over between two steps: some 50 MB at most

}  // namespace

std::uint64_t Chunks::last(int rank) const { return std::max(first(rank), (begin(rank + 1) + rows_ - 1) / rows_); }

int Chunks::owner(std::uint64_t chunk) const {
  const auto after = std::upper_bound(begins_.begin(), begins_.end(), chunk * rows_);
  return static_cast<int>(after - begins_.begin()) - 1;
}

std::uint64_t Chunks::end(int rank) const { return std::min(last(rank) * rows_, begins_.back()); }

ChunkedRows::ChunkedRows(const Part& part, RowSource source, const Storage& storage)
    : part_(part), source_(std::move(source)), storage_(storage), chunks_(part) {
  const int rank = part.ranks.rank();
  const std::size_t bytes = source_.row_bytes();
  std::vector<Communicator::Outgoing> out;
  std::vector<Communicator::Incoming> in;
  Bytes head;
  all_succeed(part.ranks, [&] {
    const std::uint64_t own = std::min(part.end(), chunks_.first(rank) * chunks_.rows());
    if (own > part.begin()) {
      head.resize((own - part.begin()) * bytes);
      source_.fill(0, own - part.begin(), head.data());
      out.push_back({chunks_.owner(chunks_.first(rank) - 1), head.data(), head.size()});
    }
    if (chunks_.last(rank) == chunks_.first(rank)) return;
    tail_.resize((std::max(chunks_.end(rank), part.end()) - part.end()) * bytes);
    for (int r = rank + 1; r < part.ranks.size() && chunks_.begin(r) < chunks_.end(rank); ++r) {
      const std::uint64_t count = std::min(chunks_.begin(r + 1), chunks_.end(rank)) - chunks_.begin(r);
      if (count > 0) in.push_back({r, tail_.data() + (chunks_.begin(r) - part.end()) * bytes, count * bytes});
    }
  });
  part.ranks.exchange(out, in);
}

// One chunk, filled up with the last row of all.
ChunkedRows::Bytes ChunkedRows::rows_of(std::uint64_t chunk) const {
  const std::size_t bytes = source_.row_bytes();
  const std::uint64_t first = chunk * chunks_.rows(), last = std::min(first + chunks_.rows(), part_.rows());
  const std::uint64_t own = std::min(last, part_.end());
  Bytes rows(chunks_.rows() * bytes);
  source_.fill(first - part_.begin(), own - first, rows.data());
  if (last > own) std::memcpy(rows.data() + (own - first) * bytes, tail_.data(), (last - own) * bytes);
  for (std::uint64_t row = last - first; row < chunks_.rows(); ++row)
    std::memcpy(rows.data() + row * bytes, rows.data() + (row - 1) * bytes, bytes);
  return rows;
}

void ChunkedRows::filter_own() {
  const int rank = part_.ranks.rank();
  for (std::uint64_t chunk = chunks_.first(rank); chunk < chunks_.last(rank); ++chunk) {
    const Bytes rows = rows_of(chunk);
    filtered_.push_back(filtered(rows.data(), rows.size() / source_.width, source_.width, storage_));
  }
}

bool ChunkedRows::hand_over(hid_t dataset) {
  const Communicator& ranks = part_.ranks;
  const int me = ranks.rank();
  const std::uint64_t count = std::min<std::uint64_t>(kAtOnce, chunks_.count() - next_);
  const auto mine = [&](std::size_t i) -> Bytes& { return filtered_[next_ + i - chunks_.first(me)]; };
  std::array<std::uint64_t, kAtOnce> sizes{};
  for (std::size_t i = 0; i < count; ++i)
    if (chunks_.owner(next_ + i) == me) sizes[i] = mine(i).size();
  ranks.sum(sizes);  // each is one rank's
  std::vector<Communicator::Outgoing> out;
  std::vector<Communicator::Incoming> in;
  std::array<Bytes, kAtOnce> come;
  for (std::size_t i = 0; i < count; ++i) {
    const int owner = chunks_.owner(next_ + i);
    if (owner == 0 && me == 0) come[i] = std::move(mine(i));
    if (owner == 0) continue;
    if (owner == me) out.push_back({0, mine(i).data(), mine(i).size()});
    if (me > 0) continue;
    come[i].resize(sizes[i]);
    in.push_back({owner, come[i].data(), come[i].size()});
  }
  ranks.exchange(out, in);
  root_succeeds(ranks, [&] {
    for (std::size_t i = 0; i < count; ++i) write_chunk(dataset, (next_ + i) * chunks_.rows(), come[i]);
  });
  for (std::size_t i = 0; i < count; ++i)
    if (chunks_.owner(next_ + i) == me) mine(i) = Bytes();
  next_ += count;
  return next_ == chunks_.count();
}

}  // namespace maki::gadget
