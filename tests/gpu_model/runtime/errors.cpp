#include "tests/gpu_model/runtime/call.hpp"

#include <array>

namespace gpu_model {
namespace {

struct Words {
  cudaError_t code;
  const char *name, *text;
};

constexpr Words kWords[] = {
    {cudaSuccess, "cudaSuccess", "no error"},
    {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    {cudaErrorInvalidConfiguration, "cudaErrorInvalidConfiguration", "invalid configuration argument"},
    {cudaErrorInvalidDeviceFunction, "cudaErrorInvalidDeviceFunction", "invalid device function"},
    {cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {cudaErrorInvalidPtx, "cudaErrorInvalidPtx", "a PTX JIT compilation failed"},
    {cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {cudaErrorNotReady, "cudaErrorNotReady", "device not ready"},
    {cudaErrorIllegalAddress, "cudaErrorIllegalAddress", "an illegal memory access was encountered"},
    {cudaErrorMisalignedAddress, "cudaErrorMisalignedAddress", "misaligned address"},
    {cudaErrorLaunchFailure, "cudaErrorLaunchFailure", "unspecified launch failure"},
    {cudaErrorNotSupported, "cudaErrorNotSupported", "operation not supported"},
};

std::array<int, kMostDevices> errors{};  // of devices

const Words* words_of(cudaError_t code) {
  for (const Words& w : kWords)
    if (w.code == code) return &w;
  return nullptr;
}

}  // namespace

int& device_error(int device) { return errors[static_cast<std::size_t>(device)]; }

void forget_errors() {
  errors.fill(0);
  last_error() = cudaSuccess;
}

cudaError_t& last_error() {
  thread_local cudaError_t last = cudaSuccess;
  return last;
}

}  // namespace gpu_model

using namespace gpu_model;

extern "C" {

const char* cudaGetErrorName(cudaError_t code) {
  const Words* w = words_of(code);
  return w ? w->name : "unrecognized error code";
}

const char* cudaGetErrorString(cudaError_t code) {
  const Words* w = words_of(code);
  return w ? w->text : "unrecognized error code";
}

cudaError_t cudaGetLastError() {
  const cudaError_t code = last_error();
  last_error() = cudaSuccess;
  return code;
}

cudaError_t cudaPeekAtLastError() { return last_error(); }
}
