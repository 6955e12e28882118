#include "src/ic/box_messages.hpp"

#include <algorithm>

namespace maki {

void BoxMessages::Side::add(int peer, const ArrayBox& box) {
  messages.push_back({peer, box, total});
  total += box.numbers();
}

void BoxMessages::Side::clear() {
  messages.clear();
  total = 0;
}

void BoxMessages::clear() {
  outgoing_.clear();
  incoming_.clear();
}

void BoxMessages::exchange(const Communicator& ranks, const Complex* array) {
  outgoing_.data.resize(outgoing_.total);
  incoming_.data.resize(incoming_.total);
  std::vector<Communicator::Outgoing> out;
  std::vector<Communicator::Incoming> in;
  for (const auto& [peer, box, begin] : outgoing_.messages) {
    Complex* const message = outgoing_.data.data() + begin;
    const auto [planes, rows, length] = box.count;
    const Complex* const from = array + box.base;
#pragma omp parallel for collapse(2) schedule(static)
    for (std::size_t i = 0; i < planes; ++i) {
      for (std::size_t j = 0; j < rows; ++j) {
        std::copy_n(from + i * box.step[0] + j * box.step[1], length, message + (i * rows + j) * length);
      }
    }
    if (box.numbers() > 0) out.push_back({peer, message, box.numbers() * sizeof(Complex)});
  }
  for (const auto& [peer, box, begin] : incoming_.messages) {
    if (box.numbers() > 0) in.push_back({peer, incoming_.data.data() + begin, box.numbers() * sizeof(Complex)});
  }
  ranks.exchange(out, in);
}

void BoxMessages::unpack(Complex* array) const {
  for (const auto& [peer, box, begin] : incoming_.messages) {
    const Complex* const message = incoming_.data.data() + begin;
    const auto [planes, rows, length] = box.count;
    Complex* const to = array + box.base;
#pragma omp parallel for collapse(2) schedule(static)
    for (std::size_t i = 0; i < planes; ++i) {
      for (std::size_t j = 0; j < rows; ++j) {
        std::copy_n(message + (i * rows + j) * length, length, to + i * box.step[0] + j * box.step[1]);
      }
    }
  }
}

auto BoxMessages::received(std::size_t box) const -> const Complex* {
  const auto& message = incoming_.messages.at(box);
  return message.box.numbers() > 0 ? incoming_.data.data() + message.begin : nullptr;
}

}  // namespace maki
