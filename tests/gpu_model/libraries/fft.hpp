// Where the values of cuFFT's arrays lie: the addressing of the "advanced data layout", which the basic one is a case
// of.
#pragma once

#include <cuda_runtime_api.h>
#include <cufft.h>

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "tests/gpu_model/memory/address_space.hpp"

namespace gpu_model {

// One side of a transform, its input or its output. Sides of rank 1 and 2 have leading lengths of 1.
struct FftArray {
  std::size_t element = 0;             // bytes of a real or complex value
  std::array<long long, 3> length{};   // values that are read or written, and ...
  std::array<long long, 3> storage{};  // ... that are stored
  long long stride = 1, distance = 0;  // in elements: between neighbours, between transforms of a batch

  std::size_t row_offset(long long entry, long long x, long long y) const {
    return static_cast<std::size_t>(entry * distance + (x * storage[1] + y) * storage[2] * stride) * element;
  }
  std::size_t values() const { return static_cast<std::size_t>(length[0] * length[1] * length[2]); }
};

// A stretch of bytes without holes, from the array's beginning.
struct FftRun {
  std::size_t begin = 0, bytes = 0;
};
// The bytes of all values of a batch, ascending and merged. Values that lie twice at one place are there twice.
std::vector<FftRun> runs(const FftArray& array, long long batch);
bool overlap(const std::vector<FftRun>& a, std::size_t a_begin, const std::vector<FftRun>& b, std::size_t b_begin);

// Copies one transform's values between the array, which begins at `array_begin`, and a dense one.
void gather(const FftArray& array, long long entry, const char* array_begin, char* dense);
void scatter(const FftArray& array, long long entry, const char* dense, char* array_begin);

// A plan's parameters.
struct FftShape {
  cufftType type = CUFFT_C2C;
  int rank = 0;
  std::array<long long, 3> sides{1, 1, 1};  // the last `rank` of them
  long long batch = 1;
  bool basic = true;  // dense arrays; a real array in place has rows of 2 (n / 2 + 1)
  FftArray in, out;   // of the advanced layout

  bool to_real() const { return type == CUFFT_C2R; }
  bool from_real() const { return type == CUFFT_R2C; }
  FftArray input(bool in_place) const { return basic ? dense(!from_real(), in_place) : in; }
  FftArray output(bool in_place) const { return basic ? dense(!to_real(), in_place) : out; }
  FftArray dense(bool complex, bool in_place) const;
  // Values a transform reads or writes along each side, and their size.
  FftArray used(bool complex) const;
  bool fits_in_place() const;  // whether each row's output lies where its input was
};

// Transforms of dense arrays, by FFTW, in the sense of cuFFT: not normalised.
//
// Each goes through the same aligned arrays with the same plan. So its bits depend on nothing but its values: what a
// real GPU may do otherwise - other bits in place, for another batch, another layout or alignment - the model cannot
// show.

class FftEngine;  // of one shape
// nullptr: FFTW has no plan or no memory for it.
std::shared_ptr<FftEngine> make_fft_engine(const FftShape& shape);

// Executions of cuFFT's plans, as work on a stream.

struct FftExecution {
  std::shared_ptr<FftEngine> engine;
  FftShape shape;
  int direction = CUFFT_FORWARD;
  Address in = 0, out = 0;
  Address work_area = 0;
  std::size_t work_bytes = 0;
  std::string what;
};

// Bytes that a plan asks for. cuFFT's manual gives no figures. Here: as much as the data; several times that for
// lengths with large primes; nothing for short lines of a power of two.
std::size_t work_area_bytes(const FftShape& shape);

// Queues it. Reports faults of kinds "FFT layout", "FFT alignment" at once; false where it cannot be carried out.
bool queue_fft(cudaStream_t stream, FftExecution execution);

}  // namespace gpu_model
