#include "tests/gpu_model/libraries/fft_execution.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "tests/gpu_model/memory/shadow.hpp"
#include "tests/gpu_model/report.hpp"
#include "tests/gpu_model/runtime/queue.hpp"

namespace gpu_model {
namespace {

constexpr int kPoison = 0xff;  // every value of which is a NaN
constexpr int kIllegalAddress = 700;

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
  const std::size_t complex = 2 * e.shape.real_bytes();
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
