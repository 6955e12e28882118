#include <algorithm>

#include "kernels/device/buffer.hpp"
#include "kernels/device/cuda_check.cuh"
#include "kernels/device/cufft_check.cuh"
#include "kernels/device/fft.hpp"
#include "kernels/error.hpp"

namespace maki {

// Both directions share one work area.
struct RealFft3d::Plans {
  DeviceBuffer<char> work{"fft.work"};
  cufftHandle forward = 0, backward = 0;

  std::size_t make(cufftHandle& plan, int m, cufftType type) {
    std::size_t bytes = 0;
    check_fft(cufftCreate(&plan), "making an FFT plan");
    check_fft(cufftSetAutoAllocation(plan, 0), "making an FFT plan");
    const auto cells = static_cast<long long>(m) * m * m;
    long long sides[3] = {m, m, m};
    check_fft(cells < 1ll << 31 ? cufftMakePlan3d(plan, m, m, m, type, &bytes)
                                : cufftMakePlanMany64(plan, 3, sides, nullptr, 1, 0, nullptr, 1, 0, type, 1, &bytes),
              "making an FFT plan");
    return bytes;
  }
  void share(std::size_t bytes) {
    if (bytes <= work.size() && !work.empty()) return;
    work.resize(std::max<std::size_t>(bytes, 1));
    check_fft(cufftSetWorkArea(forward, work.data()), "giving an FFT its work space");
    check_fft(cufftSetWorkArea(backward, work.data()), "giving an FFT its work space");
  }
  ~Plans() {
    if (forward) cufftDestroy(forward);
    if (backward) cufftDestroy(backward);
  }
};

RealFft3d::RealFft3d(int m, FftPlanning) : m_(m), plans_(std::make_unique<Plans>()) {
  if (m < 2 || m % 2)
    throw Error("a mesh of " + std::to_string(m) + " cells a side", "it has to be even", "choose an even number");
  const std::size_t there = plans_->make(plans_->forward, m, CUFFT_R2C);
  const std::size_t back = plans_->make(plans_->backward, m, CUFFT_C2R);
  plans_->share(std::max(there, back));
}

RealFft3d::~RealFft3d() = default;

std::size_t RealFft3d::bytes() const { return plans_->work.capacity(); }

void* RealFft3d::lend(std::size_t bytes) {
  plans_->share(bytes);
  return plans_->work.data();
}

void RealFft3d::forward(const Stream& stream, float* mesh) {
  check_fft(cufftSetStream(plans_->forward, native(stream)), "giving an FFT its stream");
  check_fft(cufftExecR2C(plans_->forward, mesh, reinterpret_cast<cufftComplex*>(mesh)), "forward FFT");
}

void RealFft3d::backward(const Stream& stream, float* mesh) {
  check_fft(cufftSetStream(plans_->backward, native(stream)), "giving an FFT its stream");
  check_fft(cufftExecC2R(plans_->backward, reinterpret_cast<cufftComplex*>(mesh), mesh), "backward FFT");
}

bool load_fft_wisdom(const std::string&) { return false; }
void save_fft_wisdom(const std::string&) {}

}  // namespace maki
