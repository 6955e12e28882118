#include "tests/gpu_model/libraries/fft_layout.hpp"

#include <algorithm>
#include <cstring>

namespace gpu_model {
namespace {

// f(offset in the array, offset in the dense one, bytes) for stretches of one transform, in the dense array's order.
template <class F>
void each_stretch(const FftArray& array, long long entry, const F& f) {
  const auto row = static_cast<std::size_t>(array.length[2]);
  std::size_t dense = 0;
  for (long long x = 0; x < array.length[0]; ++x) {
    for (long long y = 0; y < array.length[1]; ++y, dense += row * array.element) {
      const std::size_t begin = array.row_offset(entry, x, y);
      if (array.stride == 1) {
        f(begin, dense, row * array.element);
        continue;
      }
      const std::size_t step = static_cast<std::size_t>(array.stride) * array.element;
      for (std::size_t z = 0; z < row; ++z) f(begin + z * step, dense + z * array.element, array.element);
    }
  }
}

}  // namespace

std::vector<FftRun> runs(const FftArray& array, long long batch) {
  std::vector<FftRun> all;
  const auto add = [&](std::size_t begin, std::size_t, std::size_t bytes) {
    if (!all.empty() && all.back().begin + all.back().bytes == begin) {
      all.back().bytes += bytes;
    } else {
      all.push_back({begin, bytes});
    }
  };
  for (long long entry = 0; entry < batch; ++entry) each_stretch(array, entry, add);
  std::sort(all.begin(), all.end(), [](const FftRun& a, const FftRun& b) { return a.begin < b.begin; });
  std::size_t last = 0;
  for (std::size_t i = 1; i < all.size(); ++i) {
    if (all[last].begin + all[last].bytes == all[i].begin) {
      all[last].bytes += all[i].bytes;
    } else {
      all[++last] = all[i];
    }
  }
  if (!all.empty()) all.resize(last + 1);
  return all;
}

bool overlap(const std::vector<FftRun>& a, std::size_t a_begin, const std::vector<FftRun>& b, std::size_t b_begin) {
  for (auto i = a.begin(), j = b.begin(); i != a.end() && j != b.end();) {
    const std::size_t i_end = a_begin + i->begin + i->bytes, j_end = b_begin + j->begin + j->bytes;
    if (a_begin + i->begin < j_end && b_begin + j->begin < i_end) return true;
    i_end < j_end ? void(++i) : void(++j);
  }
  return false;
}

void gather(const FftArray& array, long long entry, const char* array_begin, char* dense) {
  each_stretch(array, entry, [&](std::size_t from, std::size_t to, std::size_t bytes) {
    std::memcpy(dense + to, array_begin + from, bytes);
  });
}

void scatter(const FftArray& array, long long entry, const char* dense, char* array_begin) {
  each_stretch(array, entry, [&](std::size_t to, std::size_t from, std::size_t bytes) {
    std::memcpy(array_begin + to, dense + from, bytes);
  });
}

FftArray FftShape::used(bool complex) const {
  FftArray array;
  array.element = complex ? 2 * real_bytes() : real_bytes();
  array.length = sides;
  if (complex && (to_real() || from_real())) array.length[2] = sides[2] / 2 + 1;
  array.storage = array.length;
  return array;
}

FftArray FftShape::dense(bool complex, bool in_place) const {
  FftArray array = used(complex);
  if (!complex && in_place) array.storage[2] = 2 * (sides[2] / 2 + 1);
  array.distance = array.storage[0] * array.storage[1] * array.storage[2];
  return array;
}

bool FftShape::fits_in_place() const {
  const FftArray from = input(true), to = output(true);
  const auto same = [&](long long a, long long b) {
    return a * static_cast<long long>(from.element) == b * static_cast<long long>(to.element);
  };
  if (from.element == to.element ? from.stride != to.stride : from.stride != 1 || to.stride != 1) return false;
  if (batch > 1 && !same(from.distance, to.distance)) return false;
  if (rank > 1 && !same(from.storage[2], to.storage[2])) return false;
  return rank < 3 || from.storage[1] == to.storage[1];
}

}  // namespace gpu_model
