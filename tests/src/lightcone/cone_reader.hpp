// Light cones of runs as tests read them back.
#pragma once

#include <fitsio.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "src/io/hdf5_file.hpp"
#include "src/io/snapshot_io.hpp"

namespace maki::test {

// A particle of a shell as it stands in its file.
struct ReadParticle {
  std::uint64_t id;
  std::array<double, 3> position;
  std::array<double, 3> velocity;
  double scale_factor;
  double distance() const { return std::hypot(position[0], position[1], position[2]); }
  auto operator<=>(const ReadParticle&) const = default;
};

// In the order of IDs.
inline std::vector<ReadParticle> read_shell(const std::string& path) {
  const auto numbers = [&](const char* name) { return read_extra_dataset(path, name); };
  const auto ids = numbers("ParticleIDs"), x = numbers("Coordinates"), v = numbers("Velocities"), a = numbers("Ascale");
  std::vector<ReadParticle> all;
  for (std::size_t i = 0; i < ids.size(); ++i)
    all.push_back({static_cast<std::uint64_t>(ids[i]),
                   {x[3 * i], x[3 * i + 1], x[3 * i + 2]},
                   {v[3 * i], v[3 * i + 1], v[3 * i + 2]},
                   a[i]});
  std::sort(all.begin(), all.end());
  return all;
}

// The only column of a map; empty where something is wrong.
inline std::vector<double> read_sky_map(const std::string& path) {
  int status = 0, any = 0;
  long nside = 0;
  fitsfile* file = nullptr;
  fits_open_table(&file, path.c_str(), READONLY, &status);
  fits_read_key(file, TLONG, "NSIDE", &nside, nullptr, &status);
  std::vector<double> values(static_cast<std::size_t>(12 * nside * nside));
  fits_read_col(file, TDOUBLE, 1, 1, 1, static_cast<LONGLONG>(values.size()), nullptr, values.data(), &any, &status);
  fits_close_file(file, &status);
  return status == 0 ? values : std::vector<double>();
}

// The text of a keyword of its header.
inline std::string sky_map_key(const std::string& path, const char* name) {
  int status = 0;
  fitsfile* file = nullptr;
  char text[FLEN_VALUE] = "";
  fits_open_table(&file, path.c_str(), READONLY, &status);
  fits_read_keyword(file, name, text, nullptr, &status);
  fits_close_file(file, &status);
  return text;
}

}  // namespace maki::test
