#include "kernels/particles/joined_sources.hpp"

#include "kernels/device/algorithms.hpp"
#include "kernels/device/launch.cuh"
#include "kernels/device/thrust.cuh"
#include "kernels/error.hpp"
#include "kernels/particles/particles.hpp"

namespace maki {
namespace {

struct BothSets {
  const SourceParticle* own;
  const SourceParticle* others;
  std::uint32_t own_count;
  MAKI_HD SourceParticle operator[](std::uint32_t i) const { return i < own_count ? own[i] : others[i - own_count]; }
};

// The eleven bits of each coordinate that a Morton key leaves out.
struct FineKeys {
  BothSets sets;
  std::uint64_t* keys;
  std::uint32_t* order;
  MAKI_HD void operator()(std::size_t i) const {
    const auto index = static_cast<std::uint32_t>(i);
    const SourceParticle p = sets[index];
    keys[i] = std::uint64_t{p.x & 0x7ffu} << 22 | (p.y & 0x7ffu) << 11 | (p.z & 0x7ffu);
    order[i] = index;
  }
};

struct CoarseKeys {
  BothSets sets;
  const std::uint32_t* order;
  std::uint64_t* keys;
  MAKI_HD void operator()(std::size_t i) const {
    const SourceParticle p = sets[order[i]];
    keys[i] = morton_key(p.x, p.y, p.z);
  }
};

struct AsTheyCome {
  std::uint32_t* order;
  MAKI_HD void operator()(std::size_t i) const { order[i] = static_cast<std::uint32_t>(i); }
};

struct IsTie {
  const std::uint64_t* keys;
  MAKI_HD std::uint32_t operator()(std::size_t i) const { return keys[i] == keys[i + 1] ? 1 : 0; }
};

// The range of sources [begin, end).
struct Place {
  const SourceParticle* from;
  std::uint32_t begin, end;
  const std::uint32_t* order;
  SourceParticle* sources;
  MAKI_HD void operator()(std::size_t i) const {
    if (order[i] >= begin && order[i] < end) sources[i] = from[order[i] - begin];
  }
};

struct IsOwn {
  const std::uint32_t* order;
  std::uint32_t own_count;
  std::uint32_t* flag;
  MAKI_HD void operator()(std::size_t i) const { flag[i] = order[i] < own_count ? 1 : 0; }
};

struct GiveBack {
  const std::uint32_t* order;
  std::uint32_t own_count;
  const float* joined;
  float* own;
  MAKI_HD void operator()(std::size_t i) const {
    if (order[i] < own_count) own[order[i]] = joined[i];
  }
};

}  // namespace

void JoinedSources::join(const Stream& stream, const SourceParticle* own, std::size_t own_count,
                         const SourceParticle* others, std::size_t other_count) {
  const std::size_t n = own_count + other_count;
  if (n >= UINT32_MAX)
    throw Error("a rank's particles and the ghosts around them are too many",
                std::to_string(own_count) + " and " + std::to_string(other_count) + ", indices have 32 bits",
                "start more ranks");
  own_count_ = static_cast<std::uint32_t>(own_count);
  const BothSets sets{own, others, own_count_};
  sources_.resize(n, 0.1);
  order_.resize(n, 0.1);
  keys_.resize(n);
  launch(stream, "ghosts_order", n, AsTheyCome{order_.data()});
  launch(stream, "ghosts_keys", n, CoarseKeys{sets, order_.data(), keys_.data()});
  if (other_count > 0) sort_by_key(stream, keys_, order_);
  if (n > 1 && sum_over(stream, "ghosts_ties", n - 1, IsTie{keys_.data()}) > 0)
    sort_with_fine_keys(stream, own, others);
  refresh_own(stream, own);
  refresh_others(stream, others);
}

// Equal Morton keys are rare.
void JoinedSources::sort_with_fine_keys(const Stream& stream, const SourceParticle* own, const SourceParticle* others) {
  const BothSets sets{own, others, own_count_};
  const std::size_t n = size();
  launch(stream, "ghosts_fine_keys", n, FineKeys{sets, keys_.data(), order_.data()});
  sort_by_key(stream, keys_, order_);
  launch(stream, "ghosts_keys", n, CoarseKeys{sets, order_.data(), keys_.data()});
  sort_by_key(stream, keys_, order_);
}

void JoinedSources::refresh_own(const Stream& stream, const SourceParticle* own) {
  launch(stream, "ghosts_own_places", size(), Place{own, 0, own_count_, order_.data(), sources_.data()});
}

void JoinedSources::refresh_others(const Stream& stream, const SourceParticle* others) {
  if (!has_others()) return;
  launch(stream, "ghosts_places", size(), Place{others, own_count_, UINT32_MAX, order_.data(), sources_.data()});
}

void JoinedSources::count_own(const Stream& stream, DeviceBuffer<std::uint32_t>& before) const {
  DeviceBuffer<std::uint32_t> flag("ghosts.scratch", order_.size());
  before.resize(order_.size() + 1);
  launch(stream, "ghosts_own", order_.size(), IsOwn{order_.data(), own_count_, flag.data()});
  exclusive_scan(stream, flag.data(), before.data(), order_.size());
}

void JoinedSources::own_values(const Stream& stream, const float* joined, float* own) const {
  launch(stream, "ghosts_give_back", order_.size(), GiveBack{order_.data(), own_count_, joined, own});
}

void JoinedSources::own_values(const Stream& stream, const ConstVectorView& joined, const VectorView& own) const {
  own_values(stream, joined.x, own.x);
  own_values(stream, joined.y, own.y);
  own_values(stream, joined.z, own.z);
}

}  // namespace maki
