#include "tests/gpu_model/libraries/fft.hpp"

#include <fftw3.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <utility>

#include "kernels/device/fft.hpp"  // the program's lock: it may plan with the same FFTW
#include "tests/gpu_model/memory/shadow.hpp"
#include "tests/gpu_model/report.hpp"
#include "tests/gpu_model/runtime/streams.hpp"

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
  array.element = complex ? sizeof(cufftComplex) : sizeof(cufftReal);
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

static_assert(CUFFT_FORWARD == FFTW_FORWARD && CUFFT_INVERSE == FFTW_BACKWARD);

class FftEngine {
 public:
  explicit FftEngine(const FftShape& shape) {
    const FftArray from = shape.used(!shape.from_real()), to = shape.used(!shape.to_real());
    in_ = static_cast<char*>(fftwf_malloc(from.values() * from.element));
    out_ = static_cast<char*>(fftwf_malloc(to.values() * to.element));
    if (!in_ || !out_) return;
    const int n[3] = {static_cast<int>(shape.sides[0]), static_cast<int>(shape.sides[1]),
                      static_cast<int>(shape.sides[2])};
    const int* const sides = n + 3 - shape.rank;
    auto* const complex_in = reinterpret_cast<fftwf_complex*>(in_);
    auto* const complex_out = reinterpret_cast<fftwf_complex*>(out_);
    const std::lock_guard lock(maki::fftw_planner());
    if (shape.from_real()) {
      forward_ = fftwf_plan_dft_r2c(shape.rank, sides, reinterpret_cast<float*>(in_), complex_out, FFTW_ESTIMATE);
    } else if (shape.to_real()) {
      inverse_ = fftwf_plan_dft_c2r(shape.rank, sides, complex_in, reinterpret_cast<float*>(out_), FFTW_ESTIMATE);
    } else {
      forward_ = fftwf_plan_dft(shape.rank, sides, complex_in, complex_out, FFTW_FORWARD, FFTW_ESTIMATE);
      inverse_ = fftwf_plan_dft(shape.rank, sides, complex_in, complex_out, FFTW_BACKWARD, FFTW_ESTIMATE);
    }
    ready_ = (forward_ || shape.to_real()) && (inverse_ || shape.from_real());
  }
  FftEngine(const FftEngine&) = delete;
  FftEngine& operator=(const FftEngine&) = delete;
  ~FftEngine() {
    const std::lock_guard lock(maki::fftw_planner());
    if (forward_) fftwf_destroy_plan(forward_);
    if (inverse_) fftwf_destroy_plan(inverse_);
    fftwf_free(in_);
    fftwf_free(out_);
  }

  bool ready() const { return ready_; }

  // Transforms one entry of a batch from `in`, laid out as `from`, to `out`, laid out as `to`. The two may be one
  // array. Thread-safe.
  void run(const FftArray& from, const char* in, const FftArray& to, char* out, long long entry, int direction) {
    const std::lock_guard lock(running_);
    gather(from, entry, in, in_);
    fftwf_execute(direction == CUFFT_FORWARD ? forward_ : inverse_);
    scatter(to, entry, out_, out);
  }

 private:
  std::mutex running_;
  char *in_ = nullptr, *out_ = nullptr;
  fftwf_plan forward_ = nullptr, inverse_ = nullptr;
  bool ready_ = false;
};

std::shared_ptr<FftEngine> make_fft_engine(const FftShape& shape) {
  auto engine = std::make_shared<FftEngine>(shape);
  return engine->ready() ? engine : nullptr;
}

namespace {

long long largest_prime(long long n) {
  long long largest = 1;
  for (long long p = 2; p * p <= n; ++p) {
    for (; n % p == 0; n /= p) largest = p;
  }
  return std::max(largest, n);
}

void poison(WorkNumber work, Address array, const std::vector<FftRun>& values, const char* what) {
  for (const FftRun& run : values) {
    if (!note_write(work, array + run.begin, run.bytes, what)) throw Stopped{kIllegalAddress};
    std::memset(view(array + run.begin), kPoison, run.bytes);
  }
}

void carry_out(const FftExecution& e, WorkNumber work) {
  const bool in_place = e.in == e.out;
  const FftArray from = e.shape.input(in_place), to = e.shape.output(in_place);
  const char* const what = e.what.c_str();
  const auto read = runs(from, e.shape.batch), written = runs(to, e.shape.batch);
  for (const FftRun& run : read) {
    if (!note_read(work, e.in + run.begin, run.bytes, what)) throw Stopped{kIllegalAddress};
  }
  for (const FftRun& run : written) {
    if (!note_write(work, e.out + run.begin, run.bytes, what)) throw Stopped{kIllegalAddress};
  }
  if (e.work_bytes > 0) poison(work, e.work_area, {{0, e.work_bytes}}, "work area of an FFT");
  for (long long entry = 0; entry < e.shape.batch; ++entry) {
    e.engine->run(from, view(e.in), to, view(e.out), entry, e.direction);
  }
  if (!e.shape.to_real()) return;
  // "Out-of-place complex-to-real FFT will always overwrite input buffer"; in place, nothing is said of what becomes of
  // the values between the rows' reals.
  if (!in_place) {
    poison(work, e.in, read, what);
    return;
  }
  for (long long entry = 0; entry < e.shape.batch; ++entry) {
    for (long long x = 0; x < to.length[0]; ++x) {
      for (long long y = 0; y < to.length[1] && to.stride == 1; ++y) {
        const std::size_t reals = static_cast<std::size_t>(to.length[2]) * to.element;
        const std::size_t modes = static_cast<std::size_t>(from.length[2]) * from.element;
        poison(work, e.out, {{to.row_offset(entry, x, y) + reals, modes - reals}}, what);
      }
    }
  }
}

bool find_faults(const FftExecution& e) {
  const bool in_place = e.in == e.out;
  const std::size_t complex = sizeof(cufftComplex);
  if (e.in % complex != 0 || e.out % complex != 0) {
    report({"FFT alignment", e.what, "input and output have to be aligned to complex values"});
    return true;
  }
  const FftArray from = e.shape.input(in_place), to = e.shape.output(in_place);
  if (in_place ? !e.shape.fits_in_place() : overlap(runs(from, e.shape.batch), e.in, runs(to, e.shape.batch), e.out)) {
    report({"FFT layout", e.what,
            in_place ? "a transform in place whose rows of output do not lie where those of the input were"
                     : "input and output overlap, but do not begin at the same place"});
    return true;
  }
  const std::vector<FftRun> area{{0, e.work_bytes}};
  if (e.work_bytes > 0 && (overlap(area, e.work_area, runs(from, e.shape.batch), e.in) ||
                           overlap(area, e.work_area, runs(to, e.shape.batch), e.out))) {
    report({"FFT layout", e.what, "the work area overlaps the input or the output"});
    return true;
  }
  return false;
}

}  // namespace

std::size_t work_area_bytes(const FftShape& shape) {
  constexpr long long kShort = 4096, kDirect = 127;
  long long prime = 1;
  for (const long long n : shape.sides) prime = std::max(prime, largest_prime(n));
  const FftArray complex = shape.used(true);
  const std::size_t data = complex.values() * complex.element * static_cast<std::size_t>(shape.batch);
  if (prime > kDirect) return 4 * data;
  if (shape.rank == 1 && shape.sides[2] <= kShort && prime <= 2) return 0;
  return data;
}

bool queue_fft(cudaStream_t stream, FftExecution execution) {
  if (find_faults(execution)) return false;
  std::string what = execution.what;
  queue_work(stream, std::move(what), [e = std::move(execution)](WorkNumber work) {
    carry_out(e, work);
    return Progress::kDone;
  });
  return true;
}

}  // namespace gpu_model
