// What both ends of the mesh codec (mesh_codec.hpp) do alike: predict half a row after another, and tell from what was
// left of the cells around what is to be expected.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "wan/sites/mesh_codec.hpp"
#include "wan/sites/mesh_surroundings.hpp"
#include "wan/sites/residual_code.hpp"

namespace maki::sites {

class MeshCoder {
 protected:
  // What stands before the lanes; after it come the weights and means.
  struct Head {
    std::uint8_t shift = 0;  // cells of predictions are counts over 2^(shed_bits + shift)
    std::uint8_t kept = 0;   // of what was expected 2^-kept is remembered; 0: nothing
    std::uint16_t unused = 0;
    std::array<std::uint32_t, kLanes> bytes{};
  };
  // Of the half rows of one mesh and parity, in planes that follow one with masses or in those that do not.
  struct Model {
    Weights weights{};
    float mean = 1;  // of what is left, were up() 0; the lower 16 bits are 0
  };

  // The planes of the two meshes that are kept.
  MeshCoder(const MeshBlock& block, const std::array<int, 2>& kept);

  static std::size_t counted(int n) { return static_cast<std::size_t>(n); }
  Plane kind(int mesh, int x) const { return b_.kind[counted(mesh)][counted(x)]; }
  bool begins(int mesh, int x) const { return x == 0 || kind(mesh, x - 1) == Plane::kEmpty; }
  int unit_bits(int mesh, int x) const { return kind(mesh, x) == Plane::kRounded ? b_.dropped_bits : b_.shed_bits; }
  // What is coded of a plane is its counts over 2^unit_bits; the lowest low() bits go as they are, and the rest times
  // 2^up() are cells of predictions.
  int low(int mesh, int x) const { return std::max(0, b_.shed_bits + head_.shift - unit_bits(mesh, x)); }
  int up(int mesh, int x) const { return std::max(0, unit_bits(mesh, x) - b_.shed_bits - head_.shift); }
  NearCells& near(int mesh) { return near_[counted(mesh)]; }
  // The most that half a row takes of one lane. After the last lane there is as much again, so that half a row is read
  // without looking.
  std::size_t most_bytes() const;

  bool used(int mesh, bool first) const;
  // Those that are sent, in order: f(mesh, first, odd, model).
  template <class F>
  void each_model(const F& f) {
    for (int mesh = 0; mesh < b_.meshes; ++mesh)
      for (int first = 0; first < 2; ++first)
        for (int odd = 0; odd < 2; ++odd)
          if (used(mesh, first)) f(mesh, first, odd, models_[counted(mesh)][counted(first)][counted(odd)]);
  }
  // Planes of the shifted mesh follow one behind.
  template <class F>
  void each_plane(const F& f) {
    for (int x = 0; x < b_.planes + b_.meshes - 1; ++x) {
      if (x < b_.planes) f(0, x);
      if (b_.meshes > 1 && x > 0) f(1, x - 1);
    }
  }

  // What is predicted for half a row, what is expected to be left, and the codes for it.
  void look(int mesh, int x, int y, int odd);
  // When left_ is known.
  void keep(int mesh, int x, int y, int odd);
  const Features& features(int mesh, int x, int y, int odd) { return around_[counted(mesh)].of(x, y, odd); }

  const MeshBlock& b_;
  int half_;
  Head head_;
  std::array<std::array<std::array<Model, 2>, 2>, 2> models_;  // by mesh, by whether a plane begins, by parity
  std::vector<std::int32_t> predicted_;
  std::vector<std::uint32_t> codes_, left_;

 private:
  using Memory = HalfRows<float>;
  const Model& model(int mesh, int x, int odd) const { return models_[counted(mesh)][begins(mesh, x)][counted(odd)]; }
  float mean(int mesh, int x, int odd) const;

  std::vector<NearCells> near_;
  std::vector<Memory> memory_;
  std::vector<Surroundings> around_;
  std::vector<float> expected_, ratio_, ones_;
};

}  // namespace maki::sites
