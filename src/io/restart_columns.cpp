#include "src/io/restart_columns.hpp"

#include "kernels/device/memory.hpp"

namespace maki {

namespace {

// A column whose number k of row i is number(i, k), a reference.
template <class T, class Number>
RestartColumn column(const char* group, const char* name, std::size_t columns, std::size_t rows, Number number) {
  const auto get = [=](std::size_t first, std::size_t count, void* to) {
    T* const numbers = static_cast<T*>(to);
    for (std::size_t i = 0; i < count; ++i)
      for (std::size_t k = 0; k < columns; ++k) numbers[i * columns + k] = number(first + i, k);
  };
  const auto put = [=](std::size_t first, std::size_t count, const void* from) {
    const T* const numbers = static_cast<const T*>(from);
    for (std::size_t i = 0; i < count; ++i)
      for (std::size_t k = 0; k < columns; ++k) number(first + i, k) = numbers[i * columns + k];
  };
  return {group, name, hdf5_memory_type<T>(), hdf5_file_type<T>(), columns, sizeof(T), rows, get, put};
}

}  // namespace

std::vector<RestartColumn> restart_columns(ParticleRows& p, EscaperRows& e) {
  const auto position = [&p](std::size_t i, std::size_t k) -> std::uint32_t& {
    return k == 0 ? p.source[i].x : k == 1 ? p.source[i].y : p.source[i].z;
  };
  const auto remainder = [&p](std::size_t i, std::size_t k) -> std::uint16_t& {
    return k == 0 ? p.remainder[i].x : k == 1 ? p.remainder[i].y : p.remainder[i].z;
  };
  const auto momentum = [&p](std::size_t i, std::size_t k) -> float& { return p.momentum[k][i]; };
  const auto mass = [&p](std::size_t i, std::size_t) -> float& { return p.source[i].mass; };
  const auto id = [&p](std::size_t i, std::size_t) -> std::uint64_t& { return p.id[i]; };
  const char* const own = "Particles";
  const char* const gone = "Escapers";
  return {column<std::uint32_t>(own, "Positions", 3, p.size(), position),
          column<std::uint16_t>(own, "Remainders", 3, p.size(), remainder),
          column<float>(own, "Momenta", 3, p.size(), momentum),
          column<float>(own, "Masses", 1, p.size(), mass),
          column<std::uint64_t>(own, "ParticleIDs", 1, p.size(), id),
          column<double>(gone, "Positions", 3, e.size(),
                         [&e](std::size_t i, std::size_t k) -> double& { return e.positions[i][k]; }),
          column<float>(gone, "Velocities", 3, e.size(),
                        [&e](std::size_t i, std::size_t k) -> float& { return e.velocities[i][k]; }),
          column<float>(gone, "Masses", 1, e.size(),
                        [&e](std::size_t i, std::size_t) -> float& { return e.masses[i]; }),
          column<std::uint64_t>(gone, "ParticleIDs", 1, e.size(),
                                [&e](std::size_t i, std::size_t) -> std::uint64_t& { return e.ids[i]; }),
          column<double>(gone, "Times", 1, e.size(),
                         [&e](std::size_t i, std::size_t) -> double& { return e.times[i]; })};
}

void resize(ParticleRows& rows, std::size_t n) {
  rows.source.resize(n);
  rows.remainder.resize(n);
  for (auto& axis : rows.momentum) axis.resize(n);
  rows.id.resize(n);
}

void resize(EscaperRows& rows, std::size_t n) {
  rows.positions.resize(n);
  rows.velocities.resize(n);
  rows.masses.resize(n);
  rows.ids.resize(n);
  rows.times.resize(n);
}

void copy_to_rows(const Stream& stream, const Particles& particles, ParticleRows& rows) {
  const std::size_t n = particles.size();
  resize(rows, n);
  copy_to_host(stream, rows.source.data(), particles.source.data(), n * sizeof(SourceParticle));
  copy_to_host(stream, rows.remainder.data(), particles.remainder.data(), n * sizeof(Remainder));
  const DeviceBuffer<float>* const axes[3] = {&particles.momentum.x, &particles.momentum.y, &particles.momentum.z};
  for (std::size_t axis = 0; axis < 3; ++axis)
    copy_to_host(stream, rows.momentum[axis].data(), axes[axis]->data(), n * sizeof(float));
  copy_to_host(stream, rows.id.data(), particles.id.data(), n * sizeof(std::uint64_t));
}

void copy_from_rows(const Stream& stream, const ParticleRows& rows, Particles& particles) {
  particles.source.upload(stream, rows.source);
  particles.remainder.upload(stream, rows.remainder);
  particles.momentum.x.upload(stream, rows.momentum[0]);
  particles.momentum.y.upload(stream, rows.momentum[1]);
  particles.momentum.z.upload(stream, rows.momentum[2]);
  particles.id.upload(stream, rows.id);
  stream.synchronize();
}

}  // namespace maki
