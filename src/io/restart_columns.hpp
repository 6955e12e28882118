// The arrays of a rank's file of a restart. Used by restart.cpp.
#pragma once

#include <functional>
#include <vector>

#include "src/io/hdf5_file.hpp"
#include "src/io/restart.hpp"

namespace maki {

// An array `get` makes its numbers of some rows, `put` takes rows that were read.
struct RestartColumn {
  const char* group;
  const char* name;
  hid_t memory_type, file_type;
  std::size_t columns, width;  // numbers a row, bytes a number
  std::size_t rows;
  std::function<void(std::size_t first, std::size_t count, void* to)> get;
  std::function<void(std::size_t first, std::size_t count, const void* from)> put;
};

// The columns refer to both arguments, whose lengths must not change meanwhile.
std::vector<RestartColumn> restart_columns(ParticleRows& particles, EscaperRows& escapers);

void resize(ParticleRows& rows, std::size_t n);
void resize(EscaperRows& rows, std::size_t n);

}  // namespace maki
