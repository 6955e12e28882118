// Messages between ranks that are boxes of a host array of complex numbers.
#pragma once

#include <array>
#include <complex>
#include <cstddef>
#include <vector>

#include "host/comm/communicator.hpp"

namespace maki {

// Numbers base + i step[0] + j step[1] + k for all i, j, k below count: in that order in the message.
struct ArrayBox {
  std::size_t base = 0;
  std::array<std::size_t, 3> count{};
  std::array<std::size_t, 2> step{};
  std::size_t numbers() const { return count[0] * count[1] * count[2]; }
};

// One exchange. Everything is copied out of the array before anything comes in: boxes to send and to receive may share
// places. A rank may send to itself. Boxes to one rank are told apart by their order; empty ones are left out.
class BoxMessages {
 public:
  using Complex = std::complex<double>;

  void clear();
  void send(int peer, const ArrayBox& box) { outgoing_.add(peer, box); }
  void receive(int peer, const ArrayBox& box) { incoming_.add(peer, box); }

  // Collective among the ranks that have to send or to receive.
  void exchange(const Communicator& ranks, const Complex* array);
  void unpack(Complex* array) const;  // what came, to its boxes
  // What came, by the order of receive(): null for an empty box.
  const Complex* received(std::size_t box) const;

 private:
  struct Side {
    struct Message {
      int peer;
      ArrayBox box;
      std::size_t begin;
    };
    std::vector<Message> messages;
    std::vector<Complex> data;
    std::size_t total = 0;
    void add(int peer, const ArrayBox& box);
    void clear();
  };
  Side outgoing_, incoming_;
};

}  // namespace maki
