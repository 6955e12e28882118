#include "tests/gpu_model/libraries/fft_engine.hpp"

#include <fftw3.h>

#include <mutex>

#include "kernels/device/fft.hpp"  // the program's lock: it may plan with the same FFTW

namespace gpu_model {
namespace {

static_assert(CUFFT_FORWARD == FFTW_FORWARD && CUFFT_INVERSE == FFTW_BACKWARD);

// FFTW's two precisions under one name.
template <class Real>
struct Fftw;
template <>
struct Fftw<float> {
  using Complex = fftwf_complex;
  using Plan = fftwf_plan;
  static void* allocate(std::size_t bytes) { return fftwf_malloc(bytes); }
  static void free(void* p) { fftwf_free(p); }
  static void destroy(Plan plan) { fftwf_destroy_plan(plan); }
  static void execute(Plan plan) { fftwf_execute(plan); }
  static constexpr auto to_modes = &fftwf_plan_dft_r2c;
  static constexpr auto to_real = &fftwf_plan_dft_c2r;
  static constexpr auto both_ways = &fftwf_plan_dft;
};
template <>
struct Fftw<double> {
  using Complex = fftw_complex;
  using Plan = fftw_plan;
  static void* allocate(std::size_t bytes) { return fftw_malloc(bytes); }
  static void free(void* p) { fftw_free(p); }
  static void destroy(Plan plan) { fftw_destroy_plan(plan); }
  static void execute(Plan plan) { fftw_execute(plan); }
  static constexpr auto to_modes = &fftw_plan_dft_r2c;
  static constexpr auto to_real = &fftw_plan_dft_c2r;
  static constexpr auto both_ways = &fftw_plan_dft;
};

template <class Real>
class Engine final : public FftEngine {
 public:
  using Api = Fftw<Real>;

  explicit Engine(const FftShape& shape) {
    const FftArray from = shape.used(!shape.from_real()), to = shape.used(!shape.to_real());
    in_ = static_cast<char*>(Api::allocate(from.values() * from.element));
    out_ = static_cast<char*>(Api::allocate(to.values() * to.element));
    if (!in_ || !out_) return;
    const int n[3] = {static_cast<int>(shape.sides[0]), static_cast<int>(shape.sides[1]),
                      static_cast<int>(shape.sides[2])};
    const int* const sides = n + 3 - shape.rank;
    auto* const complex_in = reinterpret_cast<typename Api::Complex*>(in_);
    auto* const complex_out = reinterpret_cast<typename Api::Complex*>(out_);
    const std::lock_guard lock(maki::fftw_planner());
    if (shape.from_real()) {
      forward_ = Api::to_modes(shape.rank, sides, reinterpret_cast<Real*>(in_), complex_out, FFTW_ESTIMATE);
    } else if (shape.to_real()) {
      inverse_ = Api::to_real(shape.rank, sides, complex_in, reinterpret_cast<Real*>(out_), FFTW_ESTIMATE);
    } else {
      forward_ = Api::both_ways(shape.rank, sides, complex_in, complex_out, FFTW_FORWARD, FFTW_ESTIMATE);
      inverse_ = Api::both_ways(shape.rank, sides, complex_in, complex_out, FFTW_BACKWARD, FFTW_ESTIMATE);
    }
    ready_ = (forward_ || shape.to_real()) && (inverse_ || shape.from_real());
  }
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  ~Engine() override {
    const std::lock_guard lock(maki::fftw_planner());
    if (forward_) Api::destroy(forward_);
    if (inverse_) Api::destroy(inverse_);
    Api::free(in_);
    Api::free(out_);
  }

  bool ready() const { return ready_; }

  void run(const FftArray& from, const char* in, const FftArray& to, char* out, long long entry,
           int direction) override {
    const std::lock_guard lock(running_);
    gather(from, entry, in, in_);
    Api::execute(direction == CUFFT_FORWARD ? forward_ : inverse_);
    scatter(to, entry, out_, out);
  }

 private:
  std::mutex running_;
  char *in_ = nullptr, *out_ = nullptr;
  typename Api::Plan forward_ = nullptr, inverse_ = nullptr;
  bool ready_ = false;
};

template <class Real>
std::shared_ptr<FftEngine> make(const FftShape& shape) {
  auto engine = std::make_shared<Engine<Real>>(shape);
  return engine->ready() ? engine : nullptr;
}

}  // namespace

std::shared_ptr<FftEngine> make_fft_engine(const FftShape& shape) {
  return shape.real_bytes() == 4 ? make<float>(shape) : make<double>(shape);
}

}  // namespace gpu_model
