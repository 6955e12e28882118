#include "tests/testbed/link.hpp"

#include <algorithm>

#include "tests/testbed/direction.hpp"
#include "tests/testbed/namespaces.hpp"
#include "tests/testbed/tun.hpp"
#include "wan/net/socket/tcp.hpp"

namespace maki::testbed {
namespace {

int open_end(const LinkEnd& own, const LinkEnd& other, const LinkSettings& settings) {
  const InsideNamespace inside(own.space);
  TunSettings tun;
  tun.device = own.device;
  tun.address = own.address;
  tun.peer_address = other.address;
  tun.address6 = own.address6;
  tun.peer_address6 = other.address6;
  tun.mtu = settings.mtu;
  tun.gso = settings.gso;
  return open_tun(tun);
}

}  // namespace

double LinkSettings::default_queue() const { return std::max(2e6, rate / 8 * delay); }

class EmulatedLink::Core {
 public:
  Core(const LinkEnd& a, const LinkEnd& b, const LinkSettings& settings)
      : a_(open_end(a, b, settings)), b_(open_end(b, a, settings)),
        forth_(a_.descriptor(), b_.descriptor(), settings, 2 * settings.seed),
        back_(b_.descriptor(), a_.descriptor(), settings, 2 * settings.seed + 1) {}

  wan::Socket a_, b_;
  Direction forth_, back_;
};

EmulatedLink::EmulatedLink(const LinkEnd& a, const LinkEnd& b, const LinkSettings& settings)
    : core_(std::make_unique<Core>(a, b, settings)) {}
EmulatedLink::~EmulatedLink() = default;
EmulatedLink::EmulatedLink(EmulatedLink&&) noexcept = default;

void EmulatedLink::cut() {
  core_->forth_.set_cut(true);
  core_->back_.set_cut(true);
}

void EmulatedLink::restore() {
  core_->forth_.set_cut(false);
  core_->back_.set_cut(false);
}

void EmulatedLink::set_loss(double probability) {
  core_->forth_.set_loss(probability);
  core_->back_.set_loss(probability);
}

bool EmulatedLink::is_cut() const { return core_->forth_.is_cut(); }
LinkCounters EmulatedLink::forth() const { return core_->forth_.counters(); }
LinkCounters EmulatedLink::back() const { return core_->back_.counters(); }

}  // namespace maki::testbed
