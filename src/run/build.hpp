// Facts of this program for --version, the first lines of a run, and every output file.
#pragma once

#include <string>

#include "src/io/snapshot.hpp"

namespace maki {

// Version, git hash, backend, compiler, libraries; several lines. Needs no device.
std::string version_text();

// `configuration`: the resolved one as TOML. `device`: device_text(), or "host" without a device.
Provenance provenance(const std::string& configuration, const std::string& device);

// "cpu, Intel Xeon ..., avx512, 2 threads": the selected device in one line. Throws DeviceError.
std::string device_text();

}  // namespace maki
