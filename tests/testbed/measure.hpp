// `wan_testbed measure`: a path between two sites of the testbed that it runs in, direct or through a relay, and what
// it carries how fast.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "wan/net/path.hpp"
#include "wan/net/socket/tcp.hpp"

namespace maki::testbed {

int measure(int argc, char** argv);

// One order to the process at site 1, which answers each with one Reply (kReceive and kPlain: with two, the first when
// it is ready). They go over a Unix socket, so that the link carries nothing but what is measured.
struct Order {
  enum What : std::uint32_t { kReceive, kBoth, kEcho, kPlain, kUsage, kEnd } what;
  std::uint32_t number;  // of the message: stamped into it
  std::uint64_t bytes;
  double start;  // kBoth: when
};
struct Reply {
  double time;  // when the last byte was there (CLOCK_MONOTONIC); kUsage: CPU seconds so far
  std::uint64_t intact;
};

double now();          // CLOCK_MONOTONIC, seconds
double cpu_seconds();  // of this process
void wait_until(double time);

// Bytes that differ from message to message, so that a receiver can tell what it got.
class Payload {
 public:
  explicit Payload(std::size_t bytes);
  // The first `bytes`, as message `number`.
  std::span<const std::byte> message(std::uint32_t number, std::size_t bytes);

 private:
  std::vector<std::byte> bytes_;
};

// A Unix socket pair's end: orders one way, replies the other.
class Wire {
 public:
  explicit Wire(int descriptor) : descriptor_(descriptor) {}
  template <class T>
  void put(const T& what) const {
    put(&what, sizeof what);
  }
  template <class T>
  T get() const {
    T what;
    get(&what, sizeof what);
    return what;
  }

 private:
  void put(const void* data, std::size_t bytes) const;
  void get(void* data, std::size_t bytes) const;  // throws wan::Error where the other side has gone
  int descriptor_;
};

// A process of its own for another site, at the other end of a wire.
class SiteProcess {
 public:
  // Forks: before there are threads. What `work` throws is printed as an error at `where`. Throws wan::Error.
  SiteProcess(const std::string& where, const std::function<void(const Wire&)>& work);
  Wire wire() const { return Wire(own_.descriptor()); }
  int wait() const;  // until it ends; its exit status

 private:
  wan::Socket own_;
  pid_t child_ = -1;
};

// A relay at a site of the testbed, for measurements through it.
class RelaySite {
 public:
  // As a SiteProcess. The relay listens at `address` in the namespace `space`.
  RelaySite(const std::string& space, const std::string& address, const std::string& key_file,
            const std::string& congestion);
  ~RelaySite();
  RelaySite(const RelaySite&) = delete;
  std::uint16_t port() const { return port_; }
  double cpu_seconds() const;  // of the relay so far

 private:
  SiteProcess process_;
  std::uint16_t port_ = 0;
};

// What both sides have to know.
struct MeasureSetup {
  std::string space[2], address;  // namespaces of the two sites, where the second one listens
  wan::RelayRoute relay;          // on the way; not used() where there is none
  wan::Security security;
  wan::PathSettings settings;
  std::size_t largest = 0;  // bytes of a message
  bool with_path = true;    // plain streams alone need none
};

// The link as the testbed says.
struct MeasuredLink {
  double rate = 0, rtt = 0, queue = 0, loss = 0;  // bits/s, s, bytes
};

// What is asked for on the command line.
struct MeasureOptions {
  wan::PathSettings settings;
  double pacing = 0;  // of the line
  bool insecure = false, six = false;
  int to = 1, relay = -1;  // sites
  std::vector<std::string> cases = {"first", "warm", "silent", "large", "both", "echo", "plain"};
  int repeat = 7, repeat_silent = 5, repeat_large = 3, repeat_plain = 3, repeat_echo = 11;
  double silence = 3;
  std::string message = "64MB", large = "512MB", plain = "64MB", json;
  bool wants(const std::string& name) const { return std::find(cases.begin(), cases.end(), name) != cases.end(); }
};

// Site 0, in this process and namespace: the whole measurement, its table and its file.
// `relay`: the one on the way, null where there is none.
void run_measurement(const MeasureOptions& options, const MeasureSetup& setup, const MeasuredLink& link,
                     const Wire& wire, const RelaySite* relay);

// Site 1, in a process of its own: enters its namespace, tells its port, and does what it is told until kEnd.
void respond(const MeasureSetup& setup, const Wire& wire);

}  // namespace maki::testbed
