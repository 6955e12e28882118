// One exchange of messages under way.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "host/comm/mpi_ranks.hpp"

namespace maki::mpi {

// Receives are all posted at once, into their places; sends follow as the limits allow, each rank beginning with its
// neighbour so that nobody is sent to by all at once. So every send meets a receive, and nothing can lock up.
// Pieces of a message, and messages to the same rank, are told apart by their order, which MPI keeps for equal tags.
class Exchange {
 public:
  Exchange(const Ranks& ranks, std::span<const Communicator::Outgoing> out, std::span<const Communicator::Incoming> in,
           int tag, Communicator::Traffic& traffic);
  // Gives up an exchange that is not finished (the job or the caller fails): nothing more is received.
  ~Exchange();
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  // Advances the messages without waiting.
  Communicator::Look look();
  // Ranks that are still waited for.
  std::vector<int> pending() const;
  // Returns when all has come and gone. Throws Error for a peer that does not come, or sends another size.
  void run();

 private:
  struct Piece {
    int peer;
    char* data;
    std::size_t bytes;
    bool sends;
  };
  template <class Message>
  std::vector<Piece> cut(std::span<const Message> messages, bool sends) const;
  void copy_own(std::span<const Communicator::Outgoing> out, std::span<const Communicator::Incoming> in) const;
  void receive_all(std::vector<Piece> pieces);
  void send_more();
  bool test();

  const Ranks& ranks_;
  int tag_;
  Communicator::Traffic& traffic_;
  std::vector<Piece> to_send_;
  std::size_t next_ = 0, sending_ = 0, sending_bytes_ = 0;
  std::vector<Piece> posted_;  // beside requests_
  std::vector<MPI_Request> requests_;
  std::vector<int> done_;
  std::vector<MPI_Status> statuses_;
};

}  // namespace maki::mpi
