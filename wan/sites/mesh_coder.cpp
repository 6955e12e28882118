#include "wan/sites/mesh_coder.hpp"

#include <algorithm>
#include <cmath>

namespace maki::sites {

MeshCoder::MeshCoder(const MeshBlock& block, const std::array<int, 2>& kept) : b_(block), half_(block.length / 2) {
  for (int mesh = 0; mesh < b_.meshes; ++mesh) {
    near_.emplace_back(b_.planes, kept[counted(mesh)], b_.rows, b_.length);
    memory_.emplace_back(b_.planes, 3, b_.rows, b_.length);
  }
  for (int mesh = 0; mesh < b_.meshes; ++mesh)
    around_.emplace_back(near_[counted(mesh)], mesh == 1 ? near_.data() : nullptr);
  ones_.assign(2 * counted(memory_[0].half_step()), 1.0f);
  const std::size_t cells = counted(half_);
  predicted_.resize(cells);
  codes_.resize(cells);
  left_.resize(cells);
  expected_.resize(cells);
  ratio_.resize(cells);
}

std::size_t MeshCoder::most_bytes() const {
  return (counted(half_) / kLanes + 1) * (counted(ResidualCode::kMostBits) + head_.shift) / 8 + 9;
}

bool MeshCoder::used(int mesh, bool first) const {
  for (int x = 0; x < b_.planes; ++x)
    if (kind(mesh, x) != Plane::kEmpty && begins(mesh, x) == first) return true;
  return false;
}

float MeshCoder::mean(int mesh, int x, int odd) const { return std::ldexp(model(mesh, x, odd).mean, -up(mesh, x)); }

void MeshCoder::look(int mesh, int x, int y, int odd) {
  predict(features(mesh, x, y, odd), model(mesh, x, odd).weights.data(), std::ldexp(1.0, -kWeightBits - up(mesh, x)),
          half_, predicted_.data());
  const Memory& memory = memory_[counted(mesh)];
  const bool then = x > 0 && kind(mesh, x - 1) != Plane::kEmpty;
  const float* behind = then ? memory.row(x - 1, y, 0) : nullptr;
  const float* above = y > 0 ? memory.row(x, y - 1, 0) : behind;
  if (!above) above = ones_.data() + Memory::kPad;
  if (!behind) behind = above;
  const auto at = [&](const float* row, int by) {
    return row + ((odd + by) & 1) * memory.half_step() + ((odd + by) >> 1);
  };
  const auto around = [&](const float* row) { return LeftRows::Row{at(row, 0), at(row, -1), at(row, 1)}; };
  LeftRows rows{around(above), around(behind), {}, {}, nullptr, nullptr};
  const bool both = mesh == 1 && kind(0, x) != Plane::kEmpty;
  if (both) {
    rows.first = around(memory_[0].row(x, y, 0));
    rows.first_above = around(memory_[0].row(x, std::max(y - 1, 0), 0));
  }
  if (odd) {
    rows.low = at(memory.row(x, y, 0), -1);
    rows.high = at(memory.row(x, y, 0), 1);
  }
  expect(rows, odd, both, half_, expected_.data());
  choose_codes(expected_.data(), mean(mesh, x, odd), half_, codes_.data());
}

void MeshCoder::keep(int mesh, int x, int y, int odd) {
  Memory& memory = memory_[counted(mesh)];
  over_mean(left_.data(), 1 / mean(mesh, x, odd), half_, ratio_.data());
  remember(ratio_.data(), expected_.data(), head_.kept ? std::ldexp(1.0f, -head_.kept) : 0.0f, half_,
           memory.row(x, y, odd));
  memory.close(x, y, odd);
}

}  // namespace maki::sites
