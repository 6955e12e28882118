#include "tests/gpu_model/choices.hpp"

#include <cstdlib>

namespace gpu_model {

std::uint64_t choices_seed() {
  static const std::uint64_t seed = [] {
    const char* text = std::getenv("MAKI_GPU_MODEL_SEED");
    return text && *text ? std::strtoull(text, nullptr, 10) : std::uint64_t{1};
  }();
  return seed;
}

Choices& choices() {
  static Choices instance(choices_seed());
  return instance;
}

}  // namespace gpu_model
