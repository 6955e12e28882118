// The modelled cuFFT against the transform's definition, and the faults that it reports.
#include <cuda_runtime_api.h>
#include <cufft.h>
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <numbers>
#include <vector>

#include "tests/gpu_model/runtime/call.hpp"
#include "tests/gpu_model/tests/device_memory.hpp"
#include "tests/gpu_model/tests/faults.hpp"

namespace gpu_model {
namespace {

using Complex = std::complex<double>;

// A plan whose work area the test gives, as Maki does.
struct Plan {
  cufftHandle handle = 0;
  std::size_t bytes = 0;
  Plan() {
    EXPECT_EQ(cufftCreate(&handle), CUFFT_SUCCESS);
    EXPECT_EQ(cufftSetAutoAllocation(handle, 0), CUFFT_SUCCESS);
    EXPECT_EQ(cufftSetStream(handle, common_stream().handle), CUFFT_SUCCESS);
  }
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;
  ~Plan() { cufftDestroy(handle); }
  cufftResult cube(int n, cufftType type) { return cufftMakePlan3d(handle, n, n, n, type, &bytes); }
  cufftResult lines(int n, cufftType type, int batch, int from_row, int to_row) {
    return cufftMakePlanMany(handle, 1, &n, &from_row, 1, from_row, &to_row, 1, to_row, type, batch, &bytes);
  }
};

double value(std::size_t i) { return std::sin(1.7 * static_cast<double>(i) + 0.3) + 0.1 * static_cast<double>(i % 7); }

// sum_x v_x exp(sign 2 pi i k x / n), over a line or in all three directions of a cube.
std::vector<Complex> definition(const std::vector<Complex>& v, int n, int sign) {
  const bool cube = v.size() != static_cast<std::size_t>(n);
  std::vector<Complex> sums(v.size());
  const auto at = [&](int x, int y, int z) { return (x * n + y) * n + z; };
  for (int i = 0; i < static_cast<int>(v.size()); ++i)
    for (int x = 0; x < (cube ? n : 1); ++x)
      for (int y = 0; y < (cube ? n : 1); ++y)
        for (int z = 0; z < n; ++z)
          sums[i] += v[at(x, y, z)] * std::polar(1.0, double(sign) * 2 * std::numbers::pi *
                                                          (i / n / n * x + i / n % n * y + i % n * z) / n);
  return sums;
}

TEST(ModelledFft, MeshInPlaceIsTheDefinitionAndBack) {
  constexpr int n = 6, row = 2 * (n / 2 + 1);
  std::vector<Complex> values(n * n * n);
  std::vector<float> mesh(n * n * row, NAN);
  for (int i = 0; i < n * n * n; ++i) {
    values[i] = value(i);
    mesh[i / n * row + i % n] = static_cast<float>(value(i));
  }
  OnDevice<float> on_device(mesh);
  Plan forward, back;
  long long sides[] = {n, n, n};
  ASSERT_EQ(forward.cube(n, CUFFT_R2C), CUFFT_SUCCESS);
  ASSERT_EQ(cufftMakePlanMany64(back.handle, 3, sides, nullptr, 1, 0, nullptr, 1, 0, CUFFT_C2R, 1, &back.bytes),
            CUFFT_SUCCESS);
  OnDevice<char> area(std::max(forward.bytes, back.bytes));
  EXPECT_EQ(cufftExecR2C(forward.handle, on_device.data(), on_device.as<cufftComplex>()), CUFFT_NO_WORKSPACE);
  for (const Plan* plan : {&forward, &back}) ASSERT_EQ(cufftSetWorkArea(plan->handle, area.data()), CUFFT_SUCCESS);
  ASSERT_EQ(cufftExecR2C(forward.handle, on_device.data(), on_device.as<cufftComplex>()), CUFFT_SUCCESS);
  const auto found = on_device.get();
  const auto expected = definition(values, n, -1);
  for (int line = 0; line < n * n; ++line) {
    for (int k = 0; k <= n / 2; ++k) {
      EXPECT_NEAR(found[line * row + 2 * k], expected[line * n + k].real(), 1e-4);
      EXPECT_NEAR(found[line * row + 2 * k + 1], expected[line * n + k].imag(), 1e-4);
    }
  }
  ASSERT_EQ(cufftExecC2R(back.handle, on_device.as<cufftComplex>(), on_device.data()), CUFFT_SUCCESS);
  const auto again = on_device.get();
  for (int i = 0; i < n * n * row; ++i) {
    if (i % row < n)
      EXPECT_NEAR(again[i] / (n * n * n), mesh[i], 1e-6);
    else
      EXPECT_TRUE(std::isnan(again[i])) << "padding has no meaning";
  }
  EXPECT_EQ(kinds_of_faults(), Kinds{});
}

// Lines of 10 in rows of 16 reals; the same bits in place, between two arrays, and wherever a line stands.
TEST(ModelledFft, RealLinesHaveTheirBitsWhereverTheyStand) {
  constexpr int n = 10, row = 16, batch = 3;
  std::vector<float> rows(row * batch);
  for (int i = 0; i < row * batch; ++i) rows[i] = static_cast<float>(value(i % row));
  Plan forward, back;
  ASSERT_EQ(forward.lines(n, CUFFT_R2C, batch, row, row / 2), CUFFT_SUCCESS);
  ASSERT_EQ(back.lines(n, CUFFT_C2R, batch, row / 2, row), CUFFT_SUCCESS);
  OnDevice<float> values(rows), modes(row * batch);
  OnDevice<char> area(std::max(forward.bytes, back.bytes) + 1);
  for (const Plan* plan : {&forward, &back}) ASSERT_EQ(cufftSetWorkArea(plan->handle, area.data()), CUFFT_SUCCESS);
  ASSERT_EQ(cufftExecR2C(forward.handle, values.data(), modes.as<cufftComplex>()), CUFFT_SUCCESS);
  EXPECT_EQ(values.get(), rows) << "real input between two arrays is left";
  ASSERT_EQ(cufftExecR2C(forward.handle, values.data(), values.as<cufftComplex>()), CUFFT_SUCCESS);
  const auto between = modes.get(), in_place = values.get();
  const auto expected = definition(std::vector<Complex>(rows.begin(), rows.begin() + n), n, -1);
  for (int line = 0; line < batch; ++line) {
    for (int k = 0; k <= n / 2; ++k) {
      for (const int part : {0, 1}) {
        const float mode = between[line * row + 2 * k + part];
        EXPECT_EQ(mode, in_place[line * row + 2 * k + part]);
        EXPECT_EQ(mode, between[2 * k + part]);
        EXPECT_NEAR(mode, part ? expected[k].imag() : expected[k].real(), 1e-5);
      }
    }
  }
  ASSERT_EQ(cufftExecC2R(back.handle, modes.as<cufftComplex>(), values.data()), CUFFT_SUCCESS);
  const auto again = values.get(), destroyed = modes.get();
  for (int line = 0; line < batch; ++line) {
    for (int i = 0; i < n; ++i) EXPECT_NEAR(again[line * row + i] / n, rows[i], 1e-5);
    for (int i = 0; i < n + 2; ++i) EXPECT_TRUE(std::isnan(destroyed[line * row + i]));
  }
  EXPECT_EQ(kinds_of_faults(), Kinds{});
}

TEST(ModelledFft, ComplexLinesBothWays) {
  constexpr int n = 6, row = 8, batch = 2;
  std::vector<std::complex<float>> from(row * batch);
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = {float(value(i)), float(value(2 * i + 1))};
  Plan plan;
  ASSERT_EQ(plan.lines(n, CUFFT_C2C, batch, row, row), CUFFT_SUCCESS);
  OnDevice<char> area(plan.bytes);
  ASSERT_EQ(cufftSetWorkArea(plan.handle, area.data()), CUFFT_SUCCESS);
  for (const int direction : {CUFFT_FORWARD, CUFFT_INVERSE}) {
    OnDevice<std::complex<float>> in(from), out(row * batch);
    ASSERT_EQ(cufftExecC2C(plan.handle, in.as<cufftComplex>(), out.as<cufftComplex>(), direction), CUFFT_SUCCESS);
    const auto found = out.get();
    for (int line = 0; line < batch; ++line) {
      const auto begin = from.begin() + line * row;
      const auto expected = definition(std::vector<Complex>(begin, begin + n), n, direction);
      for (int i = 0; i < n; ++i) EXPECT_LT(std::abs(Complex(found[line * row + i]) - expected[i]), 1e-5);
    }
    EXPECT_EQ(in.get(), from);
  }
  EXPECT_EQ(kinds_of_faults(), Kinds{});
}

TEST(ModelledFft, WorkAreaIsOverwritten) {
  Plan plan;
  ASSERT_EQ(plan.cube(4, CUFFT_R2C), CUFFT_SUCCESS);
  ASSERT_GT(plan.bytes, 0u);
  OnDevice<float> area(std::vector<float>(plan.bytes / 4, 1.0f));
  OnDevice<float> mesh(std::vector<float>(128, 1.0f));
  ASSERT_EQ(cufftSetWorkArea(plan.handle, area.data()), CUFFT_SUCCESS);
  ASSERT_EQ(cufftExecR2C(plan.handle, mesh.data(), mesh.as<cufftComplex>()), CUFFT_SUCCESS);
  for (const float v : area.get()) EXPECT_TRUE(std::isnan(v));
}

TEST(ModelledFft, WorkAreaIsForOneStreamAtATime) {
  Plan plans[2];
  TestStream streams[2];
  OnDevice<float> meshes[] = {OnDevice<float>(std::vector<float>(128)), OnDevice<float>(std::vector<float>(128))};
  OnDevice<char> area(4096);
  for (const int i : {0, 1}) {
    ASSERT_EQ(plans[i].cube(4, CUFFT_R2C), CUFFT_SUCCESS);
    ASSERT_LE(plans[i].bytes, 4096u);
    ASSERT_EQ(cufftSetStream(plans[i].handle, streams[i].handle), CUFFT_SUCCESS);
    ASSERT_EQ(cufftSetWorkArea(plans[i].handle, area.data()), CUFFT_SUCCESS);
  }
  const auto run = [&](int i) {
    EXPECT_EQ(cufftExecR2C(plans[i].handle, meshes[i].data(), meshes[i].as<cufftComplex>()), CUFFT_SUCCESS);
  };
  run(0);
  streams[0].wait();
  run(1);
  cudaDeviceSynchronize();
  EXPECT_EQ(kinds_of_faults(), Kinds{});
  run(0);
  run(1);
  cudaDeviceSynchronize();
  EXPECT_EQ(kinds_of_faults(), Kinds{"a race between streams"});
}

TEST(ModelledFft, QueuedWorkOutlivesItsPlan) {
  OnDevice<std::complex<float>> line(std::vector<std::complex<float>>(8, 1.0f));
  {
    Plan plan;
    ASSERT_EQ(plan.lines(8, CUFFT_C2C, 1, 8, 8), CUFFT_SUCCESS);
    auto* const data = line.as<cufftComplex>();
    ASSERT_EQ(cufftExecC2C(plan.handle, data, data, CUFFT_FORWARD), CUFFT_SUCCESS);
  }
  EXPECT_EQ(line.get()[0], 8.0f);
  EXPECT_EQ(kinds_of_faults(), Kinds{});
}

TEST(ModelledFft, ErrorsAsDocumented) {
  Plan plan;
  EXPECT_EQ(plan.cube(1 << 12, CUFFT_R2C), CUFFT_INVALID_SIZE) << "more than 2^31 values";
  EXPECT_EQ(plan.cube(0, CUFFT_R2C), CUFFT_INVALID_SIZE);
  EXPECT_EQ(plan.lines(0, CUFFT_C2C, 1, 8, 8), CUFFT_INVALID_SIZE);
  EXPECT_EQ(plan.lines(8, CUFFT_C2C, 0, 8, 8), CUFFT_INVALID_SIZE);
  EXPECT_EQ(cufftMakePlan3d(plan.handle, 8, 8, 8, CUFFT_R2C, nullptr), CUFFT_INVALID_VALUE);
  OnDevice<float> values(std::vector<float>(16));
  auto* const line = values.as<cufftComplex>();
  EXPECT_EQ(cufftExecC2C(plan.handle, line, line, CUFFT_FORWARD), CUFFT_INVALID_PLAN) << "not made";
  EXPECT_EQ(plan.lines(8, CUFFT_C2C, 1, 8, 8), CUFFT_SUCCESS);
  EXPECT_EQ(plan.lines(8, CUFFT_C2C, 1, 8, 8), CUFFT_INVALID_PLAN) << "made already";
  EXPECT_EQ(cufftSetAutoAllocation(plan.handle, 1), CUFFT_INVALID_PLAN);
  EXPECT_EQ(cufftExecC2C(plan.handle, nullptr, line, CUFFT_FORWARD), CUFFT_INVALID_VALUE);
  EXPECT_EQ(cufftExecC2C(plan.handle, line, line, 0), CUFFT_INVALID_VALUE);
  EXPECT_EQ(cufftExecR2C(plan.handle, values.data(), line), CUFFT_INVALID_PLAN) << "of another type";
  const cufftHandle gone = Plan().handle;
  EXPECT_EQ(cufftDestroy(gone), CUFFT_INVALID_PLAN);
  EXPECT_EQ(cufftSetStream(gone, nullptr), CUFFT_INVALID_PLAN);
  EXPECT_EQ(kinds_of_faults(), Kinds{});
}

TEST(ModelledFft, RefusesWhatMakiDoesNotUse) {
  Plan plan, cube;
  int n = 8;
  long long sides[] = {8, 8, 8};
  ASSERT_EQ(cube.cube(8, CUFFT_R2C), CUFFT_SUCCESS);
  OnDevice<float> mesh(640), other(640);
  OnDevice<char> area(cube.bytes);
  ASSERT_EQ(cufftSetWorkArea(cube.handle, area.data()), CUFFT_SUCCESS);
  const auto many = [&](int rank, int* rows, int stride, cufftType type) {
    return cufftMakePlanMany(plan.handle, rank, &n, rows, stride, 10, rows, stride, 10, type, 2, &plan.bytes);
  };
  const auto many64 = [&](int rank, long long* rows, long long batch) {
    return cufftMakePlanMany64(plan.handle, rank, sides, rows, 1, 640, rows, 1, 640, CUFFT_R2C, batch, &plan.bytes);
  };
  cufftHandle with_area = 0;
  ASSERT_EQ(cufftCreate(&with_area), CUFFT_SUCCESS);
  const cufftResult refused[] = {cufftMakePlan3d(plan.handle, 8, 8, 4, CUFFT_R2C, &plan.bytes),
                                 plan.cube(8, CUFFT_C2C),
                                 many(2, &n, 1, CUFFT_C2C),
                                 many(1, nullptr, 1, CUFFT_C2C),
                                 many(1, &n, 2, CUFFT_C2C),
                                 many(1, &n, 1, CUFFT_Z2Z),
                                 many64(2, nullptr, 1),
                                 many64(3, sides, 1),
                                 many64(3, nullptr, 2),
                                 plan.lines(8, CUFFT_R2C, 2, 8, 5),
                                 plan.lines(8, CUFFT_C2C, 2, 7, 7),
                                 cufftMakePlan3d(with_area, 8, 8, 8, CUFFT_R2C, &plan.bytes),
                                 cufftExecR2C(cube.handle, mesh.data(), other.as<cufftComplex>())};
  for (const cufftResult result : refused) EXPECT_EQ(result, CUFFT_NOT_SUPPORTED) << &result - refused;
  EXPECT_EQ(kinds_of_faults(), Kinds(9, "not modelled")) << "each message once";
  EXPECT_EQ(cufftDestroy(with_area), CUFFT_SUCCESS);
}

TEST(ModelledFft, FaultsOfLayout) {
  Plan complex, real;
  ASSERT_EQ(complex.lines(10, CUFFT_C2C, 2, 10, 10), CUFFT_SUCCESS);
  ASSERT_EQ(real.lines(10, CUFFT_R2C, 2, 12, 6), CUFFT_SUCCESS);
  OnDevice<float> values(std::vector<float>(256, 1.0f));
  OnDevice<char> area(complex.bytes + real.bytes);
  for (const Plan* plan : {&complex, &real}) ASSERT_EQ(cufftSetWorkArea(plan->handle, area.data()), CUFFT_SUCCESS);
  auto* const from = values.as<cufftComplex>();
  EXPECT_EQ(cufftExecC2C(complex.handle, from, from + 20, CUFFT_FORWARD), CUFFT_SUCCESS);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(kinds_of_faults(), Kinds{});
  EXPECT_EQ(cufftExecC2C(complex.handle, from, from + 19, CUFFT_FORWARD), CUFFT_EXEC_FAILED);
  EXPECT_EQ(kinds_of_faults(), Kinds{"FFT layout"}) << "overlapping";
  EXPECT_EQ(cufftExecR2C(real.handle, values.data() + 1, from + 64), CUFFT_EXEC_FAILED);
  EXPECT_EQ(kinds_of_faults(), Kinds{"FFT alignment"});
  ASSERT_EQ(cufftSetWorkArea(complex.handle, values.data() + 39), CUFFT_SUCCESS);
  EXPECT_EQ(cufftExecC2C(complex.handle, from, from, CUFFT_FORWARD), CUFFT_EXEC_FAILED);
  EXPECT_EQ(kinds_of_faults(), Kinds{"FFT layout"}) << "of the work area";
}

using ModelledFftDeathTest = TwoGpusDeathTest;

TEST_F(ModelledFftDeathTest, ArrayOfAnotherGpu) {
  EXPECT_EXIT(
      {
        const OnDevice<std::complex<float>> values(std::vector<std::complex<float>>(64));
        cudaSetDevice(1);
        Plan plan;
        plan.lines(64, CUFFT_C2C, 1, 64, 64);
        cufftExecC2C(plan.handle, values.as<cufftComplex>(), values.as<cufftComplex>(), CUFFT_FORWARD);
        std::exit(cudaDeviceSynchronize() == cudaErrorIllegalAddress ? 0 : 1);
      },
      testing::ExitedWithCode(86), "wrong device: cufftExecC2C.* on GPU 1 reads .* of GPU 0");
}

TEST(ModelledFft, ArrayIsTooShort) {
  Plan plan;
  ASSERT_EQ(plan.lines(64, CUFFT_C2C, 16, 64, 64), CUFFT_SUCCESS);
  OnDevice<std::complex<float>> values(64 * 15);
  auto* const data = values.as<cufftComplex>();
  EXPECT_EQ(cufftExecC2C(plan.handle, data, data, CUFFT_FORWARD), CUFFT_SUCCESS);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
  const auto kinds = kinds_of_faults();
  ASSERT_FALSE(kinds.empty());
  EXPECT_EQ(kinds[0], "out of bounds");
  forget_errors();
}

}  // namespace
}  // namespace gpu_model
