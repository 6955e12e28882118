// Particles that know their fields by their id, for tests of what happens to them on their way.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <vector>

#include "kernels/particles/particles.hpp"
#include "tests/kernels/particles/sets.hpp"

namespace maki::test {

// Any 64 bits for an id and a purpose.
inline std::uint64_t hash(std::uint64_t id, std::uint64_t purpose) {
  std::uint64_t v = (id * 64 + purpose + 1) * 0x9e3779b97f4a7c15ull;  // splitmix64
  v = (v ^ v >> 30) * 0xbf58476d1ce4e5b9ull;
  v = (v ^ v >> 27) * 0x94d049bb133111ebull;
  return v ^ v >> 31;
}

struct Fields {
  SourceParticle source;
  Remainder remainder;
  std::array<float, 3> momentum;
  float extra[2];
};
// Uniform over the box.
inline Fields fields_of(std::uint64_t id) {
  const auto word = [id](std::uint64_t purpose) { return static_cast<std::uint32_t>(hash(id, purpose) >> 32); };
  const auto number = [&](std::uint64_t purpose) { return static_cast<float>(word(purpose) >> 8); };
  const auto half = [&](std::uint64_t purpose) { return static_cast<std::uint16_t>(word(purpose) >> 16); };
  return {{word(0), word(1), word(2), number(3)},
          {half(4), half(5), half(6)},
          {number(7), number(8), number(9)},
          {number(10), number(11)}};
}

// Particles of some ids with their fields, the last two of them in arrays of their own.
struct KnownParticles {
  Particles particles;
  std::vector<DeviceBuffer<float>> extra;

  void make(const Stream& stream, const std::vector<std::uint64_t>& ids) {
    std::vector<SourceParticle> source;
    std::vector<Remainder> remainder;
    std::vector<std::array<float, 3>> momentum;
    std::vector<float> further[2];
    for (const std::uint64_t id : ids) {
      const Fields f = fields_of(id);
      source.push_back(f.source);
      remainder.push_back(f.remainder);
      momentum.push_back(f.momentum);
      for (int a = 0; a < 2; ++a) further[a].push_back(f.extra[a]);
    }
    particles.source.upload(stream, source);
    particles.remainder.upload(stream, remainder);
    testing::upload_vectors(stream, momentum, particles.momentum);
    particles.id.upload(stream, ids);
    extra.clear();
    for (const std::vector<float>& values : further) extra.emplace_back("test.extra").upload(stream, values);
    stream.synchronize();
  }
  std::vector<DeviceBuffer<float>*> arrays() { return {&extra[0], &extra[1]}; }

  // EXPECTs that all fields are those of the ids.
  void expect_fields_of_ids(const Stream& stream) const {
    const auto source = particles.source.download(stream);
    const auto remainder = particles.remainder.download(stream);
    const auto id = particles.id.download(stream);
    const std::vector<float> further[2] = {extra[0].download(stream), extra[1].download(stream)};
    const VectorArray& p = particles.momentum;
    for (const std::size_t length :
         {remainder.size(), p.x.size(), p.y.size(), p.z.size(), id.size(), further[0].size(), further[1].size()})
      ASSERT_EQ(length, source.size());
    const auto momentum = p.download(stream);
    for (std::size_t i = 0; i < id.size(); ++i) {
      const Fields f = fields_of(id[i]);
      ASSERT_EQ(source[i], f.source) << "id " << id[i];
      ASSERT_EQ(remainder[i], f.remainder);
      ASSERT_EQ(momentum[i], f.momentum);
      for (int a = 0; a < 2; ++a) ASSERT_EQ(further[a][i], f.extra[a]);
    }
  }
};

}  // namespace maki::test
