#include "src/run/build.hpp"

#include <fftw3.h>
#include <fmt/format.h>

#include "build_info.hpp"
#include "git_hash.hpp"
#include "host/comm/job.hpp"
#include "kernels/device/device.hpp"
#include "src/io/hdf5_file.hpp"

namespace maki {
namespace {

#if defined(__clang__)
constexpr const char* kCompiler = "clang " __clang_version__;
#else
constexpr const char* kCompiler = "g++ " __VERSION__;
#endif

}  // namespace

std::string version_text() {
  unsigned major = 0, minor = 0, release = 0;
  const Hdf5Turn turn;
  H5get_libversion(&major, &minor, &release);
  const bool cuda = std::string(backend_name()) == "cuda";
  const std::string nccl = nccl_version().empty() ? "without NCCL" : "NCCL " + nccl_version();
  return fmt::format(
      "Maki {}\ncommit    {}\nbackend   {}\ncompiler  {}\n"
      "FFT       {}\nHDF5      {}.{}.{}\nMPI       {}\n",
      MAKI_VERSION, MAKI_GIT_HASH, backend_name(), kCompiler,
      cuda ? fmt::format("cuFFT; {}", fftwf_version) : fftwf_version, major, minor, release,
      mpi_library() + (cuda ? "; " + nccl : ""));
}

std::string device_text() {
  const DeviceInfo device = device_info();
  std::string text = fmt::format("{}, {}, {}", device.backend, device.name, device.instruction_set);
  text += device.backend == "cuda" ? fmt::format(", {} multiprocessors, {}", device.units, device.driver)
                                   : fmt::format(", {} thread{}", device.units, device.units == 1 ? "" : "s");
  return text + fmt::format(", {:.1f} GB free", static_cast<double>(device.memory_free) * 1e-9);
}

Provenance provenance(const std::string& configuration, const std::string& device) {
  return {configuration, std::string("Maki ") + MAKI_VERSION, MAKI_GIT_HASH, kCompiler, device};
}

}  // namespace maki
