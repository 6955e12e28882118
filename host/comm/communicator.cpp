#include "host/comm/communicator.hpp"

#include <algorithm>
#include <climits>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <span>
#include <vector>

#include "host/comm/job.hpp"
#include "host/comm/mpi_ranks.hpp"
#include "kernels/error.hpp"

// Reductions over ranks in a fixed order.
namespace maki::mpi {
namespace {

// Gathers `bytes` from every rank, in rank order; at most one piece.
void gather(const Ranks& ranks, const void* mine, void* all, std::size_t bytes) {
  const int count = static_cast<int>(bytes);
  MPI_Request request;
  check(MPI_Iallgather(mine, count, MPI_BYTE, all, count, MPI_BYTE, ranks.comm, &request), "MPI_Iallgather");
  finish(ranks, request, "a gathering");
}

// Block r of `mine` (`bytes` each) goes to rank r; block r of `theirs` comes from rank r.
void transpose(const Ranks& ranks, const void* mine, void* theirs, std::size_t bytes) {
  const int count = static_cast<int>(bytes);
  MPI_Request request;
  check(MPI_Ialltoall(mine, count, MPI_BYTE, theirs, count, MPI_BYTE, ranks.comm, &request), "MPI_Ialltoall");
  finish(ranks, request, "an exchange of equal blocks");
}

// Combine functions: each combines one element of all ranks, value(r) for r = 0 ... n-1, in that order.
inline constexpr auto add = []<class Value>(const Value& value, int n) {
  // Neumaier, Z. angew. Math. Mech. 54 (1974): rounding errors are summed beside the sum.
  double total = value(0), lost = 0;
  for (int r = 1; r < n; ++r) {
    const double next = value(r), sum = total + next;
    lost += std::abs(total) >= std::abs(next) ? (total - sum) + next : (next - sum) + total;
    total = sum;
  }
  return std::isfinite(lost) ? total + lost : total;
};
inline constexpr auto largest = []<class Value>(const Value& value, int n) {
  auto found = value(0);
  for (int r = 1; r < n; ++r) found = std::max(found, value(r));
  return found;
};
inline constexpr auto smallest = []<class Value>(const Value& value, int n) {
  auto found = value(0);
  for (int r = 1; r < n; ++r) found = std::min(found, value(r));
  return found;
};

// Rank r combines the r-th share of the elements, and all gather the results: a rank sends 2 n elements. A few elements
// are gathered and combined by all, which is one exchange instead of two.
template <class Combine>
void reduce(const Ranks& ranks, std::span<double> values, const Combine& combine) {
  constexpr std::size_t kFew = 256;
  if (ranks.size == 1 || values.empty()) return;
  const std::size_t n = values.size(), size = ranks.size;
  const auto combined = [&](const std::vector<double>& blocks, std::size_t i) {
    const std::size_t stride = blocks.size() / size;
    return combine([&](int r) { return blocks[r * stride + i]; }, ranks.size);
  };
  if (n <= kFew) {
    std::vector<double> all(n * size);
    gather(ranks, values.data(), all.data(), n * sizeof(double));
    for (std::size_t i = 0; i < n; ++i) values[i] = combined(all, i);
    return;
  }
  const std::size_t most = ranks.limits.piece_bytes / sizeof(double);
  const std::size_t share = std::clamp<std::size_t>((n + size - 1) / size, 1, std::max<std::size_t>(most, 1));
  std::vector<double> mine(share * size), theirs(share * size), result(share);
  for (std::size_t begin = 0; begin < n; begin += mine.size()) {
    const std::size_t count = std::min(mine.size(), n - begin);
    std::fill(std::copy_n(values.begin() + begin, count, mine.begin()), mine.end(), 0.0);
    transpose(ranks, mine.data(), theirs.data(), share * sizeof(double));
    for (std::size_t i = 0; i < share; ++i) result[i] = combined(theirs, i);
    gather(ranks, result.data(), mine.data(), share * sizeof(double));
    std::copy_n(mine.begin(), count, values.begin() + begin);
  }
}

// Integers have one sum in any order: MPI's own reduction, which takes fewer messages than a gathering.
void reduce(const Ranks& ranks, std::span<std::uint64_t> values, MPI_Op operation) {
  if (ranks.size == 1) return;
  const std::size_t most = std::max<std::size_t>(ranks.limits.piece_bytes / sizeof(std::uint64_t), 1);
  for (std::size_t begin = 0; begin < values.size(); begin += most) {
    const auto count = static_cast<int>(std::min(most, values.size() - begin));
    MPI_Request request;
    check(MPI_Iallreduce(MPI_IN_PLACE, values.data() + begin, count, MPI_UINT64_T, operation, ranks.comm, &request),
          "MPI_Iallreduce");
    finish(ranks, request, "a reduction");
  }
}

}  // namespace
}  // namespace maki::mpi

namespace maki {

struct Communicator::State : mpi::Ranks {
  explicit State(mpi::Ranks ranks) : mpi::Ranks(std::move(ranks)) {}
  ~State() {
    nccl.reset();
    mpi::release(*this);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  Traffic sent;
  std::shared_ptr<NcclRanks> nccl;
};

Communicator::Communicator(std::shared_ptr<State> state) : state_(std::move(state)) {}

Communicator Communicator::self() {
  mpi::Ranks alone;
  alone.in_world = {0};
  return Communicator(std::make_shared<State>(std::move(alone)));
}

Communicator Communicator::world() {
  // Never destroyed: MPI is finalized at the end of the program, possibly after the destruction of static objects.
  static const Communicator* const all = [] {
    if (mpi::started_with_others()) return new Communicator(std::make_shared<State>(mpi::start(0)));
    const Launcher launcher = find_launcher([](const char* name) { return std::getenv(name); });
    if (!launcher.starts_mpi) return new Communicator(self());
    return new Communicator(std::make_shared<State>(mpi::start(launcher.ranks)));
  }();
  return *all;
}

int Communicator::rank() const { return state_->rank; }
int Communicator::size() const { return state_->size; }
Communicator::Traffic Communicator::traffic() const { return state_->sent; }

std::shared_ptr<NcclRanks>& Communicator::nccl() const { return state_->nccl; }

void Communicator::set_limits(const Limits& limits) {
  if (limits.piece_bytes == 0 || limits.piece_bytes > INT_MAX || limits.messages == 0 || limits.bytes == 0) {
    throw Error("limits of messages out of range", "pieces hold 1 to 2147483647 bytes, and one at least is in flight");
  }
  state_->limits = limits;
}

const Communicator::Limits& Communicator::limits() const { return state_->limits; }

void Communicator::wait(const std::string& what, const std::function<Look()>& look,
                        const std::function<std::vector<int>()>& pending) const {
  mpi::Patience patience(*state_, what);
  for (;;) {
    switch (look()) {
      case Look::kDone: return;
      case Look::kMoved: patience.refresh(); break;
      case Look::kNothing: patience.pause(pending); break;
    }
  }
}

Communicator Communicator::split(int colour, int key) const {
  if (state_->comm == MPI_COMM_NULL) return Communicator(std::make_shared<State>(mpi::Ranks(*state_)));
  if (colour < 0) throw Error("colour " + std::to_string(colour) + " of a split", "it has to be 0 or more");
  barrier();  // fails where a rank is missing; the split itself would hang
  MPI_Comm part = MPI_COMM_NULL;
  mpi::check(MPI_Comm_split(state_->comm, colour, key, &part), "MPI_Comm_split");
  return Communicator(std::make_shared<State>(mpi::describe(part, *state_)));
}

Communicator Communicator::split_by_machine() const {
  if (state_->comm == MPI_COMM_NULL) return Communicator(std::make_shared<State>(mpi::Ranks(*state_)));
  barrier();
  MPI_Comm part = MPI_COMM_NULL;
  mpi::check(MPI_Comm_split_type(state_->comm, MPI_COMM_TYPE_SHARED, rank(), MPI_INFO_NULL, &part),
             "MPI_Comm_split_type");
  return Communicator(std::make_shared<State>(mpi::describe(part, *state_)));
}

void Communicator::barrier() const {
  if (size() == 1) return;
  MPI_Request request;
  mpi::check(MPI_Ibarrier(state_->comm, &request), "MPI_Ibarrier");
  mpi::finish(*state_, request, "a barrier");
}

void Communicator::broadcast(void* data, std::size_t bytes, int root) const {
  if (root < 0 || root >= size()) throw Error("a broadcast from rank " + std::to_string(root), "there is none");
  if (size() == 1) return;
  const std::size_t piece = state_->limits.piece_bytes;
  for (std::size_t begin = 0; begin < bytes; begin += piece) {
    MPI_Request request;
    mpi::check(MPI_Ibcast(static_cast<char*>(data) + begin, static_cast<int>(std::min(piece, bytes - begin)), MPI_BYTE,
                          root, state_->comm, &request),
               "MPI_Ibcast");
    mpi::finish(*state_, request, "a broadcast");
  }
}

void Communicator::all_gather(const void* mine, void* all, std::size_t bytes) const {
  char* const to = static_cast<char*>(all);
  if (bytes == 0) return;
  if (size() == 1) {
    std::memmove(to, mine, bytes);
  } else if (bytes <= state_->limits.piece_bytes) {
    mpi::gather(*state_, mine, all, bytes);
  } else {  // more than MPI's counts hold
    std::vector<Outgoing> out;
    std::vector<Incoming> in;
    for (int r = 0; r < size(); ++r) {
      out.push_back({r, mine, bytes});
      in.push_back({r, to + r * bytes, bytes});
    }
    exchange(out, in);
  }
}

void Communicator::sum(std::span<double> values) const { mpi::reduce(*state_, values, mpi::add); }
void Communicator::sum(std::span<std::uint64_t> values) const { mpi::reduce(*state_, values, MPI_SUM); }
void Communicator::max(std::span<double> values) const { mpi::reduce(*state_, values, mpi::largest); }
void Communicator::max(std::span<std::uint64_t> values) const { mpi::reduce(*state_, values, MPI_MAX); }
void Communicator::min(std::span<double> values) const { mpi::reduce(*state_, values, mpi::smallest); }

struct Communicator::Transfer::Parts {
  std::shared_ptr<State> state;
  mpi::Exchange exchange;
};

Communicator::Transfer::Transfer(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Communicator::Transfer::Transfer(Transfer&&) noexcept = default;
Communicator::Transfer& Communicator::Transfer::operator=(Transfer&&) noexcept = default;
Communicator::Transfer::~Transfer() = default;
Communicator::Look Communicator::Transfer::look() { return parts_->exchange.look(); }
std::vector<int> Communicator::Transfer::pending() const { return parts_->exchange.pending(); }
void Communicator::Transfer::wait() {
  const auto still_pending = [this] { return pending(); };
  Communicator(parts_->state)
      .wait(
          "an exchange of messages", [this] { return look(); }, still_pending);
}

Communicator::Transfer Communicator::begin_exchange(std::span<const Outgoing> out, std::span<const Incoming> in,
                                                    int tag) const {
  constexpr int kLargestTag = 32767;  // guaranteed by every MPI
  if (tag < 0 || tag > kLargestTag) throw Error("a message's tag is " + std::to_string(tag), "0 to 32767 are there");
  return Transfer(std::unique_ptr<Transfer::Parts>(
      new Transfer::Parts{state_, mpi::Exchange(*state_, out, in, tag, state_->sent)}));
}

void Communicator::exchange(std::span<const Outgoing> out, std::span<const Incoming> in, int tag) const {
  begin_exchange(out, in, tag).wait();
}

std::vector<std::uint64_t> Communicator::exchange_sizes(std::span<const std::uint64_t> bytes_to_each) const {
  if (bytes_to_each.size() != static_cast<std::size_t>(size())) {
    throw Error("sizes for " + std::to_string(bytes_to_each.size()) + " ranks", "there are " + std::to_string(size()));
  }
  std::vector<std::uint64_t> from_each(bytes_to_each.begin(), bytes_to_each.end());
  if (size() > 1) mpi::transpose(*state_, bytes_to_each.data(), from_each.data(), sizeof(std::uint64_t));
  return from_each;
}

std::string broadcast_text(const Communicator& ranks, const std::string& text, int root) {
  std::uint64_t length = text.size();
  ranks.broadcast(&length, sizeof(length), root);
  std::string copy(text);
  copy.resize(length);
  ranks.broadcast(copy.data(), length, root);
  return copy;
}

std::vector<std::string> gather_texts(const Communicator& ranks, const std::string& text) {
  const std::vector<std::uint64_t> lengths = gathered(ranks, std::uint64_t{text.size()});
  const std::size_t longest = *std::max_element(lengths.begin(), lengths.end());
  std::string padded(text), all(longest * lengths.size(), '\0');
  padded.resize(longest);
  ranks.all_gather(padded.data(), all.data(), longest);
  std::vector<std::string> texts;
  for (std::size_t r = 0; r < lengths.size(); ++r) texts.push_back(all.substr(r * longest, lengths[r]));
  return texts;
}

std::string first_text(const Communicator& ranks, const std::string& text) {
  const std::vector<std::uint64_t> lengths = gathered(ranks, std::uint64_t{text.size()});
  const auto first = std::find_if(lengths.begin(), lengths.end(), [](std::uint64_t n) { return n > 0; });
  return first == lengths.end() ? "" : broadcast_text(ranks, text, static_cast<int>(first - lengths.begin()));
}

void throw_together(const Communicator& ranks, const std::string& problem) {
  if (const std::string first = first_text(ranks, problem); !first.empty()) throw Error(first);
}

}  // namespace maki
