#include "tests/gpu_model/runtime/call.hpp"

#include <cstdio>
#include <cstdlib>
#include <map>

namespace gpu_model {
namespace {

constexpr std::size_t kKiB = 1024, kMiB = kKiB * 1024;

[[noreturn]] void refuse(const char* name, const char* value, const char* allowed) {
  std::fprintf(stderr, "modelled GPU: %s is '%s', it has to be %s\n", name, value, allowed);
  std::exit(2);
}

long number_from(const char* name, long otherwise, long most) {
  const char* text = std::getenv(name);
  if (!text) return otherwise;
  char* end = nullptr;
  const long value = std::strtol(text, &end, 10);
  if (end == text || *end || value < 1 || value > most)
    refuse(name, text, ("from 1 to " + std::to_string(most)).c_str());
  return value;
}

Gpu chosen() {
  const std::map<std::string, Gpu> known = {
      {"h100",
       {"NVIDIA H100 80GB HBM3 (modelled)", 9, 0, 132, 1980000, 2619000, 5120, 81079 * kMiB, 228 * kKiB, 227 * kKiB,
        2048, 32}},
      {"a100",
       {"NVIDIA A100-SXM4-80GB (modelled)", 8, 0, 108, 1410000, 1593000, 5120, 81050 * kMiB, 164 * kKiB, 163 * kKiB,
        2048, 32}},
      {"rtx5090",
       {"NVIDIA GeForce RTX 5090 (modelled)", 12, 0, 170, 2407000, 14001000, 512, 32109 * kMiB, 100 * kKiB, 99 * kKiB,
        1536, 24}},
  };
  const char* name = std::getenv("MAKI_GPU_MODEL");
  const auto found = known.find(name ? name : "h100");
  if (found == known.end()) refuse("MAKI_GPU_MODEL", name, "h100, a100 or rtx5090");
  return found->second;
}

thread_local int selected = 0;

}  // namespace

const Gpu& gpu() {
  static const auto* g = new Gpu(chosen());
  return *g;
}

int device_count() {
  static const int count = static_cast<int>(number_from("MAKI_GPU_MODEL_DEVICES", 1, kMostDevices));
  return count;
}

int current_device() { return selected; }
void select_device(int device) { selected = device; }

}  // namespace gpu_model
