// The ranks of one job: those of MPI under a launcher, else this process alone, and MPI is not started. Only the thread
// that first called world() may use a communicator (MPI_THREAD_FUNNELED). Failures of MPI are thrown as Error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "kernels/error.hpp"

namespace maki {

class NcclRanks;

class Communicator {
 public:
  // All ranks that the launcher (mpirun, srun with PMI) started; one rank without a launcher. Starts MPI at the first
  // call and finalizes it at the program's end, unless another library of this process has started it. Throws Error
  // under srun without PMI, where every task would consider itself the only one, and where MPI was started without
  // threads (below MPI_THREAD_FUNNELED).
  static Communicator world();
  // This process alone.
  static Communicator self();

  int rank() const;
  int size() const;

  // A communicator of all ranks with the same colour, ordered by `key`, then by rank. Collective.
  Communicator split(int colour, int key) const;
  // The ranks of this communicator on this rank's machine (shared memory), in the order of rank. Collective.
  Communicator split_by_machine() const;

  // All of these are collective: every rank calls them in the same order. A lost peer is an Error that names it. A
  // process that is stopped or gone is detected after a twelfth of MAKI_RANK_TIMEOUT (default 120 s) by its missing
  // heartbeat (host/comm/mpi_ranks.hpp). A rank at work may take any time; where no rank is at work, a call throws
  // after the whole timeout without progress.
  void barrier() const;
  void broadcast(void* data, std::size_t bytes, int root) const;
  // `bytes` from every rank, in rank order.
  void all_gather(const void* mine, void* all, std::size_t bytes) const;
  // In place, element by element over all ranks: the same bits on every rank. Doubles are added in rank order with
  // compensated summation (Neumaier 1974): the sum is as if rounded once. Integers are exact.
  void sum(std::span<double> values) const;
  void sum(std::span<std::uint64_t> values) const;
  void max(std::span<double> values) const;
  void max(std::span<std::uint64_t> values) const;
  void min(std::span<double> values) const;

  // The state of a transfer since the last look: no change, progress, or complete.
  enum class Look { kNothing, kMoved, kDone };

  // One message to or from a rank, in host memory. Empty ones are allowed and are not sent.
  struct Outgoing {
    int to;
    const void* data;
    std::size_t bytes;
  };
  struct Incoming {
    int from;
    void* data;
    std::size_t bytes;  // known beforehand: the size that the other side sends
  };
  // Sends and receives all messages, in pieces of bounded size, with a bounded number and size in flight (Limits). A
  // rank's messages to itself are copied. Collective among the participating ranks, with equal `tag`.
  void exchange(std::span<const Outgoing> out, std::span<const Incoming> in, int tag = 0) const;
  // An exchange in progress while the caller works: the messages' memory is in use until wait() returns.
  class Transfer {
   public:
    Transfer(Transfer&&) noexcept;
    Transfer& operator=(Transfer&&) noexcept;
    // Cancels a transfer that was not waited for: only valid where the job ends.
    ~Transfer();
    // Advances the messages, which some networks need such calls for; returns whether all are complete.
    bool progress() { return look() == Look::kDone; }
    Look look();
    void wait();
    std::vector<int> pending() const;  // ranks that are still waited for

   private:
    friend class Communicator;
    struct Parts;
    explicit Transfer(std::unique_ptr<Parts> parts);
    std::unique_ptr<Parts> parts_;
  };
  Transfer begin_exchange(std::span<const Outgoing> out, std::span<const Incoming> in, int tag = 0) const;
  // All-to-all exchange of byte counts: sends bytes_to_each[r] to rank r; result[r] is rank r's count for this rank.
  std::vector<std::uint64_t> exchange_sizes(std::span<const std::uint64_t> bytes_to_each) const;

  struct Traffic {
    std::uint64_t messages = 0, bytes = 0;  // sent to other ranks by exchange()
    std::uint64_t empty = 0;                // messages of no bytes that were sent: stays 0
  };
  Traffic traffic() const;  // of this communicator; splits have their own

  // Bounds on the sends in flight at once and on the size of pieces; equal on all ranks. One piece may always be in
  // flight. Receives are all posted at once, into their final memory.
  struct Limits {
    std::size_t piece_bytes = std::size_t{1} << 30;  // up to 2^31 - 1
    std::size_t messages = 64;                       // pieces being sent
    std::size_t bytes = std::size_t{1} << 30;        // of these pieces
  };
  void set_limits(const Limits& limits);
  const Limits& limits() const;

  // Calls `look` until it returns kDone, with growing pauses while nothing moves. Throws Error as the calls above; its
  // message contains `what` ("an exchange") and the lost ranks, or those of `pending` where all ranks still answer.
  void wait(const std::string& what, const std::function<Look()>& look,
            const std::function<std::vector<int>()>& pending) const;

 private:
  friend class DevicePayload;
  // NCCL's communicator of these ranks, once a payload has started it.
  std::shared_ptr<NcclRanks>& nccl() const;

  struct State;
  explicit Communicator(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

// One value of each rank, in the order of ranks. Collective, as the others.
template <class T>
std::vector<T> gathered(const Communicator& ranks, const T& mine) {
  static_assert(std::is_trivially_copyable_v<T>);
  std::vector<T> all(static_cast<std::size_t>(ranks.size()));
  ranks.all_gather(&mine, all.data(), sizeof mine);
  return all;
}
// One number over all ranks, double or std::uint64_t, as Communicator::sum(), max() and min().
template <class T>
T sum_of(const Communicator& ranks, T mine) {
  ranks.sum(std::span(&mine, 1));
  return mine;
}
template <class T>
T largest_of(const Communicator& ranks, T mine) {
  ranks.max(std::span(&mine, 1));
  return mine;
}
template <class T>
T smallest_of(const Communicator& ranks, T mine) {
  ranks.min(std::span(&mine, 1));
  return mine;
}

// The text of rank `root`, on all ranks. Collective.
std::string broadcast_text(const Communicator& ranks, const std::string& text, int root = 0);
// The texts of all ranks, in the order of ranks. For short texts: each takes the memory of the longest. Collective.
std::vector<std::string> gather_texts(const Communicator& ranks, const std::string& text);
// The text of the lowest rank whose text is not empty; empty where all are. Collective.
std::string first_text(const Communicator& ranks, const std::string& text);

// Throws Error on all ranks where `problem` is not empty on any: the first_text(). Collective.
void throw_together(const Communicator& ranks, const std::string& problem);

// Makes `call` on each rank; where it throws on any, all ranks throw the same Error. Collective, but `call` must not
// be; it may differ between ranks. A single process just makes the call.
template <class Call>
void all_succeed(const Communicator& ranks, Call&& call) {
  if (ranks.size() == 1) return call();
  std::string problem;
  try {
    call();
  } catch (const std::bad_alloc&) {
    problem = "rank " + std::to_string(ranks.rank()) + " is out of memory";
  } catch (const std::exception& error) {
    problem = message_of(error);
  }
  throw_together(ranks, problem);
}

// all_succeed() for a call that only rank 0 makes.
template <class Call>
void root_succeeds(const Communicator& ranks, Call&& call) {
  all_succeed(ranks, [&] {
    if (ranks.rank() == 0) call();
  });
}

// Even shares of a list (initial conditions, rows of files) in rank order: rank r of P holds the items [n r / P,
// n (r + 1) / P) of n. Some are empty where there are fewer items than ranks.
inline std::uint64_t share_begin(std::uint64_t n, int rank, int ranks) {
  return static_cast<std::uint64_t>(static_cast<unsigned __int128>(n) * static_cast<unsigned>(rank) /
                                    static_cast<unsigned>(ranks));
}

struct Share {
  std::uint64_t first = 0, end = 0;
  std::uint64_t size() const { return end - first; }
};
inline Share share_of(std::uint64_t n, int rank, int ranks) {
  return {share_begin(n, rank, ranks), share_begin(n, rank + 1, ranks)};
}
// The rank whose share of n items holds an item.
inline std::size_t rank_of_item(std::uint64_t item, std::uint64_t n, int ranks) {
  return static_cast<std::size_t>((static_cast<unsigned __int128>(item + 1) * static_cast<unsigned>(ranks) - 1) / n);
}

// Messages of one type from every rank to every rank: sends out[r] to rank r and returns the messages from each rank.
// Collective.
template <class T>
std::vector<std::vector<T>> exchange_all(const Communicator& ranks, std::vector<std::vector<T>> out) {
  static_assert(std::is_trivially_copyable_v<T>);
  if (ranks.size() == 1) return out;
  std::vector<std::uint64_t> sizes;
  for (const std::vector<T>& message : out) sizes.push_back(message.size() * sizeof(T));
  const std::vector<std::uint64_t> coming = ranks.exchange_sizes(sizes);
  std::vector<std::vector<T>> in(out.size());
  std::vector<Communicator::Outgoing> sends;
  std::vector<Communicator::Incoming> receives;
  for (std::size_t r = 0; r < out.size(); ++r) {
    in[r].resize(coming[r] / sizeof(T));
    sends.push_back({static_cast<int>(r), out[r].data(), sizes[r]});
    receives.push_back({static_cast<int>(r), in[r].data(), coming[r]});
  }
  ranks.exchange(sends, receives);
  return in;
}

// The lists of all ranks on rank 0, in the order of ranks; on others as many empty ones. Collective.
template <class T>
std::vector<std::vector<T>> gather_lists(const Communicator& ranks, std::vector<T> mine) {
  std::vector<std::vector<T>> out(static_cast<std::size_t>(ranks.size()));
  out[0] = std::move(mine);
  return exchange_all(ranks, std::move(out));
}

// One list after another.
template <class T>
std::vector<T> joined(std::vector<std::vector<T>> lists) {
  std::vector<T> all = std::move(lists.front());
  std::size_t size = all.size();
  for (const std::vector<T>& list : lists) size += list.size();
  all.reserve(size);
  for (std::size_t r = 1; r < lists.size(); ++r) {
    all.insert(all.end(), lists[r].begin(), lists[r].end());
    std::vector<T>().swap(lists[r]);  // frees it
  }
  return all;
}

}  // namespace maki
