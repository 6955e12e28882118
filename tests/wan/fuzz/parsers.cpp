#include "tests/wan/fuzz/parsers.hpp"

#include <algorithm>
#include <cstring>

#include "tests/wan/net/copy/samples.hpp"
#include "wan/net/byte_codec.hpp"
#include "wan/net/copy/message.hpp"
#include "wan/net/path/wire.hpp"
#include "wan/net/relay/admission.hpp"
#include "wan/net/relay/connector.hpp"
#include "wan/net/secure/key.hpp"
#include "wan/net/settings.hpp"
#include "wan/net/tune/bench.hpp"

namespace maki::wan::fuzz {

namespace {

using View = std::span<const std::byte>;

Block block(View bytes) { return {bytes.begin(), bytes.end()}; }
Block block(const std::string& text) { return block(std::as_bytes(std::span(text))); }
Block block(const Bytes& bytes) { return block(bytes.view()); }
std::string text_of(View bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

void must(bool good, const char* what) {
  if (!good) throw Broken(what);
}

void must_be_same(View again, View bytes, const char* what) {
  must(std::equal(again.begin(), again.end(), bytes.begin(), bytes.end()), what);
}

// ---- the path -------------------------------------------------------------------------------------------------------

void feed_hello(View bytes) {
  const auto block = wan::block<kHelloBytes>(bytes);
  const Hello hello = decode_hello(block);
  if (hello.version == kProtocolVersion) must_be_same(encode(hello), block, "hello");
}

void feed_welcome(View bytes) {
  const auto block = wan::block<kWelcomeBytes>(bytes);
  const Welcome welcome = decode_welcome(block);
  if (welcome.version == kProtocolVersion) must_be_same(encode(welcome), block, "welcome");
}

void feed_frame(View bytes) {
  const auto block = wan::block<kFrameBytes>(bytes);
  const Frame frame = decode_frame(block);
  must(frame.length <= kMaxPayload, "length of a frame");
  if (frame.type == FrameType::kData)
    must(frame.offset + frame.length <= frame.total && frame.offset + frame.length >= frame.offset, "place of a chunk");
  must_be_same(encode(frame), block, "frame");
}

void feed_received(View bytes) {
  const ReceivedSet set = ReceivedSet::decode(bytes);
  must_be_same(set.encode(bytes.size()), bytes, "received set");
  for (const auto& [first, last] : set.ranges())
    must(first <= last && !set.contains(first - 1) && set.contains(last), "range");
}

std::vector<Block> hellos() {
  Hello full{.stream = 255,
             .epoch = 9,
             .streams = 256,
             .unmatched_limit = 1,
             .message_limit = ~0ull,
             .patience = 600,
             .name = "amsterdam"};
  full.session.fill(std::byte{7});
  return {block(encode(Hello{})), block(encode(full))};
}

std::vector<Block> welcomes() {
  Welcome good;
  good.session.fill(std::byte{7});
  return {block(encode(good)), block(encode(Welcome{.answer = Answer::kRefused, .reason = "no"}))};
}

std::vector<Block> frames() {
  return {
      block(encode(Frame{
          .type = FrameType::kData, .length = 100, .sequence = 5, .tag = 1, .index = 2, .total = 300, .offset = 200})),
      block(encode(Frame{.type = FrameType::kAck, .length = 24})), block(encode(Frame{}))};
}

std::vector<Block> received_sets() {
  ReceivedSet set;
  for (const std::uint64_t sequence : {1, 2, 3, 5, 6, 10, 12}) set.add(sequence);
  return {block(set.encode(1000)), block(ReceivedSet{}.encode(1000))};
}

// ---- files and words of a user --------------------------------------------------------------------------------------

void feed_key(View bytes) {
  const Key key = parse_key(text_of(bytes), "file");
  must(key.id.size() == 16, "id of a key");
}

void feed_endpoint(View bytes) {
  const Endpoint endpoint = Endpoint::parse(text_of(bytes));
  must(Endpoint::parse(endpoint.text()) == endpoint, "endpoint");
}

std::vector<Block> keys() {
  return {block("maki-key 1\n# a\nid = 0123456789abcdef\nkey = " + std::string(64, 'a') + "\n")};
}
std::vector<Block> endpoints() { return {block("host:1"), block("[::1]:65535"), block("1.2.3.4:80"), block(":0")}; }

// ---- a measurement --------------------------------------------------------------------------------------------------

void feed_bench_order(View bytes) { must_be_same(encode(decode_bench_order(bytes)), bytes, "bench order"); }
void feed_bench_reply(View bytes) { must_be_same(encode(decode_bench_reply(bytes)), bytes, "bench reply"); }
std::vector<Block> bench_orders() {
  return {encode(BenchOrder{.action = BenchOrder::Action::kMove, .transfer = {.bytes = 64000000, .count = 3}}),
          encode(BenchOrder{.action = BenchOrder::Action::kHello, .congestion = "bbr", .pacing = 1e9})};
}
std::vector<Block> bench_replies() {
  return {encode(BenchReply{.kernel = {.congestion = "cubic", .congestions = {"cubic", "reno"}}})};
}

// ---- the relay ------------------------------------------------------------------------------------------------------

void feed_challenge(View bytes) {
  const auto block = wan::block<admission::kChallengeBytes>(bytes);
  const admission::Challenge challenge = admission::decode_challenge(block);
  if (challenge.version == admission::kVersion) must_be_same(admission::encode(challenge), block, "challenge");
}

admission::RequestBytes good_request() {
  const admission::Request request{.want = admission::Want::kListen, .name = "tokyo", .key_id = "0123456789abcdef"};
  return admission::encode(request, admission::Nonce{}, Key{});
}

void feed_request(View bytes) {
  const auto block = wan::block<admission::kRequestBytes>(bytes);
  const admission::Request request = admission::decode_request(block);
  must(admission::valid_name(request.name) && request.key_id.size() == admission::kKeyIdBytes, "request");
  must(admission::signed_with(Key{}, block, admission::Nonce{}) == (block == good_request()), "code of a request");
}

void feed_verdict(View bytes) {
  const admission::Verdict verdict = admission::decode_verdict(wan::block<admission::kVerdictBytes>(bytes));
  must(verdict.reason.size() <= admission::kMaxReason, "reason of a verdict");
}

void feed_control(View bytes) {
  const std::string token = decode_control(wan::block<kTokenBytes>(bytes));
  must(token.empty() || is_hex(token, kTokenBytes), "token of a control frame");
}

std::vector<Block> controls() { return {block(encode_control(make_token())), block(encode_control(""))}; }
std::vector<Block> challenges() { return {block(admission::encode(admission::Challenge{}))}; }
std::vector<Block> requests() { return {block(good_request())}; }
std::vector<Block> verdicts() {
  return {block(admission::encode(admission::Verdict{admission::Code::kBusy, "too many"}, admission::RequestBytes{},
                                  admission::Nonce{}, nullptr))};
}

// ---- copy -----------------------------------------------------------------------------------------------------------

void feed_order(View bytes) {
  const copy::Order order = copy::decode_order(bytes);
  must(order.sources.size() <= copy::kMaxSources, "sources of an order");
}

void feed_reply(View bytes) { copy::decode_reply(bytes); }

void feed_piece(View bytes) {
  const copy::Piece piece = copy::decode_piece(bytes);
  must(piece.entries.size() <= copy::kMaxEntries, "entries of a piece");
  for (const copy::Entry& entry : piece.entries)
    must(entry.mode <= 0777 && entry.size <= copy::kMaxFile, "entry of a piece");
  must_be_same(copy::encode(piece).view(), bytes, "piece");
}

void feed_back(View bytes) {
  if (copy::is_results(bytes))
    copy::decode_results(bytes);
  else
    must_be_same(copy::encode(copy::decode_answers(bytes)).view(), bytes, "answers");
}

void feed_records(View bytes) {
  copy::RecordReader reader(bytes);
  while (const auto record = reader.next())
    if (const auto* content = std::get_if<copy::Content>(&*record); content != nullptr && !content->bytes.empty())
      must(content->bytes.data() >= bytes.data() && &content->bytes.back() <= &bytes.back(), "contents of a record");
}

std::vector<Block> orders() {
  return {block(copy::encode(copy::some_order())),
          block(copy::encode(copy::Order{.action = copy::Order::Action::kPush, .destination = "d/", .sources = {}}))};
}
std::vector<Block> replies() { return {block(copy::encode(copy::Reply{.reason = "no"}))}; }
std::vector<Block> pieces() { return {block(copy::encode(copy::some_piece()))}; }
std::vector<Block> backs() {
  return {block(copy::encode(copy::some_answers())), block(copy::encode(copy::some_results()))};
}
std::vector<Block> records() { return {block(copy::some_records())}; }

// Refusals are the errors of this module; anything else goes through and ends the run.
template <void (*feed)(View)>
bool guarded(View bytes) try {
  feed(bytes);
  return true;
} catch (const Error&) {
  return false;
}

}  // namespace

const std::vector<Parser>& parsers() {
  static const std::vector<Parser> all = {
      {"hello", guarded<feed_hello>, hellos, true},
      {"welcome", guarded<feed_welcome>, welcomes, true},
      {"frame", guarded<feed_frame>, frames, true},
      {"received", guarded<feed_received>, received_sets, false},
      {"key", guarded<feed_key>, keys, false},
      {"endpoint", guarded<feed_endpoint>, endpoints, false},
      {"bench_orders", guarded<feed_bench_order>, bench_orders, false},
      {"bench_replies", guarded<feed_bench_reply>, bench_replies, false},
      {"challenge", guarded<feed_challenge>, challenges, false},
      {"request", guarded<feed_request>, requests, false},
      {"verdict", guarded<feed_verdict>, verdicts, false},
      {"control", guarded<feed_control>, controls, false},
      {"order", guarded<feed_order>, orders, false},
      {"reply", guarded<feed_reply>, replies, false},
      {"piece", guarded<feed_piece>, pieces, false},
      {"back", guarded<feed_back>, backs, false},
      {"records", guarded<feed_records>, records, false},
  };
  return all;
}

void seal(std::span<std::byte> bytes) {
  if (bytes.size() < 8) return;
  const std::uint64_t check = checksum(bytes.first(bytes.size() - 8));
  std::memcpy(bytes.data() + bytes.size() - 8, &check, sizeof check);
}

}  // namespace maki::wan::fuzz
