// Transforms of dense arrays, by FFTW, in the sense of cuFFT: not normalised.
//
// Each goes through the same aligned arrays with the same plan. So its bits depend on nothing but its values: what a real
// GPU may do otherwise - other bits in place, for another batch, another layout or alignment - the model cannot show.
#pragma once

#include <cstddef>
#include <memory>

#include "tests/gpu_model/libraries/fft_layout.hpp"

namespace gpu_model {

class FftEngine {
 public:
  virtual ~FftEngine() = default;
  // Transforms one entry of a batch from `in`, laid out as `from`, to `out`, laid out as `to`. The two may be one array.
  // Thread-safe.
  virtual void run(const FftArray& from, const char* in, const FftArray& to, char* out, long long entry,
                   int direction) = 0;
};

// nullptr: FFTW has no plan or no memory for it.
std::shared_ptr<FftEngine> make_fft_engine(const FftShape& shape);

}  // namespace gpu_model
