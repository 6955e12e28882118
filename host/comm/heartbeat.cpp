#include "host/comm/mpi_ranks.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <mpi.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <random>
#include <system_error>
#include <thread>

namespace maki::mpi {
namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

constexpr int kAddresses = 6;    // of one machine
constexpr Seconds kBeat{1};      // between datagrams
constexpr int kSure = 2;         // beats after which all have reported that they wait
constexpr double kHandOver = 3;  // s for this rank's own call to end the job
constexpr double kShortest = 5;  // s: silence of a busy machine

// The addresses of a rank; only rank 0's are used.
struct Place {
  std::array<std::uint32_t, kAddresses> addresses{};  // IPv4, in network order; 0: none
  std::uint16_t port = 0;                             // 0: none
  std::array<char, 64> machine{};
};

struct Datagram {
  std::uint64_t secret = 0;
  std::int32_t from = 0, waiting = 0;
};

struct Peer {
  bool heard = false, waiting = false;
  double silent = 0;  // s
};

// Never destroyed: the thread runs until the process ends.
struct Watch {
  int rank = 0, size = 1, socket = -1;
  double timeout = 120, silence = 10;  // s
  std::uint64_t secret = 0;
  std::vector<Place> places;
  sockaddr_in answered_from{};  // rank 0's address, once it has answered
  std::mutex mutex;             // guards the members below
  std::vector<Peer> peers;      // on rank 0 all, on others rank 0
  std::vector<int> lost;
  std::atomic<bool> waiting{false}, ending{false}, all_wait{false};
};
Watch* watch = nullptr;

sockaddr_in address(std::uint32_t ip, std::uint16_t port) {
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_addr.s_addr = ip;
  to.sin_port = port;
  return to;
}

// This process's socket and all its addresses, first the loopback one. On another machine, whatever answers at that
// address has another secret, or is not rank 0.
Place open_socket(int& socket) {
  Place place;
  gethostname(place.machine.data(), place.machine.size() - 1);
  socket = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (socket < 0) return place;
  sockaddr_in mine = address(htonl(INADDR_ANY), 0);
  socklen_t length = sizeof mine;
  if (bind(socket, reinterpret_cast<sockaddr*>(&mine), sizeof mine) != 0 ||
      getsockname(socket, reinterpret_cast<sockaddr*>(&mine), &length) != 0) {
    return place;
  }
  place.port = mine.sin_port;
  int count = 0;
  place.addresses[count++] = htonl(INADDR_LOOPBACK);
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return place;
  for (const ifaddrs* one = all; one != nullptr && count < kAddresses; one = one->ifa_next) {
    if (!one->ifa_addr || one->ifa_addr->sa_family != AF_INET) continue;
    if (!(one->ifa_flags & IFF_UP) || (one->ifa_flags & IFF_LOOPBACK)) continue;
    place.addresses[count++] = reinterpret_cast<const sockaddr_in*>(one->ifa_addr)->sin_addr.s_addr;
  }
  freeifaddrs(all);
  return place;
}

void send(const sockaddr_in& to) {
  const Datagram datagram{watch->secret, watch->rank, watch->waiting};
  // A datagram that cannot be sent counts as lost.
  (void)!sendto(watch->socket, &datagram, sizeof datagram, MSG_DONTWAIT, reinterpret_cast<const sockaddr*>(&to),
                sizeof to);
}

void send_to_first() {
  if (watch->peers[0].heard) return send(watch->answered_from);
  for (const std::uint32_t ip : watch->places[0].addresses)
    if (ip != 0) send(address(ip, watch->places[0].port));
}

// Whether there was a datagram.
bool receive() {
  Datagram datagram;
  sockaddr_in from{};
  socklen_t length = sizeof from;
  const auto bytes =
      recvfrom(watch->socket, &datagram, sizeof datagram, MSG_DONTWAIT, reinterpret_cast<sockaddr*>(&from), &length);
  if (bytes < 0) return false;
  if (bytes != sizeof datagram || datagram.secret != watch->secret) return true;
  if (datagram.from < 0 || datagram.from >= watch->size || (watch->rank == 0) == (datagram.from == 0)) return true;
  if (watch->rank == 0) send(from);
  const std::lock_guard lock(watch->mutex);
  watch->answered_from = from;
  watch->peers[datagram.from] = {true, datagram.waiting != 0, 0};
  return true;
}

// Called once a beat, `passed` seconds after the last.
void look_after(double passed) {
  const std::lock_guard lock(watch->mutex);
  for (int r = 0; r < watch->size; ++r) {
    Peer& peer = watch->peers[r];
    if (peer.heard) peer.silent += passed;
    if (peer.silent >= watch->silence && std::count(watch->lost.begin(), watch->lost.end(), r) == 0)
      watch->lost.push_back(r);
  }
}

// On rank 0, once a beat: whether all ranks wait for each other; prints a line where some wait for ranks at work.
// `beats`: for which some have waited; `next_line`: seconds to the next line.
void look_who_waits(int& beats, double passed, double& next_line) {
  std::vector<int> at_work;
  int waiting = watch->waiting;
  if (!waiting) at_work.push_back(0);
  for (int r = 1; r < watch->size; ++r) {
    const Peer& peer = watch->peers[r];
    if (peer.waiting) ++waiting;
    if (peer.heard && !peer.waiting) at_work.push_back(r);
  }
  beats = waiting > 0 ? beats + 1 : 0;
  next_line = waiting > 0 ? next_line - passed : watch->timeout / 2;
  watch->all_wait = beats > kSure && at_work.empty();
  if (beats <= kSure || at_work.empty() || next_line > 0) return;
  std::fprintf(stderr, "maki: waiting for %s for %.0f s or more: at work, or waiting for less than %.0f s\n",
               name_ranks(at_work).c_str(), watch->timeout, watch->timeout / 2);
  next_line = watch->timeout;
}

// Ends the process for a main thread that does not do so.
[[noreturn]] void end_process() {
  const std::vector<int> lost = lost_ranks();
  std::fprintf(stderr,
               "maki: error: rank %d: %s %s not heard from for %.0f s: see what became of the process, its node "
               "or its network\n",
               watch->rank, name_ranks(lost).c_str(), lost.size() == 1 ? "is" : "are", watch->silence);
  std::fflush(stderr);
  std::_Exit(1);  // the launcher then ends the other ranks
}

void run() {
  // Spreads the datagrams of all ranks over a beat.
  auto looked = Clock::now() - std::chrono::duration_cast<Clock::duration>(kBeat * (watch->rank % 16) / 16);
  const double patience = kHandOver + 2 * std::min(watch->rank, 5);  // so that one rank speaks first
  double lost_for = 0, next_line = 0;
  if (watch->rank != 0) send_to_first();
  for (int beats = 0;;) {
    for (auto now = Clock::now(); now < looked + kBeat; now = Clock::now()) {
      pollfd ready{watch->socket, POLLIN, 0};
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(looked + kBeat - now);
      if (poll(&ready, 1, static_cast<int>(left.count())) > 0) receive();
    }
    // What has come while this thread did not run is no silence.
    for (int datagrams = 0; datagrams < 4 * watch->size && receive(); ++datagrams) {
    }
    const auto now = Clock::now();
    // A longer time is no silence of others: this process itself was stopped, or its whole job suspended.
    const double passed = std::min<Seconds>(now - looked, 2 * kBeat).count();
    looked = now;
    look_after(passed);
    watch->rank == 0 ? look_who_waits(beats, passed, next_line) : send_to_first();
    lost_for = watch->lost.empty() || watch->ending ? 0 : lost_for + passed;
    if (lost_for > patience) end_process();
  }
}

}  // namespace

void open_heartbeat(double timeout) {
  auto* const mine = new Watch;
  check(MPI_Comm_rank(MPI_COMM_WORLD, &mine->rank), "MPI_Comm_rank");
  check(MPI_Comm_size(MPI_COMM_WORLD, &mine->size), "MPI_Comm_size");
  mine->timeout = timeout;
  mine->silence = std::max(timeout / 12, kShortest);
  mine->secret = (std::uint64_t{std::random_device{}()} << 32) | std::random_device{}();
  check(MPI_Bcast(&mine->secret, sizeof mine->secret, MPI_BYTE, 0, MPI_COMM_WORLD), "MPI_Bcast");
  const Place place = open_socket(mine->socket);
  mine->places.resize(mine->size);
  check(MPI_Allgather(&place, sizeof place, MPI_BYTE, mine->places.data(), sizeof place, MPI_BYTE, MPI_COMM_WORLD),
        "MPI_Allgather");
  mine->peers.resize(mine->size);
  watch = mine;
  if (mine->size == 1 || place.port == 0 || mine->places[0].port == 0) return;
  // Signals are left to the main thread.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    std::thread(run).detach();
  } catch (const std::system_error&) {  // out of threads: this rank stays silent
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  // Silence counts from here on; where no datagram arrives, the job starts all the same.
  for (const auto end = Clock::now() + kBeat; !in_touch() && Clock::now() < end;) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

void say_waiting(bool waiting) { watch->waiting = waiting; }
void say_ending() { watch->ending = true; }
bool all_wait() { return watch->all_wait; }

std::vector<int> lost_ranks() {
  const std::lock_guard lock(watch->mutex);
  return watch->lost;
}

bool in_touch() {
  const std::lock_guard lock(watch->mutex);
  if (watch->rank != 0) return watch->peers[0].heard;
  return std::all_of(watch->peers.begin() + 1, watch->peers.end(), [](const Peer& peer) { return peer.heard; });
}

std::string name_ranks(const std::vector<int>& ranks) {
  constexpr std::size_t kNamed = 12;
  const auto machine = [](int r) { return std::string(watch->places[r].machine.data()); };
  bool several = false;
  for (int r = 0; r < watch->size; ++r) several |= machine(r) != machine(0);
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  const std::size_t named = std::min(ranks.size(), kNamed);
  for (std::size_t i = 0; i < named; ++i) {
    if (i > 0) text += i + 1 == ranks.size() ? " and " : ", ";
    text += std::to_string(ranks[i]) + (several ? " (" + machine(ranks[i]) + ")" : "");
  }
  if (ranks.size() > named) text += " and " + std::to_string(ranks.size() - named) + " more";
  return text;
}

}  // namespace maki::mpi
