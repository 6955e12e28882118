// cuFFT's functions, those that Maki calls. Results are FFTW's.
#include <cufft.h>

#include <climits>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "tests/gpu_model/libraries/fft.hpp"

namespace gpu_model {
namespace {

struct FftPlan {
  int device = 0;
  FftShape shape;
  std::shared_ptr<FftEngine> engine;  // nullptr: the plan has not been made
  bool allocates = true;
  void* own_area = nullptr;
  void* area = nullptr;
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

// Parameters of one side of the advanced layout.
template <class Integer>
struct Layout {
  const Integer* embed = nullptr;
  long long stride = 1, distance = 0;
};

// False where values would lie outside their rows or two at one place.
template <class Integer>
bool lay_out(FftArray& array, const FftArray& used, int rank, const Layout<Integer>& layout, long long batch) {
  array = used;
  array.stride = layout.stride, array.distance = layout.distance;
  if (array.stride < 1 || array.distance < (batch > 1 ? 1 : 0)) return false;
  for (int i = 1; i < rank; ++i) {  // the outermost one's is not used
    const int side = 3 - rank + i;
    array.storage[side] = layout.embed[i];
    if (array.storage[side] < used.length[side]) return false;
  }
  return true;
}

// `most`: elements that the function's integers can count.
template <class Integer>
cufftResult make_plan(cufftHandle handle, int rank, const Integer* sides, Layout<Integer> in, Layout<Integer> out,
                      cufftType type, long long batch, long long most, std::size_t* work_bytes) {
  if (!work_bytes || !sides || rank < 1 || rank > 3 || (type != CUFFT_R2C && type != CUFFT_C2R && type != CUFFT_C2C))
    return CUFFT_INVALID_VALUE;
  FftShape shape;
  shape.type = type, shape.rank = rank, shape.batch = batch;
  if (batch < 1) return CUFFT_INVALID_SIZE;
  long long values = batch;
  for (int i = 0; i < rank; ++i) {
    if (sides[i] < 1 || sides[i] > INT_MAX || values > most / sides[i]) return CUFFT_INVALID_SIZE;
    shape.sides[3 - rank + i] = sides[i];
    values *= sides[i];
  }
  shape.basic = !in.embed || !out.embed;
  if (!shape.basic && !(lay_out(shape.in, shape.used(!shape.from_real()), rank, in, batch) &&
                        lay_out(shape.out, shape.used(!shape.to_real()), rank, out, batch))) {
    return CUFFT_INVALID_VALUE;
  }
  return with_plan(handle, [&](FftPlan& plan) {
    if (plan.engine) return CUFFT_INVALID_PLAN;  // "can only be used once for a given handle"
    auto engine = make_fft_engine(shape);
    if (!engine) return CUFFT_ALLOC_FAILED;
    const std::size_t bytes = work_area_bytes(shape);
    if (plan.allocates && bytes > 0) {
      if (cudaMalloc(&plan.own_area, bytes) != cudaSuccess) return CUFFT_ALLOC_FAILED;
      plan.area = plan.own_area;
    }
    plan.shape = shape, plan.engine = std::move(engine);
    *work_bytes = plan.area_bytes = bytes;
    return CUFFT_SUCCESS;
  });
}

std::string words(const FftShape& shape, const char* call) {
  std::string text = call;
  for (int i = 3 - shape.rank; i < 3; ++i) {
    text += (i == 3 - shape.rank ? " of " : " x ") + std::to_string(shape.sides[i]);
  }
  return shape.batch == 1 ? text : text + ", " + std::to_string(shape.batch) + " times";
}

cufftResult execute(cufftHandle handle, cufftType type, const void* in, const void* out, int direction,
                    const char* call) {
  FftExecution execution;
  cudaStream_t stream = nullptr;
  const cufftResult result = with_plan(handle, [&](FftPlan& plan) {
    if (!plan.engine || plan.shape.type != type) return CUFFT_INVALID_PLAN;
    if (!in || !out || (direction != CUFFT_FORWARD && direction != CUFFT_INVERSE)) return CUFFT_INVALID_VALUE;
    int device = 0;
    if (cudaGetDevice(&device) != cudaSuccess || device != plan.device) return CUFFT_INVALID_DEVICE;
    if (plan.area_bytes > 0 && !plan.area) return CUFFT_NO_WORKSPACE;
    execution = {plan.engine,
                 plan.shape,
                 direction,
                 reinterpret_cast<Address>(in),
                 reinterpret_cast<Address>(out),
                 reinterpret_cast<Address>(plan.area),
                 plan.area_bytes,
                 words(plan.shape, call)};
    stream = plan.stream;
    return CUFFT_SUCCESS;
  });
  if (result != CUFFT_SUCCESS) return result;
  return queue_fft(stream, std::move(execution)) ? CUFFT_SUCCESS : CUFFT_EXEC_FAILED;
}

// Not under the table's lock: it waits for the device.
void free_area(void* area) {
  if (area) cudaFree(area);
}

}  // namespace
}  // namespace gpu_model

using gpu_model::execute, gpu_model::FftPlan, gpu_model::make_plan, gpu_model::with_plan;

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
  std::unique_lock lock(table.mutex);
  const auto plan = table.all.extract(handle);
  lock.unlock();
  if (!plan) return CUFFT_INVALID_PLAN;
  gpu_model::free_area(plan.mapped().own_area);
  return CUFFT_SUCCESS;
}

cufftResult cufftSetAutoAllocation(cufftHandle handle, int allocates) {
  return with_plan(handle, [&](FftPlan& plan) {
    if (plan.engine) return CUFFT_INVALID_PLAN;  // it has to come before the plan is made
    plan.allocates = allocates != 0;
    return CUFFT_SUCCESS;
  });
}

cufftResult cufftSetWorkArea(cufftHandle handle, void* area) {
  void* own = nullptr;
  const cufftResult result = with_plan(handle, [&](FftPlan& plan) {
    own = std::exchange(plan.own_area, nullptr);
    plan.area = area;
    return CUFFT_SUCCESS;
  });
  gpu_model::free_area(own);
  return result;
}

cufftResult cufftSetStream(cufftHandle handle, cudaStream_t stream) {
  return with_plan(handle, [&](FftPlan& plan) {
    plan.stream = stream;
    return CUFFT_SUCCESS;
  });
}

cufftResult cufftMakePlan3d(cufftHandle handle, int nx, int ny, int nz, cufftType type, size_t* work_bytes) {
  const int sides[] = {nx, ny, nz};
  return make_plan<int>(handle, 3, sides, {}, {}, type, 1, INT_MAX, work_bytes);
}

cufftResult cufftMakePlanMany(cufftHandle handle, int rank, int* n, int* inembed, int istride, int idist, int* onembed,
                              int ostride, int odist, cufftType type, int batch, size_t* work_bytes) {
  return make_plan<int>(handle, rank, n, {inembed, istride, idist}, {onembed, ostride, odist}, type, batch, INT_MAX,
                        work_bytes);
}

cufftResult cufftMakePlanMany64(cufftHandle handle, int rank, long long* n, long long* inembed, long long istride,
                                long long idist, long long* onembed, long long ostride, long long odist, cufftType type,
                                long long batch, size_t* work_bytes) {
  return make_plan<long long>(handle, rank, n, {inembed, istride, idist}, {onembed, ostride, odist}, type, batch,
                              LLONG_MAX, work_bytes);
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
