#include "wan/net/byte_codec.hpp"
#include "wan/net/tune/bench.hpp"

namespace maki::wan {
namespace {

constexpr std::uint64_t kMany = 1 << 20, kLargestNumber = std::uint64_t{1} << 62;
constexpr double kHighestRate = 1e15, kLongestUse = 1e12;
constexpr std::size_t kLongestName = 64;

// Of a congestion control: shown to people.
template <class Io, class Text>
void name_field(Io& io, Text& name) {
  io.field(name, kLongestName);
  if constexpr (std::is_same_v<Io, ByteReader>)
    if (printable(name) != name) io.fail("a name that none can have");
}

template <class Io>
void fields(Io& io, Of<Io, KernelLimits>& kernel) {
  for (auto* bound : {&kernel.rmem_max, &kernel.wmem_max, &kernel.tcp_rmem_max, &kernel.tcp_wmem_max})
    io.field(*bound, 0, kLargestNumber, "a bound of the kernel is too large");
  io.field(kernel.slow_start_after_idle);
  name_field(io, kernel.congestion);
  io.list(kernel.congestions, std::uint16_t{32}, "too many congestion controls",
          [](Io& one, auto& name) { name_field(one, name); });
}

template <class Io>
void fields(Io& io, Of<Io, BenchOrder>& order) {
  using Action = BenchOrder::Action;
  io.field(order.action, Action::kHello, Action::kLater, "an order that is unknown here");
  for (auto* size : {&order.window, &order.send_chunk, &order.receive_chunk, &order.transfer.bytes})
    io.field(*size, 0, kLargestTransfer, "a size is too large");
  name_field(io, order.congestion);
  io.field(order.pacing, 0, kHighestRate, "no rate");
  io.field(order.transfer.count, 0, kMany, "too many messages");
  io.field(order.transfer.flight, 1, kMany, "none or too many messages at once");
  io.field(order.at);
}

template <class Io>
void fields(Io& io, Of<Io, BenchReply>& reply) {
  using What = BenchReply::What;
  io.field(reply.what, What::kWelcome, What::kUsed, "a reply that is unknown here");
  fields(io, reply.kernel);
  io.field(reply.at);
  io.field(reply.began);
  io.field(reply.seconds, 0, kLongestUse, "no time");
}

template <class Message>
std::vector<std::byte> encoded(const Message& message) {
  ByteWriter out;
  fields(out, message);
  return out.take();
}

template <class Message>
Message decoded(std::span<const std::byte> bytes) {
  ByteReader in(bytes, "a message of the peer's measurement", "the peer does not measure as 'maki wan bench' does");
  Message message;
  fields(in, message);
  in.end();
  return message;
}

}  // namespace

std::vector<std::byte> encode(const BenchOrder& order) { return encoded(order); }
std::vector<std::byte> encode(const BenchReply& reply) { return encoded(reply); }
BenchReply decode_bench_reply(std::span<const std::byte> bytes) { return decoded<BenchReply>(bytes); }

BenchOrder decode_bench_order(std::span<const std::byte> bytes) {
  const auto order = decoded<BenchOrder>(bytes);
  if (order.transfer.bytes * order.transfer.flight > kLargestTransfer)
    throw ProtocolError("the peer's measurement ordered a transfer that is too large");
  return order;
}

}  // namespace maki::wan
