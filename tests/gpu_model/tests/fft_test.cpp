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
  explicit Plan(bool allocates = false) {
    EXPECT_EQ(cufftCreate(&handle), CUFFT_SUCCESS);
    if (!allocates) {
      EXPECT_EQ(cufftSetAutoAllocation(handle, 0), CUFFT_SUCCESS);
    }
  }
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;
  ~Plan() { cufftDestroy(handle); }
  cufftResult lines(int n, cufftType type, int batch, int from_row, int to_row) {
    return cufftMakePlanMany(handle, 1, &n, &from_row, 1, from_row, &to_row, 1, to_row, type, batch, &bytes);
  }
};

double value(std::size_t i) { return std::sin(1.7 * static_cast<double>(i) + 0.3) + 0.1 * static_cast<double>(i % 7); }

// sum_x v_x exp(sign 2 pi i k x / n), in all three directions.
std::vector<Complex> definition(const std::vector<Complex>& v, int a, int b, int c, int sign) {
  std::vector<Complex> sums(v.size());
  const auto phase = [&](int k, int x, int n) { return double(sign) * 2 * std::numbers::pi * (k * x % n) / n; };
  for (int k = 0; k < a; ++k)
    for (int l = 0; l < b; ++l)
      for (int m = 0; m < c; ++m)
        for (int x = 0; x < a; ++x)
          for (int y = 0; y < b; ++y)
            for (int z = 0; z < c; ++z)
              sums[(k * b + l) * c + m] +=
                  v[(x * b + y) * c + z] * std::polar(1.0, phase(k, x, a) + phase(l, y, b) + phase(m, z, c));
  return sums;
}

TEST(ModelledFft, MeshInPlaceIsTheDefinitionAndBack) {
  constexpr int a = 4, b = 6, c = 10, row = 2 * (c / 2 + 1);
  std::vector<Complex> values(a * b * c);
  std::vector<float> mesh(a * b * row, NAN);
  for (int i = 0; i < a * b * c; ++i) {
    values[i] = value(i);
    mesh[i / c * row + i % c] = static_cast<float>(value(i));
  }
  OnDevice<float> on_device(mesh);
  Plan forward, back;
  ASSERT_EQ(cufftMakePlan3d(forward.handle, a, b, c, CUFFT_R2C, &forward.bytes), CUFFT_SUCCESS);
  ASSERT_EQ(cufftMakePlan3d(back.handle, a, b, c, CUFFT_C2R, &back.bytes), CUFFT_SUCCESS);
  OnDevice<char> area(std::max(forward.bytes, back.bytes));
  EXPECT_EQ(cufftExecR2C(forward.handle, on_device.data(), on_device.as<cufftComplex>()), CUFFT_NO_WORKSPACE);
  for (const Plan* plan : {&forward, &back}) ASSERT_EQ(cufftSetWorkArea(plan->handle, area.data()), CUFFT_SUCCESS);
  ASSERT_EQ(cufftExecR2C(forward.handle, on_device.data(), on_device.as<cufftComplex>()), CUFFT_SUCCESS);
  const auto found = on_device.get();
  const auto expected = definition(values, a, b, c, -1);
  for (int line = 0; line < a * b; ++line) {
    for (int k = 0; k <= c / 2; ++k) {
      EXPECT_NEAR(found[line * row + 2 * k], expected[line * c + k].real(), 1e-4);
      EXPECT_NEAR(found[line * row + 2 * k + 1], expected[line * c + k].imag(), 1e-4);
    }
  }
  ASSERT_EQ(cufftExecC2R(back.handle, on_device.as<cufftComplex>(), on_device.data()), CUFFT_SUCCESS);
  const auto again = on_device.get();
  for (int i = 0; i < a * b * row; ++i) {
    if (i % row < c)
      EXPECT_NEAR(again[i] / (a * b * c), mesh[i], 1e-6);
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
  const auto expected = definition(std::vector<Complex>(rows.begin(), rows.begin() + n), 1, 1, n, -1);
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

// Two planes of 3 x 5 complex values, two apart, rows of 7, planes of 4 rows.
TEST(ModelledFft, StridesAndStorage) {
  int sides[] = {3, 5}, storage[] = {4, 7};
  constexpr int stride = 2, plane = 4 * 7 * stride, batch = 2;
  std::vector<std::complex<float>> from(plane * batch);
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = {float(value(i)), float(value(2 * i + 1))};
  for (const int direction : {CUFFT_FORWARD, CUFFT_INVERSE}) {
    Plan plan(true);
    ASSERT_EQ(cufftMakePlanMany(plan.handle, 2, sides, storage, stride, plane, sides, 1, 15, CUFFT_C2C, batch,
                                &plan.bytes),
              CUFFT_SUCCESS);
    OnDevice<std::complex<float>> in(from), out(15 * batch);
    ASSERT_EQ(cufftExecC2C(plan.handle, in.as<cufftComplex>(), out.as<cufftComplex>(), direction), CUFFT_SUCCESS);
    const auto found = out.get();
    for (int entry = 0; entry < batch; ++entry) {
      std::vector<Complex> values(15);
      for (int i = 0; i < 15; ++i) values[i] = from[entry * plane + (i / 5 * 7 + i % 5) * stride];
      const auto expected = definition(values, 1, 3, 5, direction);
      for (int i = 0; i < 15; ++i) EXPECT_LT(std::abs(Complex(found[entry * 15 + i]) - expected[i]), 1e-5);
    }
    EXPECT_EQ(in.get(), from);
  }
  EXPECT_EQ(kinds_of_faults(), Kinds{});
}

TEST(ModelledFft, WorkAreaIsOverwritten) {
  Plan plan;
  ASSERT_EQ(cufftMakePlan3d(plan.handle, 4, 4, 4, CUFFT_C2C, &plan.bytes), CUFFT_SUCCESS);
  ASSERT_GT(plan.bytes, 0u);
  OnDevice<float> area(std::vector<float>(plan.bytes / 4, 1.0f));
  OnDevice<float> mesh(std::vector<float>(128, 1.0f));
  ASSERT_EQ(cufftSetWorkArea(plan.handle, area.data()), CUFFT_SUCCESS);
  ASSERT_EQ(cufftExecC2C(plan.handle, mesh.as<cufftComplex>(), mesh.as<cufftComplex>(), CUFFT_FORWARD), CUFFT_SUCCESS);
  for (const float v : area.get()) EXPECT_TRUE(std::isnan(v));
}

TEST(ModelledFft, WorkAreaIsForOneStreamAtATime) {
  Plan plans[2];
  cudaStream_t streams[2];
  OnDevice<float> meshes[] = {OnDevice<float>(std::vector<float>(128)), OnDevice<float>(std::vector<float>(128))};
  OnDevice<char> area(4096);
  for (const int i : {0, 1}) {
    ASSERT_EQ(cufftMakePlan3d(plans[i].handle, 4, 4, 4, CUFFT_C2C, &plans[i].bytes), CUFFT_SUCCESS);
    ASSERT_LE(plans[i].bytes, 4096u);
    ASSERT_EQ(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking), cudaSuccess);
    ASSERT_EQ(cufftSetStream(plans[i].handle, streams[i]), CUFFT_SUCCESS);
    ASSERT_EQ(cufftSetWorkArea(plans[i].handle, area.data()), CUFFT_SUCCESS);
  }
  const auto run = [&](int i) {
    auto* const mesh = meshes[i].as<cufftComplex>();
    EXPECT_EQ(cufftExecC2C(plans[i].handle, mesh, mesh, CUFFT_FORWARD), CUFFT_SUCCESS);
  };
  run(0);
  cudaStreamSynchronize(streams[0]);
  run(1);
  cudaDeviceSynchronize();
  EXPECT_EQ(kinds_of_faults(), Kinds{});
  run(0);
  run(1);
  cudaDeviceSynchronize();
  EXPECT_EQ(kinds_of_faults(), Kinds{"a race between streams"});
  for (cudaStream_t stream : streams) cudaStreamDestroy(stream);
}

TEST(ModelledFft, QueuedWorkOutlivesItsPlan) {
  OnDevice<std::complex<float>> line(std::vector<std::complex<float>>(8, 1.0f));
  {
    Plan plan(true);
    ASSERT_EQ(plan.lines(8, CUFFT_C2C, 1, 8, 8), CUFFT_SUCCESS);
    auto* const data = line.as<cufftComplex>();
    ASSERT_EQ(cufftExecC2C(plan.handle, data, data, CUFFT_FORWARD), CUFFT_SUCCESS);
  }
  EXPECT_EQ(line.get()[0], 8.0f);
  EXPECT_EQ(kinds_of_faults(), Kinds{});
}

TEST(ModelledFft, ErrorsAsDocumented) {
  std::size_t bytes = 0;
  int n = 8, none = 0, short_row[] = {8, 4}, sides[] = {8, 8};
  long long large[] = {1 << 12, 1 << 12, 1 << 12};
  Plan plan;
  const auto many = [&](int rank, int* length, cufftType type, int batch) {
    return cufftMakePlanMany(plan.handle, rank, length, nullptr, 1, 0, nullptr, 1, 0, type, batch, &bytes);
  };
  EXPECT_EQ(cufftMakePlan3d(plan.handle, 1 << 12, 1 << 12, 1 << 12, CUFFT_R2C, &bytes), CUFFT_INVALID_SIZE);
  EXPECT_EQ(cufftMakePlanMany64(plan.handle, 4, large, nullptr, 1, 0, nullptr, 1, 0, CUFFT_R2C, 1, &bytes),
            CUFFT_INVALID_VALUE);
  EXPECT_EQ(many(1, &none, CUFFT_C2C, 1), CUFFT_INVALID_SIZE);
  EXPECT_EQ(many(1, &n, CUFFT_C2C, 0), CUFFT_INVALID_SIZE);
  EXPECT_EQ(many(0, &n, CUFFT_C2C, 1), CUFFT_INVALID_VALUE);
  EXPECT_EQ(many(1, &n, static_cast<cufftType>(1), 1), CUFFT_INVALID_VALUE);
  EXPECT_EQ(cufftMakePlan3d(plan.handle, 8, 8, 8, CUFFT_R2C, nullptr), CUFFT_INVALID_VALUE);
  EXPECT_EQ(cufftMakePlanMany(plan.handle, 2, sides, short_row, 1, 64, sides, 1, 64, CUFFT_C2C, 1, &bytes),
            CUFFT_INVALID_VALUE);
  OnDevice<float> values(std::vector<float>(16));
  auto* const line = values.as<cufftComplex>();
  EXPECT_EQ(cufftExecC2C(plan.handle, line, line, CUFFT_FORWARD), CUFFT_INVALID_PLAN) << "not made";
  EXPECT_EQ(many(1, &n, CUFFT_C2C, 1), CUFFT_SUCCESS);
  EXPECT_EQ(many(1, &n, CUFFT_C2C, 1), CUFFT_INVALID_PLAN) << "made already";
  EXPECT_EQ(cufftSetAutoAllocation(plan.handle, 1), CUFFT_INVALID_PLAN);
  EXPECT_EQ(cufftExecC2C(plan.handle, nullptr, line, CUFFT_FORWARD), CUFFT_INVALID_VALUE);
  EXPECT_EQ(cufftExecC2C(plan.handle, line, line, 0), CUFFT_INVALID_VALUE);
  EXPECT_EQ(cufftExecR2C(plan.handle, values.data(), line), CUFFT_INVALID_PLAN) << "of another type";
  const cufftHandle gone = Plan().handle;
  EXPECT_EQ(cufftDestroy(gone), CUFFT_INVALID_PLAN);
  EXPECT_EQ(cufftSetStream(gone, nullptr), CUFFT_INVALID_PLAN);
  EXPECT_EQ(kinds_of_faults(), Kinds{});
}

TEST(ModelledFft, FaultsOfLayout) {
  Plan complex, real;
  ASSERT_EQ(complex.lines(8, CUFFT_C2C, 2, 8, 8), CUFFT_SUCCESS);
  ASSERT_EQ(real.lines(8, CUFFT_R2C, 2, 8, 5), CUFFT_SUCCESS);
  OnDevice<float> values(std::vector<float>(256, 1.0f));
  OnDevice<char> area(complex.bytes + real.bytes + 1);
  for (const Plan* plan : {&complex, &real}) ASSERT_EQ(cufftSetWorkArea(plan->handle, area.data()), CUFFT_SUCCESS);
  auto* const from = values.as<cufftComplex>();
  EXPECT_EQ(cufftExecC2C(complex.handle, from, from + 16, CUFFT_FORWARD), CUFFT_SUCCESS);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(kinds_of_faults(), Kinds{});
  EXPECT_EQ(cufftExecC2C(complex.handle, from, from + 15, CUFFT_FORWARD), CUFFT_EXEC_FAILED);
  EXPECT_EQ(kinds_of_faults(), Kinds{"FFT layout"}) << "overlapping";
  EXPECT_EQ(cufftExecR2C(real.handle, values.data(), from), CUFFT_EXEC_FAILED);
  EXPECT_EQ(kinds_of_faults(), Kinds{"FFT layout"}) << "rows of 8 reals in place";
  EXPECT_EQ(cufftExecR2C(real.handle, values.data() + 1, from + 64), CUFFT_EXEC_FAILED);
  EXPECT_EQ(kinds_of_faults(), Kinds{"FFT alignment"});
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
