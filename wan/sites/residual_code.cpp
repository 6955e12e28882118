#include "wan/sites/residual_code.hpp"

#include <algorithm>

#include "wan/sites/each_isa.hpp"

namespace maki::sites {
namespace {

constexpr int kTokens = ResidualCode::kTokens, kBeyond = ResidualCode::kBeyond, kTables = ResidualCode::kTables;
constexpr std::uint32_t kDirect = 1024;  // quotients from here on are beyond

// Bits of the codes of tokens, in tables by what is expected, a letter each (a: 1). Huffman's for what is left in
// simulations.
constexpr const char* kLengths[kTables] = {
    "abceggghhiijiiijhiiihiiigghhg", "abcdfghhhiiiiiijiijjjjjjjjjjj", "abcdfghhhiiiiiijiijjjjjjjjjjj",
    "abcdfghhhiiiiiijiijjjjjjjjjjj", "abcdehhiijjjjjjjjjjjjjjjjjjjj", "abcdehhiijjjjjjjjjjjjjjjjjjjj",
    "abcdegijjjjjjjjjjjjjjjjjjjjjj", "abcdegijjjjjjjjjjjjjjjjjjjjjj", "abcdegijjjjjjjjjjjjjjjjjjjjjj",
    "abcdegijjjjjjjjjjjjjjjjjjjjjj", "abcdegijjjjjjjjjjjjjjjjjjjjjj", "abcdegijjjjjjjjjjjjjjjjjjjjjj",
    "abcdegijjjjjjjjjjjjjjjjjjjjjj", "abcdegijjjjjjjjjjjjjjjjjjjjjj", "abcdffgiijjjjjjjjjjjjjjjjjjjj",
    "abcdffgiijjjjjjjjjjjjjjjjjjjj", "abcdffgiijjjjjjjjjjjjjjjjjjjj", "abceeffghjjjjjjjjjjjjjjjjjjjj",
    "abddeeffghijjjjjjjjjjjjjjjjjj", "accddeeffghiijjjjjjjjjjjjjjjj", "bbccddeefggghiiiijjjjjjjjjjjj",
    "bbccddefffggghiihjjjjjjjjjjjj", "bbcdddeeefffgghhghijjjjjjjjjj", "bcccdddeeeffggggfhijjjjjjjjjj",
    "bcccdddeeeffggghfhhiijjjjjjjj", "bccdddddeeeffgggfghiijjjjjjjj", "cccddddddeeeefffefghghijjjjjj",
    "ccdddddddeeeefffdefgghhiijjjj",
};

struct Token {
  std::uint16_t first = 0;  // quotient
  std::uint8_t bits = 0;    // of the rest
};

constexpr Token token(int i) {
  if (i < 16) return {static_cast<std::uint16_t>(i), 0};
  if (i < 24) {
    const int octave = 4 + (i - 16) / 4;
    return {static_cast<std::uint16_t>((4 + i % 4) << (octave - 2)), static_cast<std::uint8_t>(octave - 2)};
  }
  return {static_cast<std::uint16_t>(1 << (i - 18)), static_cast<std::uint8_t>(i - 18)};
}

// Token by token, and what the next bits say: 2^16 first + 2^8 bits + length. Shifts by them take the lowest six bits.
struct Writing {
  std::uint16_t first = 0, code = 0;
  std::uint8_t length = 0, bits = 0;
};
using Reading = std::uint32_t;
constexpr Reading kBeyondRead = 0xff00;  // of those that are beyond, `bits`

struct Tables {
  std::array<std::uint8_t, kDirect> of{};  // the token of a quotient
  std::array<std::array<Writing, 32>, kTables> write{};
  std::array<Reading, kTables << ResidualCode::kLongest> read{};

  Tables() {
    for (int i = 0; i < kBeyond; ++i)
      std::fill_n(of.begin() + token(i).first, 1 << token(i).bits, static_cast<std::uint8_t>(i));
    for (std::size_t t = 0; t < kTables; ++t) fill(kLengths[t], write[t], read.data() + (t << ResidualCode::kLongest));
  }

  // Canonical codes, the first bit lowest.
  static void fill(const char* lengths, std::array<Writing, 32>& write, Reading* read) {
    std::uint32_t next = 0;
    for (int length = 1; length <= ResidualCode::kLongest; ++length, next <<= 1) {
      for (int i = 0; i < kTokens; ++i) {
        if (lengths[i] - 'a' + 1 != length) continue;
        std::uint32_t code = 0;
        for (int b = 0; b < length; ++b) code |= (next >> b & 1) << (length - 1 - b);
        ++next;
        const Token range = i < kBeyond ? token(i) : Token{};
        const auto bits = static_cast<std::uint8_t>(length);
        write[static_cast<std::size_t>(i)] = {range.first, static_cast<std::uint16_t>(code), bits, range.bits};
        const Reading found = (static_cast<Reading>(range.first) << 16 | static_cast<Reading>(range.bits) << 8 | bits) |
                              (i < kBeyond ? 0 : kBeyondRead);
        for (std::uint32_t c = code; c < 1u << ResidualCode::kLongest; c += 1u << length) read[c] = found;
      }
    }
  }
};
const Tables kCodes;

constexpr std::uint32_t kMask = (1u << ResidualCode::kTableShift) - 1;

MAKI_INLINE void put_one(std::uint64_t left, std::uint32_t code, WriteLane& lane) {
  const std::uint64_t k = code & kMask, quotient = left >> k;
  const auto& table = kCodes.write[code >> ResidualCode::kTableShift];
  if (quotient < kDirect) [[likely]] {
    const Writing& w = table[kCodes.of[quotient]];
    const std::uint64_t rest = left - (static_cast<std::uint64_t>(w.first) << k);
    return lane.put(w.code | rest << w.length, w.length + w.bits + k);
  }
  const Writing& w = table[kBeyond];
  const auto width = static_cast<std::uint64_t>(std::bit_width(left));  // 11 to 31
  lane.put(w.code | width << w.length | left << (w.length + 5), w.length + 5 + width);
}

MAKI_INLINE std::uint32_t get_one(const std::byte* bytes, std::uint64_t& at, std::uint32_t code) {
  std::uint64_t next;
  std::memcpy(&next, bytes + (at >> 3), sizeof next);
  next >>= at & 7;
  const std::uint64_t k = code & kMask;
  constexpr int kToTable = ResidualCode::kTableShift - ResidualCode::kLongest;
  const Reading* const table = kCodes.read.data() + ((code & ~kMask) >> kToTable);
  const std::uint64_t found = table[next & ((1 << ResidualCode::kLongest) - 1)], length = found & 63;
  next >>= length;
  if ((found & kBeyondRead) == kBeyondRead) [[unlikely]] {
    const std::uint64_t width = next & 31;
    at += length + 5 + width;
    return static_cast<std::uint32_t>(next >> 5 & ((std::uint64_t{1} << width) - 1));
  }
  const std::uint64_t bits = (found >> 8 & 15) + k;
  at += length + bits;
  return static_cast<std::uint32_t>(((found >> 16) << k) + (next & ~(~std::uint64_t{0} << bits)));
}

}  // namespace

MAKI_EACH_ISA void put_residuals(const std::uint32_t* left, const std::uint32_t* codes, int cells, WriteLane* lanes) {
  for (int pair = 0; pair < kLanes; pair += 2) {
    WriteLane a = lanes[pair], b = lanes[pair + 1];
    int i = pair;
    for (; i + 1 < cells; i += kLanes) {
      put_one(left[i], codes[i], a);
      put_one(left[i + 1], codes[i + 1], b);
    }
    if (i < cells) put_one(left[i], codes[i], a);
    lanes[pair] = a;
    lanes[pair + 1] = b;
  }
}

MAKI_EACH_ISA void get_residuals(const std::byte* bytes, std::uint64_t* at, const std::uint32_t* codes, int cells,
                                 std::uint32_t* left) {
  std::uint64_t a = at[0], b = at[1], c = at[2], d = at[3];
  int i = 0;
  for (; i + 3 < cells; i += kLanes) {
    const std::uint32_t first = get_one(bytes, a, codes[i]), second = get_one(bytes, b, codes[i + 1]),
                        third = get_one(bytes, c, codes[i + 2]), fourth = get_one(bytes, d, codes[i + 3]);
    left[i] = first;
    left[i + 1] = second;
    left[i + 2] = third;
    left[i + 3] = fourth;
  }
  if (i < cells) left[i] = get_one(bytes, a, codes[i]);
  if (i + 1 < cells) left[i + 1] = get_one(bytes, b, codes[i + 1]);
  if (i + 2 < cells) left[i + 2] = get_one(bytes, c, codes[i + 2]);
  at[0] = a, at[1] = b, at[2] = c, at[3] = d;
}

void put_low(const std::uint64_t* values, int count, int cells, WriteLane* lanes) {
  const std::uint64_t mask = (std::uint64_t{1} << count) - 1;
  for (int i = 0; i < cells; ++i) lanes[i % kLanes].put(values[i] & mask, static_cast<std::uint64_t>(count));
}

void get_low(const std::byte* bytes, std::uint64_t* at, int count, int cells, std::uint64_t* values) {
  const std::uint64_t mask = (std::uint64_t{1} << count) - 1;
  for (int i = 0; i < cells; ++i) {
    std::uint64_t next, &bit = at[i % kLanes];
    std::memcpy(&next, bytes + (bit >> 3), sizeof next);
    values[i] = next >> (bit & 7) & mask;
    bit += static_cast<std::uint64_t>(count);
  }
}

}  // namespace maki::sites
