// Rounds of messages of every rank to every other and to itself, of which every rank knows what they hold.
#pragma once

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "host/comm/communicator.hpp"

namespace maki::test {

using Bytes = std::vector<unsigned char>;

// The k-th message from one rank to another in a round; empty for most pairs when `sparse`.
inline Bytes message(int from, int to, int k, unsigned round, bool sparse) {
  std::mt19937_64 random(((round * 64ull + from) * 64 + to) * 8 + k);
  if (random() % 3 == 0 || (sparse && random() % 4 != 0)) return {};
  Bytes bytes(random() % (random() % 8 == 0 ? 200000 : 3000));
  for (auto& b : bytes) b = static_cast<unsigned char>(random());
  return bytes;
}

struct Round {
  std::vector<Bytes> sent, received;
  std::vector<Communicator::Outgoing> out;
  std::vector<Communicator::Incoming> in;
  std::uint64_t messages = 0, bytes = 0;  // to others, in pieces
};

inline Round prepare(const Communicator& ranks, unsigned round, int each, bool sparse, std::size_t piece) {
  Round r;
  for (int peer = 0; peer < ranks.size(); ++peer) {
    for (int k = 0; k < each; ++k) {
      r.sent.push_back(message(ranks.rank(), peer, k, round, sparse));
      r.received.push_back(Bytes(message(peer, ranks.rank(), k, round, sparse).size(), 0));
      if (peer == ranks.rank()) continue;
      r.bytes += r.sent.back().size();
      r.messages += (r.sent.back().size() + piece - 1) / piece;
    }
  }
  for (int i = 0; i < ranks.size() * each; ++i) {
    r.out.push_back({i / each, r.sent[i].data(), r.sent[i].size()});
    r.in.push_back({i / each, r.received[i].data(), r.received[i].size()});
  }
  return r;
}

inline void expect_arrived(const Communicator& ranks, const Round& r, unsigned round, int each, bool sparse) {
  for (int i = 0; i < ranks.size() * each; ++i) {
    ASSERT_EQ(r.received[i], message(i / each, ranks.rank(), i % each, round, sparse)) << "from " << i / each;
  }
}

}  // namespace maki::test
