#include "host/comm/agree.hpp"

#include <algorithm>

#include "kernels/error.hpp"

namespace maki {

std::string broadcast_text(const Communicator& ranks, const std::string& text, int root) {
  std::uint64_t length = text.size();
  ranks.broadcast(&length, sizeof(length), root);
  std::string copy(text);
  copy.resize(length);
  ranks.broadcast(copy.data(), length, root);
  return copy;
}

std::vector<std::string> gather_texts(const Communicator& ranks, const std::string& text) {
  std::vector<std::uint64_t> lengths(ranks.size());
  const std::uint64_t length = text.size();
  ranks.all_gather(&length, lengths.data(), sizeof(length));
  const std::size_t longest = *std::max_element(lengths.begin(), lengths.end());
  std::string padded(text), all(longest * lengths.size(), '\0');
  padded.resize(longest);
  ranks.all_gather(padded.data(), all.data(), longest);
  std::vector<std::string> texts;
  for (std::size_t r = 0; r < lengths.size(); ++r) texts.push_back(all.substr(r * longest, lengths[r]));
  return texts;
}

void throw_together(const Communicator& ranks, const std::string& problem) {
  std::vector<std::uint64_t> lengths(ranks.size());
  const std::uint64_t length = problem.size();
  ranks.all_gather(&length, lengths.data(), sizeof(length));
  const auto first = std::find_if(lengths.begin(), lengths.end(), [](std::uint64_t n) { return n > 0; });
  if (first == lengths.end()) return;
  throw Error(broadcast_text(ranks, problem, static_cast<int>(first - lengths.begin())));
}

}  // namespace maki
