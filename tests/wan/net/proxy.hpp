// A TCP proxy on loopback that tests put between two peers, to do to them what networks do: cut connections, go silent,
// alter bytes, lead to another machine.
#pragma once

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <functional>
#include <list>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "tests/wan/helpers.hpp"
#include "wan/net/error.hpp"
#include "wan/net/listener.hpp"
#include "wan/net/settings.hpp"
#include "wan/net/socket/tcp.hpp"

namespace maki::wan::test {

class Proxy {
 public:
  explicit Proxy(const Endpoint& target) : target_(target), wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    thread_ = std::thread([this] { run(); });
  }
  ~Proxy() {
    set(ending_, true);
    thread_.join();
  }

  Endpoint address() const { return {"127.0.0.1", local_address(listener_.descriptor()).port()}; }
  // Connections from now on.
  void lead_to(const Endpoint& target) {
    std::lock_guard lock(mutex_);
    target_ = target;
  }
  void cut() { set(cutting_, true); }                   // all that there are, with a reset
  void cut_one() { cut_one_ = 1; }                      // whichever moves bytes next, in the middle of them
  void stall(bool silent) { set(stalled_, silent); }    // nothing passes, nothing is closed, new ones wait
  void refuse(bool refuse) { set(refusing_, refuse); }  // new connections are closed at once
  // Called by the proxy's thread before anything passes, again and again: what it does to the proxy happens before
  // that. To be set while nobody is connected.
  void before_each(std::function<void()> call) { before_each_ = std::move(call); }
  // In one of the next 16 pieces that pass (were it always the first one of the next connection, nothing could ever
  // pass); call by one thread.
  void alter_one_byte() {
    if (alter_ == 0) alter_ = 1 + static_cast<int>(altered_++ * 7 % 16);
  }
  int connections() const { return connections_; }  // so far
  std::uint64_t bytes() const { return bytes_; }    // passed on, both ways

 private:
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

  static bool would_block() { return errno == EAGAIN || errno == EINTR; }
  static void reset(Link& link) {
    const linger hard{1, 0};
    for (Socket* socket : {&link.near, &link.far})
      setsockopt(socket->descriptor(), SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
  }
  void run() {
    while (!ending_) {
      wait();
      if (before_each_ && !links_.empty()) before_each_();
      if (cutting_.exchange(false)) cut_all();
      if (stalled_) continue;
      take_new();
      for (Link& link : links_) {
        move(link, link.out);
        move(link, link.in);
      }
      links_.remove_if([](Link& link) {
        if (link.broken) reset(link);
        return link.broken || (link.out.told && link.in.told);
      });
    }
    cut_all();
  }
  void cut_all() {
    for (Link& link : links_) reset(link);
    links_.clear();
  }
  void wait() {
    std::vector<pollfd> waiting{{wake_.descriptor(), POLLIN, 0}};
    const auto add = [&](const Flow& flow) {
      if (flow.first < flow.last) waiting.push_back({flow.to->descriptor(), POLLOUT, 0});
      if (flow.first == flow.last && !flow.ended) waiting.push_back({flow.from->descriptor(), POLLIN, 0});
    };
    if (!stalled_) {
      waiting.push_back({listener_.descriptor(), POLLIN, 0});
      for (const Link& link : links_) {
        add(link.out);
        add(link.in);
      }
    }
    poll(waiting.data(), waiting.size(), 1000);
    std::uint64_t count;
    [[maybe_unused]] const auto got = read(wake_.descriptor(), &count, sizeof(count));
  }
  void take_new() {
    for (;;) {
      Address peer;
      Socket socket = accept_from(listener_.descriptor(), peer);
      if (!socket.open()) return;
      ++connections_;
      if (refusing_) continue;
      try {
        std::lock_guard lock(mutex_);
        Socket far = start_connect(resolve(target_).front(), {});
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
      bytes_ += static_cast<std::uint64_t>(sent);
    }
    if (flow.ended && flow.first == flow.last && !flow.told) {
      shutdown(flow.to->descriptor(), SHUT_WR);
      flow.told = true;
    }
  }
  void harm(Link& link, Flow& flow) {
    const std::size_t half = (flow.first + flow.last) / 2;
    if (flow.last - flow.first < 1000) return;  // in the middle of something
    if (alter_ > 0 && --alter_ == 0) flow.buffer[half] ^= std::byte{0x10};
    if (cut_one_ > 0) {
      --cut_one_;
      send(flow.to->descriptor(), flow.buffer.data(), half, MSG_NOSIGNAL);
      link.broken = true;
    }
  }
  void set(std::atomic<bool>& flag, bool value) {
    flag = value;
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = write(wake_.descriptor(), &one, sizeof(one));
  }

  std::function<void()> before_each_;
  std::mutex mutex_;
  Endpoint target_;
  std::atomic<bool> stalled_{false}, refusing_{false}, ending_{false}, cutting_{false};
  std::atomic<int> cut_one_{0}, alter_{0}, connections_{0};
  unsigned altered_ = 0;
  std::atomic<std::uint64_t> bytes_{0};
  const Descriptor wake_;
  const Socket listener_ = listen_on({"127.0.0.1", 0}, {});
  std::list<Link> links_;
  std::thread thread_;
};

// A path through a proxy.
struct Linked {
  Listener listener;
  Proxy proxy;
  Path here, there;

  explicit Linked(const PathSettings& settings, const Security& security = insecure())
      : listener({"127.0.0.1", 0}, security, settings), proxy(listener.address()) {
    here = Path::connect(proxy.address(), security, settings, {"here"});
    there = std::move(listener.accept().path);
  }
  ~Linked() { close_both(here, there); }
};

}  // namespace maki::wan::test
