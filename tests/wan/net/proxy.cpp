#include "tests/wan/net/proxy.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <list>
#include <memory>
#include <vector>

#include "wan/net/error.hpp"
#include "wan/net/socket/tcp.hpp"

namespace maki::wan::test {
namespace proxy {

// One direction of a connection.
struct Flow {
  Socket* from = nullptr;
  Socket* to = nullptr;
  std::array<std::byte, 32768> buffer;
  std::size_t first = 0, last = 0;
  bool ended = false, told = false;  // no more comes; the other side knows
};

struct Link {
  Socket near, far;
  Flow out, in;
  bool broken = false;
};

}  // namespace proxy
namespace {

bool would_block() { return errno == EAGAIN || errno == EINTR; }

void reset(proxy::Link& link) {
  const linger hard{1, 0};
  for (Socket* socket : {&link.near, &link.far})
    setsockopt(socket->descriptor(), SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
}

}  // namespace

class Proxy::Pump {
 public:
  Pump(Proxy& proxy, Socket listener) : proxy_(proxy), listener_(std::move(listener)) {}

  void run() {
    while (!proxy_.ending_) {
      wait();
      if (proxy_.before_each_ && !links_.empty()) proxy_.before_each_();
      if (proxy_.cutting_.exchange(false)) cut_all();
      if (proxy_.stalled_) continue;
      take_new();
      for (proxy::Link& link : links_) {
        move(link, link.out);
        move(link, link.in);
      }
      links_.remove_if([](proxy::Link& link) {
        if (link.broken) reset(link);
        return link.broken || (link.out.told && link.in.told);
      });
    }
    cut_all();
  }

 private:
  using Flow = proxy::Flow;
  using Link = proxy::Link;

  void cut_all() {
    for (Link& link : links_) reset(link);
    links_.clear();
  }

  void wait() {
    std::vector<pollfd> waiting{{proxy_.wake_, POLLIN, 0}};
    const auto add = [&](const Flow& flow) {
      if (flow.first < flow.last) waiting.push_back({flow.to->descriptor(), POLLOUT, 0});
      if (flow.first == flow.last && !flow.ended) waiting.push_back({flow.from->descriptor(), POLLIN, 0});
    };
    if (!proxy_.stalled_) {
      waiting.push_back({listener_.descriptor(), POLLIN, 0});
      for (const Link& link : links_) {
        add(link.out);
        add(link.in);
      }
    }
    poll(waiting.data(), waiting.size(), 1000);
    std::uint64_t count;
    [[maybe_unused]] const auto got = read(proxy_.wake_, &count, sizeof(count));
  }

  void take_new() {
    for (;;) {
      Address peer;
      Socket socket = accept_from(listener_.descriptor(), peer);
      if (!socket.open()) return;
      ++proxy_.connections_;
      if (proxy_.refusing_) continue;
      try {
        std::lock_guard lock(proxy_.mutex_);
        Socket far = start_connect(resolve(proxy_.target_).front(), {});
        Link& link = links_.emplace_back();
        link.near = std::move(socket);
        link.far = std::move(far);
        link.out.from = link.in.to = &link.near;
        link.out.to = link.in.from = &link.far;
      } catch (const Error&) {
        // Nobody there: the near side sees its connection closed.
      }
    }
  }

  void move(Link& link, Flow& flow) {
    if (flow.first == flow.last && !flow.ended) {
      const auto got = recv(flow.from->descriptor(), flow.buffer.data(), flow.buffer.size(), 0);
      if (got > 0) {
        flow.first = 0;
        flow.last = static_cast<std::size_t>(got);
        harm(link, flow);
      } else if (got == 0) {
        flow.ended = true;
      } else if (!would_block()) {
        link.broken = true;
      }
    }
    while (flow.first < flow.last && !link.broken) {
      const auto sent =
          send(flow.to->descriptor(), flow.buffer.data() + flow.first, flow.last - flow.first, MSG_NOSIGNAL);
      if (sent < 0) {
        if (!would_block()) link.broken = true;
        break;
      }
      flow.first += static_cast<std::size_t>(sent);
      proxy_.bytes_ += static_cast<std::uint64_t>(sent);
    }
    if (flow.ended && flow.first == flow.last && !flow.told) {
      shutdown(flow.to->descriptor(), SHUT_WR);
      flow.told = true;
    }
  }

  void harm(Link& link, Flow& flow) {
    const std::size_t half = (flow.first + flow.last) / 2;
    if (flow.last - flow.first < 1000) return;  // in the middle of something
    if (proxy_.alter_ > 0 && --proxy_.alter_ == 0) {
      flow.buffer[half] ^= std::byte{0x10};
    }
    if (proxy_.cut_one_ > 0) {
      --proxy_.cut_one_;
      send(flow.to->descriptor(), flow.buffer.data(), half, MSG_NOSIGNAL);
      link.broken = true;
    }
  }

  Proxy& proxy_;
  Socket listener_;
  std::list<Link> links_;
};

Proxy::Proxy(const Endpoint& target) : target_(target), wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  Socket listener = listen_on({"127.0.0.1", 0}, {});
  address_ = {"127.0.0.1", local_address(listener.descriptor()).port()};
  thread_ = std::thread([pump = std::make_shared<Pump>(*this, std::move(listener))] { pump->run(); });
}

Proxy::~Proxy() {
  set(ending_, true);
  thread_.join();
  close(wake_);
}

void Proxy::set(std::atomic<bool>& flag, bool value) {
  flag = value;
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = write(wake_, &one, sizeof(one));
}

void Proxy::lead_to(const Endpoint& target) {
  std::lock_guard lock(mutex_);
  target_ = target;
}

void Proxy::cut() { set(cutting_, true); }
void Proxy::cut_one() { cut_one_ = 1; }
// Were it always the first piece of the next connection, nothing could ever pass.
void Proxy::alter_one_byte() {
  if (alter_ == 0) alter_ = 1 + static_cast<int>(altered_++ * 7 % 16);
}

}  // namespace maki::wan::test
