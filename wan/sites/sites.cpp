#include "wan/sites/sites.hpp"

#include <algorithm>
#include <array>
#include <exception>
#include <map>
#include <new>
#include <numeric>
#include <utility>

#include "host/comm/job.hpp"
#include "kernels/error.hpp"
#include "wan/net/settings.hpp"
#include "wan/sites/ring.hpp"

namespace maki::sites {
namespace {

// The result of a call at the gateway, broadcast to the other ranks.
struct Outcome {
  enum Kind : std::uint64_t { kDone, kError, kSiteLost };
  std::uint64_t kind = kDone;
  std::uint64_t bytes = 0;  // bytes of the message, or of the error's text, that follows
};

// Size of the table at the end of the first piece: the sizes of all parts, and their number.
std::size_t bytes_of_sizes(std::size_t parts) { return (parts + 1) * sizeof(std::uint64_t); }

void append_sizes(Message& piece, const std::vector<std::uint64_t>& sizes) {
  const std::uint64_t count = sizes.size();
  const auto table = std::as_bytes(std::span(sizes)), last = as_bytes_of(count);
  piece.insert(piece.end(), table.begin(), table.end());
  piece.insert(piece.end(), last.begin(), last.end());
}

constexpr std::uint64_t kLargestPart = std::uint64_t{1} << 46;  // so that sums of sizes do not overflow
constexpr std::size_t kReserved = std::size_t{1} << 30;         // at most so many bytes are reserved for a part ahead
static_assert(Sites::kPiece + (Sites::kMostRanks + 1) * sizeof(std::uint64_t) <= kLongestMessage);

[[noreturn]] void throw_inconsistent(const std::string& site) {
  throw Error("the sizes of the parts that came from site " + site + " do not fit", "",
              "run the same version at all sites");
}

// Removes the table from the end of a piece and returns the sizes. `site`: the sender, for messages.
std::vector<std::uint64_t> remove_sizes(Message& piece, const std::string& site) {
  std::uint64_t count = 0;
  if (piece.size() < sizeof count) throw_inconsistent(site);
  std::memcpy(&count, piece.data() + piece.size() - sizeof count, sizeof count);
  if (count == 0 || count > piece.size() / sizeof count - 1 || count > Sites::kMostRanks) throw_inconsistent(site);
  const std::size_t bytes = piece.size() - bytes_of_sizes(count);
  std::vector<std::uint64_t> sizes(count);
  std::memcpy(sizes.data(), piece.data() + bytes, count * sizeof count);
  if (std::ranges::any_of(sizes, [](std::uint64_t size) { return size > kLargestPart; })) throw_inconsistent(site);
  piece.resize(bytes);
  return sizes;
}

// Throws Error where a rank has no room for its parts.
void require_room(std::uint64_t bytes, std::uint64_t room, const std::string& site) {
  if (bytes <= room) return;
  throw Error("site " + site + " announces " + wan::amount(bytes) + " for one rank of this site",
              "there is room for " + wan::amount(room), "run the same version at all sites, with more memory here");
}

// Bytes of the rank with most, where part p goes to rank p mod `ranks`.
std::uint64_t largest_share(const std::vector<std::uint64_t>& sizes, std::size_t ranks) {
  std::vector<std::uint64_t> shares(ranks);
  for (std::size_t p = 0; p < sizes.size(); ++p) shares[p % ranks] += sizes[p];
  return std::ranges::max(shares);
}

// Splits the range [begin, end) of all parts, laid end to end, by part: call(part, offset in the part, offset in the
// range, bytes).
template <class Call>
void for_parts(const std::vector<std::uint64_t>& sizes, std::uint64_t begin, std::uint64_t end, Call&& call) {
  std::uint64_t start = 0;
  for (std::size_t p = 0; p < sizes.size(); start += sizes[p++]) {
    const std::uint64_t from = std::max(begin, start), to = std::min(end, start + sizes[p]);
    if (from < to) call(p, from - start, from - begin, static_cast<std::size_t>(to - from));
  }
}

// The ring of a run at one site, which has nobody to send to.
class RingOfOne : public Ring {
 public:
  int count() const override { return 1; }
  int me() const override { return 0; }
  void send(int, Phase, std::uint64_t, Message) override { throw Error("there is no other site"); }
  void publish(Phase, std::uint64_t, Message) override {}
  Message receive(int, Phase, std::uint64_t) override { throw Error("there is no other site"); }
  std::array<Traffic, kPhases> take_traffic() override { return {}; }
  void close() override {}
};

}  // namespace

struct Sites::Gateway {
  explicit Gateway(const Communicator& all) : ranks(all.size() > 1 ? all.split(0, all.rank()) : all) {}
  Communicator ranks;          // a communicator of its own, so that these messages do not mix with others
  std::exception_ptr problem;  // an error of publish() that the other ranks do not know of yet
  std::map<std::pair<Phase, std::uint64_t>, Message> published;
  std::size_t piece = kPiece;

  bool here() const { return ranks.rank() == 0; }

  // Runs `call` at the gateway; all ranks get the message that it returns, or throw what it throws.
  template <class Call>
  Message share_result(Call&& call) {
    Message message;
    std::string text;
    Outcome outcome;
    if (here()) {
      try {
        if (problem) std::rethrow_exception(problem);
        message = call();
        outcome.bytes = message.size();
      } catch (const std::exception& error) {
        if (ranks.size() == 1) throw;
        const bool memory = dynamic_cast<const std::bad_alloc*>(&error) != nullptr;
        text = memory ? "the gateway of the site is out of memory" : message_of(error);
        outcome = {dynamic_cast<const SiteLost*>(&error) ? Outcome::kSiteLost : Outcome::kError, text.size()};
      }
    }
    if (ranks.size() == 1) return message;
    ranks.broadcast(&outcome, sizeof outcome, 0);
    if (outcome.kind == Outcome::kDone) {
      message.resize(outcome.bytes);
      ranks.broadcast(message.data(), message.size(), 0);
      return message;
    }
    text.resize(outcome.bytes);
    ranks.broadcast(text.data(), text.size(), 0);
    if (outcome.kind == Outcome::kSiteLost) throw SiteLost(text);
    throw Error(text);
  }

  // Gathers the parts of all ranks at the gateway, which hands them to `pass` piece by piece.
  template <class Pass>
  void gather(std::span<const std::byte> mine, Pass&& pass);
  Message gather_piece(const std::vector<std::uint64_t>& sizes, std::uint64_t begin, std::uint64_t end,
                       std::span<const std::byte> mine);
};

// Gathers the bytes [begin, end) of all parts at the gateway.
Message Sites::Gateway::gather_piece(const std::vector<std::uint64_t>& sizes, std::uint64_t begin, std::uint64_t end,
                                     std::span<const std::byte> mine) {
  const auto me = static_cast<std::size_t>(ranks.rank());
  Message piece;
  std::vector<Communicator::Outgoing> out;
  std::vector<Communicator::Incoming> in;
  if (here()) {
    piece.reserve(end - begin + (begin == 0 ? bytes_of_sizes(sizes.size()) : 0));
    const std::size_t own =
        begin < mine.size() ? std::min<std::size_t>(end, mine.size()) - begin : 0;  // the first part
    if (own > 0) piece.assign(mine.begin() + begin, mine.begin() + begin + own);
    piece.resize(end - begin);
  }
  for_parts(sizes, begin, end, [&](std::size_t part, std::uint64_t from, std::uint64_t to, std::size_t bytes) {
    if (here() && part != me) in.push_back({static_cast<int>(part), piece.data() + to, bytes});
    if (!here() && part == me) out.push_back({0, mine.data() + from, bytes});
  });
  ranks.exchange(out, in);
  return piece;
}

template <class Pass>
void Sites::Gateway::gather(std::span<const std::byte> mine, Pass&& pass) {
  const std::vector<std::uint64_t> sizes = gathered(ranks, std::uint64_t{mine.size()});
  const std::uint64_t total = std::accumulate(sizes.begin(), sizes.end(), std::uint64_t{0});
  std::exception_ptr failed;
  std::uint64_t begin = 0;
  do {
    const std::uint64_t end = std::min<std::uint64_t>(total, begin + piece);
    Message next = gather_piece(sizes, begin, end, mine);
    if (here() && !failed) {  // after a failure, pieces of the other ranks are received and dropped
      try {
        if (problem) std::rethrow_exception(problem);
        if (begin == 0) append_sizes(next, sizes);
        pass(std::move(next));
      } catch (...) {
        failed = std::current_exception();
      }
    }
    begin = end;
  } while (begin < total);
  share_result([&] {
    if (failed) std::rethrow_exception(failed);
    return Message();
  });
}

Sites::Sites(std::unique_ptr<Ring> ring, std::vector<std::string> names, const Communicator& ranks)
    : ring_(std::move(ring)), names_(std::move(names)), ranks_(ranks), gateway_(std::make_unique<Gateway>(ranks)) {
  const std::uint64_t ranks_here = ranks.size() > 1 ? find_machines(ranks).most_ranks : 1;
  const Message place = gateway_->share_result([&] {
    if (!ring_) throw Error("a site without a ring on its first rank");
    if (ring_->count() != count())
      throw Error("a ring of " + std::to_string(ring_->count()) + " sites", std::to_string(count()) + " are named");
    const std::array<std::uint64_t, 2> numbers = {static_cast<std::uint64_t>(ring_->me()),
                                                  ring_->memory_limit() / ranks_here};
    const auto bytes = as_bytes_of(numbers);
    return Message(bytes.begin(), bytes.end());
  });
  const auto [me, room] = value_of<std::array<std::uint64_t, 2>>(place);
  me_ = static_cast<int>(me);
  room_ = room;
}

Sites::Sites(const Communicator& ranks, std::string name)
    : ring_(std::make_unique<RingOfOne>()), names_{std::move(name)}, ranks_(ranks),
      gateway_(std::make_unique<Gateway>(Communicator::self())) {}

Sites::~Sites() = default;

std::vector<int> Sites::partners(bool all) const {
  std::vector<int> sites;
  for (int site = 0; site < count(); ++site)
    if (site != me_ && (all || site == left() || site == right())) sites.push_back(site);
  return sites;
}

void Sites::set_piece(std::size_t bytes) {
  if (bytes == 0) throw Error("pieces of no bytes");
  gateway_->piece = bytes;
}

void Sites::publish(Phase phase, std::uint64_t number, std::span<const std::byte> mine) {
  if (!gateway_->here()) return;
  try {
    Message message(mine.begin(), mine.end());
    gateway_->published[{phase, number}] = message;
    ring_->publish(phase, number, std::move(message));
  } catch (...) {
    if (gateway_->ranks.size() == 1) throw;
    gateway_->problem = std::current_exception();  // thrown on all ranks by the next call in which they wait
  }
}

std::vector<Message> Sites::collect(Phase phase, std::uint64_t number) {
  std::vector<Message> all(static_cast<std::size_t>(count()));
  Message packed = gateway_->share_result([&] {
    const auto own = gateway_->published.find({phase, number});
    if (own == gateway_->published.end()) throw Error("the sites are not in step", "nothing was published here");
    all[static_cast<std::size_t>(me_)] = std::move(own->second);
    gateway_->published.erase(own);
    for (int site = 0; site < count(); ++site)
      if (site != me_) all[static_cast<std::size_t>(site)] = ring_->receive(site, phase, number);
    Message one;
    if (gateway_->ranks.size() == 1) return one;
    std::vector<std::uint64_t> sizes;
    for (const Message& message : all) {
      sizes.push_back(message.size());
      one.insert(one.end(), message.begin(), message.end());
    }
    append_sizes(one, sizes);
    return one;
  });
  if (gateway_->here()) return all;
  const auto sizes = remove_sizes(packed, name(me_));
  for_parts(sizes, 0, packed.size(), [&](std::size_t site, std::uint64_t, std::uint64_t from, std::size_t bytes) {
    all[site].assign(packed.begin() + from, packed.begin() + from + bytes);
  });
  return all;
}

void Sites::send_parts(int to, Phase phase, std::uint64_t number, std::span<const std::byte> mine) {
  gateway_->gather(mine, [&](Message piece) { ring_->send(to, phase, number, std::move(piece)); });
}

void Sites::publish_parts(Phase phase, std::uint64_t number, std::span<const std::byte> mine) {
  gateway_->gather(mine, [&](Message piece) { ring_->publish(phase, number, std::move(piece)); });
}

std::vector<Message> Sites::receive_parts(int from, Phase phase, std::uint64_t number) {
  const auto receive = [&] { return gateway_->share_result([&] { return ring_->receive(from, phase, number); }); };
  Message piece = receive();
  const auto sizes = remove_sizes(piece, name(from));
  const std::uint64_t total = std::accumulate(sizes.begin(), sizes.end(), std::uint64_t{0});
  require_room(total, room_, name(from));
  std::vector<Message> parts(sizes.size());
  for (std::uint64_t begin = 0;; piece = receive()) {
    const std::uint64_t end = begin + piece.size();
    if (end > total || (piece.empty() && total > 0)) throw_inconsistent(name(from));
    for_parts(sizes, begin, end, [&](std::size_t part, std::uint64_t, std::uint64_t at, std::size_t bytes) {
      Message& whole = parts[part];
      if (bytes == piece.size() && bytes == sizes[part]) {
        whole = std::move(piece);
      } else {
        whole.reserve(std::min<std::size_t>(sizes[part], kReserved));
        whole.insert(whole.end(), piece.begin() + at, piece.begin() + at + bytes);
      }
    });
    if (end == total) return parts;
    begin = end;
  }
}

std::vector<Message> Sites::receive_shares(int from, Phase phase, std::uint64_t number) {
  const auto size = static_cast<std::size_t>(ranks_.size()), me = static_cast<std::size_t>(ranks_.rank());
  if (size == 1) return receive_parts(from, phase, number);
  // The gateway sends a piece only to the ranks whose parts it holds. All ranks learn the size of the piece, and of all
  // parts with the first piece.
  Message piece;
  std::vector<std::uint64_t> sizes;
  std::vector<Message> mine;
  std::uint64_t begin = 0, total = 0;
  do {
    Message piece_header = gateway_->share_result([&] {
      piece = ring_->receive(from, phase, number);
      std::vector<std::uint64_t> table;
      if (sizes.empty()) table = remove_sizes(piece, name(from));
      const std::uint64_t bytes = piece.size();
      const auto front = as_bytes_of(bytes);
      Message header(front.begin(), front.end());
      append_sizes(header, table);
      return header;
    });
    std::uint64_t bytes = 0;
    std::memcpy(&bytes, piece_header.data(), sizeof bytes);
    const std::uint64_t end = begin + bytes;
    if (sizes.empty()) {
      sizes = remove_sizes(piece_header, name(from));
      total = std::accumulate(sizes.begin(), sizes.end(), std::uint64_t{0});
      require_room(largest_share(sizes, size), room_, name(from));
      mine.resize(sizes.size() > me ? (sizes.size() - me + size - 1) / size : 0);
    }
    if (end > total || (begin == end && total > 0)) throw_inconsistent(name(from));
    std::vector<Communicator::Outgoing> out;
    std::vector<Communicator::Incoming> in;
    for_parts(sizes, begin, end, [&](std::size_t part, std::uint64_t to, std::uint64_t at, std::size_t bytes) {
      if (gateway_->here()) out.push_back({static_cast<int>(part % size), piece.data() + at, bytes});
      if (part % size != me) return;
      Message& whole = mine[part / size];
      whole.reserve(std::min<std::size_t>(sizes[part], kReserved));
      whole.resize(to + bytes);
      in.push_back({0, whole.data() + to, bytes});
    });
    gateway_->ranks.exchange(out, in);
    begin = end;
  } while (begin < total);
  return mine;
}

std::array<Traffic, kPhases> Sites::take_traffic() {
  using All = std::array<Traffic, kPhases>;
  return value_of<All>(gateway_->share_result([&] {
    const All traffic = ring_->take_traffic();
    const auto bytes = as_bytes_of(traffic);
    return Message(bytes.begin(), bytes.end());
  }));
}

void Sites::close() {
  gateway_->share_result([&] {
    ring_->close();
    return Message();
  });
}

}  // namespace maki::sites
