// Rows of a cloud in 256-bit registers; included by the AVX2 and AVX-512 units, in a namespace of each.
// Four 32-bit weights, each in a 64-bit lane.
template <int S>
static inline __m256i load_weights(const std::uint32_t* w) {
  return _mm256_cvtepu32_epi64(_mm_loadu_si128(reinterpret_cast<const __m128i*>(w)));
}

static inline __m256i wide(std::uint64_t value) { return _mm256_set1_epi64x(static_cast<long long>(value)); }

template <int S, bool kRounds>
static inline void add_row(std::uint64_t* cells, __m256i weights, std::uint32_t units, __m256i half, __m256i kept) {
  __m256i product = _mm256_mul_epu32(weights, _mm256_set1_epi32(static_cast<int>(units)));
  if constexpr (kRounds) product = _mm256_and_si256(_mm256_add_epi64(product, half), kept);
  if constexpr (S == 2) {
    __m128i* at = reinterpret_cast<__m128i*>(cells);
    _mm_storeu_si128(at, _mm_add_epi64(_mm_loadu_si128(at), _mm256_castsi256_si128(product)));
  } else {
    __m256i* at = reinterpret_cast<__m256i*>(cells);
    _mm256_storeu_si256(at, _mm256_add_epi64(_mm256_loadu_si256(at), product));
  }
}
