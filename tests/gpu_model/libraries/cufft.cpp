// cuFFT's functions, those that Maki calls, in the layouts that it uses; others are refused as "not modelled". Results
// are FFTW's, not normalised as cuFFT's.
#include <cufft.h>
#include <fftw3.h>

#include <algorithm>
#include <climits>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "kernels/device/fft.hpp"  // the program's lock: it may plan with the same FFTW
#include "tests/gpu_model/memory/shadow.hpp"
#include "tests/gpu_model/report.hpp"
#include "tests/gpu_model/runtime/streams.hpp"

namespace gpu_model {
namespace {

// Transforms of length n along rows: each row is one, or n x n rows are a cube in place, real on one side. A row's
// input and its output have the same room.
struct FftShape {
  cufftType type = CUFFT_C2C;
  bool cube = false;
  int n = 0;
  std::size_t rows = 0, row = 0;  // their number, and bytes from one to the next

  std::size_t read() const { return used(type == CUFFT_R2C); }  // bytes of a row
  std::size_t written() const { return used(type == CUFFT_C2R); }
  std::size_t together() const { return cube ? rows : 1; }  // rows of one transform
  std::size_t extent(std::size_t of_row) const { return (rows - 1) * row + of_row; }

 private:
  std::size_t used(bool reals) const {
    const auto values = static_cast<std::size_t>(n);
    return reals ? values * sizeof(cufftReal) : (type == CUFFT_C2C ? values : values / 2 + 1) * sizeof(cufftComplex);
  }
};

static_assert(CUFFT_FORWARD == FFTW_FORWARD && CUFFT_INVERSE == FFTW_BACKWARD);

// FFTW's plans for one transform. Each goes through the same aligned arrays, so its bits depend on nothing but its
// values: what a real GPU may do otherwise - other bits in place, for another batch or alignment - the model cannot
// show.
class FftEngine {
 public:
  explicit FftEngine(const FftShape& shape) : shape_(shape) {
    in_ = static_cast<char*>(fftwf_malloc(shape.together() * shape.read()));
    out_ = static_cast<char*>(fftwf_malloc(shape.together() * shape.written()));
    if (!in_ || !out_) return;
    const int rank = shape.cube ? 3 : 1, n[] = {shape.n, shape.n, shape.n};
    auto *const modes_in = reinterpret_cast<fftwf_complex*>(in_), *const modes = reinterpret_cast<fftwf_complex*>(out_);
    const std::lock_guard lock(maki::fftw_planner());
    if (shape.type == CUFFT_R2C) {
      forward_ = fftwf_plan_dft_r2c(rank, n, reinterpret_cast<float*>(in_), modes, FFTW_ESTIMATE);
    } else if (shape.type == CUFFT_C2R) {
      inverse_ = fftwf_plan_dft_c2r(rank, n, modes_in, reinterpret_cast<float*>(out_), FFTW_ESTIMATE);
    } else {
      forward_ = fftwf_plan_dft(rank, n, modes_in, modes, FFTW_FORWARD, FFTW_ESTIMATE);
      inverse_ = fftwf_plan_dft(rank, n, modes_in, modes, FFTW_BACKWARD, FFTW_ESTIMATE);
    }
  }
  FftEngine(const FftEngine&) = delete;
  FftEngine& operator=(const FftEngine&) = delete;
  ~FftEngine() {
    const std::lock_guard lock(maki::fftw_planner());
    for (fftwf_plan plan : {forward_, inverse_})
      if (plan) fftwf_destroy_plan(plan);
    fftwf_free(in_);
    fftwf_free(out_);
  }

  bool ready() const { return (forward_ || shape_.type == CUFFT_C2R) && (inverse_ || shape_.type == CUFFT_R2C); }

  // All rows; `in` and `out` may be one array. Thread-safe.
  void run(const char* in, char* out, int direction) {
    const std::lock_guard lock(running_);
    const std::size_t together = shape_.together(), read = shape_.read(), written = shape_.written();
    for (std::size_t first = 0; first < shape_.rows; first += together) {
      for (std::size_t i = 0; i < together; ++i) std::memcpy(in_ + i * read, in + (first + i) * shape_.row, read);
      fftwf_execute(direction == CUFFT_FORWARD ? forward_ : inverse_);
      for (std::size_t i = 0; i < together; ++i)
        std::memcpy(out + (first + i) * shape_.row, out_ + i * written, written);
    }
  }

 private:
  FftShape shape_;
  std::mutex running_;
  char *in_ = nullptr, *out_ = nullptr;
  fftwf_plan forward_ = nullptr, inverse_ = nullptr;
};

struct FftPlan {
  int device = 0;
  FftShape shape;
  std::shared_ptr<FftEngine> engine;  // nullptr: the plan has not been made
  bool allocates = true;
  Address area = 0;
  std::size_t area_bytes = 0;
  cudaStream_t stream = nullptr;
};

struct Plans {
  std::mutex mutex;
  std::map<cufftHandle, FftPlan> all;
  cufftHandle next = 1;
};
Plans& plans() {
  static Plans* const all = new Plans;  // never destroyed: static objects of the program may destroy plans
  return *all;
}

// f(plan) under the table's lock, or CUFFT_INVALID_PLAN.
template <class F>
cufftResult with_plan(cufftHandle handle, const F& f) {
  Plans& table = plans();
  const std::lock_guard lock(table.mutex);
  const auto found = table.all.find(handle);
  return found == table.all.end() ? CUFFT_INVALID_PLAN : f(found->second);
}

cufftResult not_modelled(const char* call, const char* what) {
  report({"not modelled", call, what});
  return CUFFT_NOT_SUPPORTED;
}

// Bytes of work area that a plan asks for. cuFFT's manual gives no figures. Here: as much as the data; several times
// that for lengths with large primes; nothing for short lines of a power of two.
std::size_t work_area_bytes(const FftShape& shape) {
  constexpr int kShort = 4096, kDirect = 127;
  int prime = 1, rest = shape.n;
  for (int p = 2; p * p <= rest; ++p) {
    for (; rest % p == 0; rest /= p) prime = p;
  }
  prime = std::max(prime, rest);
  const std::size_t data = std::max(shape.read(), shape.written()) * shape.rows;
  if (prime > kDirect) return 4 * data;
  return !shape.cube && shape.n <= kShort && prime <= 2 ? 0 : data;
}

cufftResult make_plan(cufftHandle handle, const FftShape& shape, std::size_t* work_bytes, const char* call) {
  return with_plan(handle, [&](FftPlan& plan) {
    if (plan.engine) return CUFFT_INVALID_PLAN;  // "can only be used once for a given handle"
    if (plan.allocates) return not_modelled(call, "a plan that allocates its work area");
    auto engine = std::make_shared<FftEngine>(shape);
    if (!engine->ready()) return CUFFT_ALLOC_FAILED;
    plan.shape = shape, plan.engine = std::move(engine);
    *work_bytes = plan.area_bytes = work_area_bytes(shape);
    return CUFFT_SUCCESS;
  });
}

// `most`: values that the function's integers can count.
cufftResult make_cube(cufftHandle handle, long long nx, long long ny, long long nz, cufftType type, long long most,
                      std::size_t* work_bytes, const char* call) {
  if (!work_bytes) return CUFFT_INVALID_VALUE;
  if (nx < 1 || nx > INT_MAX || nx * nx > most / nx) return CUFFT_INVALID_SIZE;
  if (nx != ny || nx != nz) return not_modelled(call, "a mesh that is no cube");
  if (type != CUFFT_R2C && type != CUFFT_C2R) return not_modelled(call, "a mesh that is not real on one side");
  const auto n = static_cast<std::size_t>(nx);
  return make_plan(handle, {type, true, static_cast<int>(nx), n * n, (n / 2 + 1) * sizeof(cufftComplex)}, work_bytes,
                   call);
}

// Work on a stream.
struct FftExecution {
  FftPlan plan;  // as it was when the call came
  int direction = CUFFT_FORWARD;
  Address in = 0, out = 0;
  std::string what;
};

template <class Note>
void note_rows(const Note& note, WorkNumber work, const FftExecution& e, Address begin, std::size_t bytes) {
  for (std::size_t i = 0; i < e.plan.shape.rows; ++i) {
    if (!note(work, begin + i * e.plan.shape.row, bytes, e.what.c_str())) throw Stopped{kIllegalAddress};
  }
}
void poison(WorkNumber work, Address begin, std::size_t bytes, const char* what) {
  if (!note_write(work, begin, bytes, what)) throw Stopped{kIllegalAddress};
  std::memset(view(begin), kPoison, bytes);
}

void carry_out(const FftExecution& e, WorkNumber work) {
  const FftShape& shape = e.plan.shape;
  const std::size_t read = shape.read(), written = shape.written();
  note_rows(note_read, work, e, e.in, read);
  note_rows(note_write, work, e, e.out, written);
  if (e.plan.area_bytes > 0) poison(work, e.plan.area, e.plan.area_bytes, "work area of an FFT");
  e.plan.engine->run(view(e.in), view(e.out), e.direction);
  if (shape.type != CUFFT_C2R) return;
  // "Out-of-place complex-to-real FFT will always overwrite input buffer"; in place, nothing is said of what becomes of
  // the values between the rows' reals.
  const std::size_t kept = e.in == e.out ? written : 0;
  for (std::size_t i = 0; i < shape.rows; ++i) poison(work, e.in + i * shape.row + kept, read - kept, e.what.c_str());
}

bool find_faults(const FftExecution& e) {
  const std::size_t complex = sizeof(cufftComplex);
  if (e.in % complex != 0 || e.out % complex != 0) {
    report({"FFT alignment", e.what, "input and output have to be aligned to complex values"});
    return true;
  }
  const FftPlan& plan = e.plan;
  const std::size_t read = plan.shape.extent(plan.shape.read()), written = plan.shape.extent(plan.shape.written());
  const auto overlap = [](Address a, std::size_t a_bytes, Address b, std::size_t b_bytes) {
    return a < b + b_bytes && b < a + a_bytes;
  };
  if (e.in != e.out && overlap(e.in, read, e.out, written)) {
    report({"FFT layout", e.what, "input and output overlap, but do not begin at the same place"});
    return true;
  }
  if (plan.area_bytes > 0 &&
      (overlap(plan.area, plan.area_bytes, e.in, read) || overlap(plan.area, plan.area_bytes, e.out, written))) {
    report({"FFT layout", e.what, "the work area overlaps the input or the output"});
    return true;
  }
  return false;
}

std::string words(const FftShape& shape, const char* call) {
  const std::string n = std::to_string(shape.n), of = std::string(call) + " of " + n;
  return shape.cube ? of + " x " + n + " x " + n : of + ", " + std::to_string(shape.rows) + " times";
}

cufftResult execute(cufftHandle handle, cufftType type, const void* in, const void* out, int direction,
                    const char* call) {
  FftExecution execution;
  const cufftResult result = with_plan(handle, [&](FftPlan& plan) {
    if (!plan.engine || plan.shape.type != type) return CUFFT_INVALID_PLAN;
    if (!in || !out || (direction != CUFFT_FORWARD && direction != CUFFT_INVERSE)) return CUFFT_INVALID_VALUE;
    int device = 0;
    if (cudaGetDevice(&device) != cudaSuccess || device != plan.device) return CUFFT_INVALID_DEVICE;
    if (plan.area_bytes > 0 && plan.area == 0) return CUFFT_NO_WORKSPACE;
    if (plan.shape.cube && in != out) return not_modelled(call, "a cube from one array to another");
    execution = {plan, direction, reinterpret_cast<Address>(in), reinterpret_cast<Address>(out),
                 words(plan.shape, call)};
    return CUFFT_SUCCESS;
  });
  if (result != CUFFT_SUCCESS) return result;
  if (find_faults(execution)) return CUFFT_EXEC_FAILED;
  const cudaStream_t stream = execution.plan.stream;
  std::string what = execution.what;
  queue_work(stream, std::move(what), [e = std::move(execution)](WorkNumber work) {
    carry_out(e, work);
    return Progress::kDone;
  });
  return CUFFT_SUCCESS;
}

}  // namespace
}  // namespace gpu_model

using gpu_model::execute, gpu_model::FftPlan, gpu_model::make_cube, gpu_model::not_modelled, gpu_model::with_plan;

extern "C" {

cufftResult cufftCreate(cufftHandle* handle) {
  if (!handle) return CUFFT_INVALID_VALUE;
  FftPlan plan;
  if (cudaGetDevice(&plan.device) != cudaSuccess) return CUFFT_SETUP_FAILED;
  auto& table = gpu_model::plans();
  const std::lock_guard lock(table.mutex);
  *handle = table.next++;
  table.all.emplace(*handle, std::move(plan));
  return CUFFT_SUCCESS;
}

// Work that was queued goes on: the manual does not forbid it, and cuFFT's kernels need nothing of the plan's host
// side.
cufftResult cufftDestroy(cufftHandle handle) {
  auto& table = gpu_model::plans();
  const std::lock_guard lock(table.mutex);
  return table.all.erase(handle) == 1 ? CUFFT_SUCCESS : CUFFT_INVALID_PLAN;
}

cufftResult cufftSetAutoAllocation(cufftHandle handle, int allocates) {
  return with_plan(handle, [&](FftPlan& plan) {
    if (plan.engine) return CUFFT_INVALID_PLAN;  // it has to come before the plan is made
    plan.allocates = allocates != 0;
    return CUFFT_SUCCESS;
  });
}

cufftResult cufftSetWorkArea(cufftHandle handle, void* area) {
  return with_plan(handle, [&](FftPlan& plan) {
    plan.area = reinterpret_cast<gpu_model::Address>(area);
    return CUFFT_SUCCESS;
  });
}

cufftResult cufftSetStream(cufftHandle handle, cudaStream_t stream) {
  return with_plan(handle, [&](FftPlan& plan) {
    plan.stream = stream;
    return CUFFT_SUCCESS;
  });
}

cufftResult cufftMakePlan3d(cufftHandle handle, int nx, int ny, int nz, cufftType type, size_t* work_bytes) {
  return make_cube(handle, nx, ny, nz, type, INT_MAX, work_bytes, "cufftMakePlan3d");
}

cufftResult cufftMakePlanMany64(cufftHandle handle, int rank, long long* n, long long* inembed, long long, long long,
                                long long* onembed, long long, long long, cufftType type, long long batch,
                                size_t* work_bytes) {
  const char* const call = "cufftMakePlanMany64";
  if (rank != 3 || inembed || onembed || batch != 1) return not_modelled(call, "anything but one dense cube");
  return make_cube(handle, n[0], n[1], n[2], type, LLONG_MAX, work_bytes, call);
}

cufftResult cufftMakePlanMany(cufftHandle handle, int rank, int* n, int* inembed, int istride, int idist, int* onembed,
                              int ostride, int odist, cufftType type, int batch, size_t* work_bytes) {
  const char* const call = "cufftMakePlanMany";
  if (!work_bytes) return CUFFT_INVALID_VALUE;
  if (rank != 1 || !inembed || !onembed || istride != 1 || ostride != 1)
    return not_modelled(call, "anything but rows of neighbouring values");
  if (type != CUFFT_R2C && type != CUFFT_C2R && type != CUFFT_C2C)
    return not_modelled(call, "a type that is not of single precision");
  if (*n < 1 || batch < 1 || *n > INT_MAX / batch) return CUFFT_INVALID_SIZE;
  const auto bytes = [](int distance, bool real) {
    return static_cast<std::size_t>(std::max(distance, 0)) * (real ? sizeof(cufftReal) : sizeof(cufftComplex));
  };
  const gpu_model::FftShape shape{type, false, *n, static_cast<std::size_t>(batch), bytes(idist, type == CUFFT_R2C)};
  if (shape.row != bytes(odist, type == CUFFT_C2R))
    return not_modelled(call, "rows of input and of output with different lengths");
  if (shape.row < std::max(shape.read(), shape.written())) return not_modelled(call, "rows that overlap");
  return gpu_model::make_plan(handle, shape, work_bytes, call);
}

cufftResult cufftExecC2C(cufftHandle handle, cufftComplex* in, cufftComplex* out, int direction) {
  return execute(handle, CUFFT_C2C, in, out, direction, "cufftExecC2C");
}
cufftResult cufftExecR2C(cufftHandle handle, cufftReal* in, cufftComplex* out) {
  return execute(handle, CUFFT_R2C, in, out, CUFFT_FORWARD, "cufftExecR2C");
}
cufftResult cufftExecC2R(cufftHandle handle, cufftComplex* in, cufftReal* out) {
  return execute(handle, CUFFT_C2R, in, out, CUFFT_INVERSE, "cufftExecC2R");
}

}  // extern "C"
