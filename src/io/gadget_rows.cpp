// Rows of all ranks written into one file.
#include <algorithm>
#include <cstring>

#include "host/comm/communicator.hpp"
#include "src/io/gadget.hpp"
#include "src/io/gadget_write.hpp"

namespace maki::gadget {

namespace {

using Bytes = std::vector<unsigned char>;

// Division of chunks among ranks: a chunk is compressed by the rank that has its first row.
class Chunks {
 public:
  explicit Chunks(const Part& part) : begins_(part.begins), rows_(chunk_rows(part.rows())) {}

  std::uint64_t rows() const { return rows_; }
  std::uint64_t first(int rank) const { return (begin(rank) + rows_ - 1) / rows_; }
  std::uint64_t last(int rank) const { return std::max(first(rank), (begin(rank + 1) + rows_ - 1) / rows_); }
  int owner(std::uint64_t chunk) const {
    const auto after = std::upper_bound(begins_.begin(), begins_.end(), chunk * rows_);
    return static_cast<int>(after - begins_.begin()) - 1;
  }
  std::uint64_t begin(int rank) const { return begins_[static_cast<std::size_t>(rank)]; }
  // One past the last row that the rank compresses.
  std::uint64_t end(int rank) const { return std::min(last(rank) * rows_, begins_.back()); }

 private:
  const std::vector<std::uint64_t>& begins_;
  std::uint64_t rows_;
};

// The rows that this rank compresses: its own, less those at the beginning that belong to an earlier rank's chunk, and
// those of later ranks that its last chunk needs.
class OwnedRows {
 public:
  OwnedRows(const Part& part, const Chunks& chunks, const RowSource& source)
      : part_(part), chunks_(chunks), source_(source) {
    const int rank = part.ranks.rank();
    const std::size_t bytes = source.row_bytes();
    std::vector<Communicator::Outgoing> out;
    std::vector<Communicator::Incoming> in;
    Bytes head;
    all_succeed(part.ranks, [&] {
      const std::uint64_t own = std::min(part.end(), chunks.first(rank) * chunks.rows());
      if (own > part.begin()) {
        head.resize((own - part.begin()) * bytes);
        source.fill(0, own - part.begin(), head.data());
        out.push_back({chunks.owner(chunks.first(rank) - 1), head.data(), head.size()});
      }
      if (chunks.last(rank) == chunks.first(rank)) return;
      tail_.resize((std::max(chunks.end(rank), part.end()) - part.end()) * bytes);
      for (int r = rank + 1; r < part.ranks.size() && chunks.begin(r) < chunks.end(rank); ++r) {
        const std::uint64_t count = std::min(chunks.begin(r + 1), chunks.end(rank)) - chunks.begin(r);
        if (count > 0) in.push_back({r, tail_.data() + (chunks.begin(r) - part.end()) * bytes, count * bytes});
      }
    });
    part.ranks.exchange(out, in);
  }

  // One chunk, filled up with zeros beyond the last row of all.
  Bytes chunk(std::uint64_t number) const {
    const std::size_t bytes = source_.row_bytes();
    const std::uint64_t first = number * chunks_.rows(), last = std::min(first + chunks_.rows(), part_.rows());
    const std::uint64_t own = std::min(last, part_.end());
    Bytes rows(chunks_.rows() * bytes);
    source_.fill(first - part_.begin(), own - first, rows.data());
    if (last > own) std::memcpy(rows.data() + (own - first) * bytes, tail_.data(), (last - own) * bytes);
    return rows;
  }

 private:
  const Part& part_;
  const Chunks& chunks_;
  const RowSource& source_;
  Bytes tail_;
};

// Compressed chunks on their way to rank 0, which takes one rank's after the other's.
class Collector {
 public:
  Collector(const Part& part, const Chunks& chunks, hid_t dataset) : part_(part), chunks_(chunks), dataset_(dataset) {}

  // Every rank's `packed` are its chunks from first(rank) + `done` on.
  void write(const std::vector<Bytes>& packed, std::uint64_t done) {
    std::array<std::uint64_t, kGroup> sizes{};
    for (std::size_t i = 0; i < packed.size(); ++i) sizes[i] = packed[i].size();
    const Communicator& ranks = part_.ranks;
    std::vector<std::array<std::uint64_t, kGroup>> all(static_cast<std::size_t>(ranks.size()));
    ranks.all_gather(&sizes, all.data(), sizeof(sizes));
    for (int r = 0; r < ranks.size(); ++r) {
      if (r == ranks.rank() && r > 0) send(packed);
      if (ranks.rank() > 0) continue;
      const std::vector<Bytes> came = r > 0 ? receive(r, all[static_cast<std::size_t>(r)]) : packed;
      keep_problem([&] {
        for (std::size_t i = 0; i < came.size(); ++i) {
          write_chunk(dataset_, (chunks_.first(r) + done + i) * chunks_.rows(), came[i]);
        }
      });
    }
    throw_together(ranks, problem_);
  }

  static constexpr std::size_t kGroup = 16;  // chunks that a rank compresses at a time

 private:
  void send(const std::vector<Bytes>& packed) const {
    std::vector<Communicator::Outgoing> out;
    for (const Bytes& chunk : packed) out.push_back({0, chunk.data(), chunk.size()});
    part_.ranks.exchange(out, {});
  }
  std::vector<Bytes> receive(int rank, const std::array<std::uint64_t, kGroup>& sizes) const {
    std::vector<Bytes> came;
    std::vector<Communicator::Incoming> in;
    for (const std::uint64_t size : sizes) {
      if (size > 0) came.emplace_back(size);
    }
    for (Bytes& chunk : came) in.push_back({rank, chunk.data(), chunk.size()});
    part_.ranks.exchange({}, in);
    return came;
  }
  // An error on rank 0 is thrown after the other ranks have sent what they are about to send.
  template <class Call>
  void keep_problem(Call call) {
    if (!problem_.empty()) return;
    try {
      call();
    } catch (const std::exception& error) {
      problem_ = error.what();
    }
  }

  const Part& part_;
  const Chunks& chunks_;
  hid_t dataset_;
  std::string problem_;
};

}  // namespace

void write_in_place(PositionedFile& file, const Part& part, const RowSource& source, std::uint64_t address) {
  std::uint64_t most = 0;
  for (std::size_t r = 1; r < part.begins.size(); ++r) most = std::max(most, part.begins[r] - part.begins[r - 1]);
  Bytes slab;
  for (std::uint64_t first = 0; first < most; first += kSlabRows) {
    all_succeed(part.ranks, [&] {
      if (first >= part.count()) return;
      const std::uint64_t rows = std::min<std::uint64_t>(kSlabRows, part.count() - first);
      slab.resize(rows * source.row_bytes());
      source.fill(first, rows, slab.data());
      file.write_at(address + (part.begin() + first) * source.row_bytes(), slab.data(), slab.size());
    });
  }
}

void write_deflated(const Part& part, const RowSource& source, int level, hid_t dataset) {
  const Chunks chunks(part);
  const OwnedRows rows(part, chunks, source);
  Collector collector(part, chunks, dataset);
  std::uint64_t most = 0;
  for (int r = 0; r < part.ranks.size(); ++r) most = std::max(most, chunks.last(r) - chunks.first(r));
  const std::uint64_t first = chunks.first(part.ranks.rank()), last = chunks.last(part.ranks.rank());
  std::vector<Bytes> packed;
  for (std::uint64_t done = 0; done < most; done += Collector::kGroup) {
    all_succeed(part.ranks, [&] {
      const std::uint64_t left = first + done < last ? last - first - done : 0;
      packed.assign(std::min<std::uint64_t>(left, Collector::kGroup), {});
      for (std::size_t i = 0; i < packed.size(); ++i) {
        const Bytes raw = rows.chunk(first + done + i);
        packed[i] = shuffle_and_deflate(raw.data(), raw.size() / source.width, source.width, level);
      }
    });
    collector.write(packed, done);
  }
}

}  // namespace maki::gadget
