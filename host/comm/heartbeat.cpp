#include "host/comm/heartbeat.hpp"

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
#include <cstring>
#include <mutex>
#include <random>
#include <system_error>
#include <thread>

#include "host/comm/mpi_ranks.hpp"
#include "host/comm/survivor_check.hpp"

namespace maki::mpi {
namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

constexpr int kWatched = 2;        // of the ranks after this one, round about
constexpr int kAddresses = 6;      // of one machine
constexpr Seconds kBeat{1};        // between questions
constexpr int kIntroductions = 3;  // how often the others are asked until they answer,
constexpr int kAtOnce = 64;        // so many of them in a beat
constexpr Seconds kHandOver{3};    // for this rank's own call to end the job; twice as long for the second watcher
constexpr double kShortest = 5;    // s: silence of a busy machine

// Where a rank can be reached.
struct Place {
  std::array<std::uint32_t, kAddresses> addresses{};  // IPv4, in network order; 0: none
  std::uint16_t port = 0;                             // 0: nowhere
  std::array<char, 64> machine{};
};

struct Datagram {
  std::uint64_t secret = 0;
  std::int32_t from = 0;
  std::uint8_t answers = 0, waiting = 0;
  std::array<std::uint8_t, 2> unused{};
};

struct Peer {
  Place place;
  sockaddr_in heard_at{};  // where its answers come from, once there are any
  Heartbeat sign;
  unsigned long counted = 0;  // answers at the last beat
  double silent = 0;          // s, of a watched rank
};

// Never destroyed: the thread goes on until the process ends.
struct Watch {
  int rank = 0, size = 1, socket = -1;
  double silence = 10;  // s
  std::uint64_t secret = 0;
  std::mutex mutex;  // of what follows
  std::vector<Peer> peers;
  std::vector<int> lost;
  std::atomic<bool> any_lost{false}, waiting{false}, ending{false};
};
Watch* watch = nullptr;

sockaddr_in address(std::uint32_t ip, std::uint16_t port) {
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_addr.s_addr = ip;
  to.sin_port = port;
  return to;
}

// This process's own socket and all the ways to it: first the one inside its machine. What answers there on another
// machine is of the same job, with the same secret, only if it is the rank that it says.
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

void send(const sockaddr_in& to, bool answers) {
  Datagram datagram;
  datagram.secret = watch->secret;
  datagram.from = watch->rank;
  datagram.answers = answers;
  datagram.waiting = watch->waiting;
  // A datagram that does not leave is as good as one that is lost.
  (void)!sendto(watch->socket, &datagram, sizeof datagram, MSG_DONTWAIT, reinterpret_cast<const sockaddr*>(&to),
                sizeof to);
}

void ask(const Peer& peer) {
  if (peer.sign.answers > 0) return send(peer.heard_at, false);
  for (const std::uint32_t ip : peer.place.addresses) {
    if (ip != 0 && peer.place.port != 0) send(address(ip, peer.place.port), false);
  }
}

void take(const Datagram& datagram, const sockaddr_in& from) {
  if (datagram.secret != watch->secret || datagram.from < 0 || datagram.from >= watch->size) return;
  if (!datagram.answers) return send(from, true);
  const std::lock_guard lock(watch->mutex);
  Peer& peer = watch->peers[datagram.from];
  peer.heard_at = from;
  peer.sign.waiting = datagram.waiting;
  ++peer.sign.answers;
}

// Once a beat; `passed` seconds after the last.
void look_after(int beat, double passed) {
  const int turns = watch->size / kAtOnce + 1;
  const std::lock_guard lock(watch->mutex);
  for (int i = 1; i < watch->size; ++i) {
    const int r = (watch->rank + i) % watch->size;
    Peer& peer = watch->peers[r];
    if (i > kWatched) {
      const bool its_turn = beat < kIntroductions * turns && i / kAtOnce == beat % turns;
      if (its_turn && peer.sign.answers == 0) ask(peer);
      continue;
    }
    peer.silent = peer.sign.answers == peer.counted && peer.sign.answers > 0 ? peer.silent + passed : 0;
    peer.counted = peer.sign.answers;
    if (peer.silent >= watch->silence && std::count(watch->lost.begin(), watch->lost.end(), r) == 0) {
      watch->lost.push_back(r);
      watch->any_lost = true;
    }
    ask(peer);
  }
}

bool watched_have_answered() {
  const std::lock_guard lock(watch->mutex);
  for (int i = 1; i <= kWatched; ++i) {
    const int r = (watch->rank + i) % watch->size;
    if (r != watch->rank && watch->peers[r].sign.answers == 0) return false;
  }
  return true;
}

int distance_to_lost() {
  const std::lock_guard lock(watch->mutex);
  return watch->lost.empty() ? kWatched : (watch->lost.front() - watch->rank + watch->size) % watch->size;
}

// In place of a main thread that does not come to it.
[[noreturn]] void end_process() {
  const std::vector<int> lost = lost_ranks();
  std::fprintf(stderr,
               "maki: error: rank %d: %s %s not heard from for %.0f s: see what became of the process, its node "
               "or its network\n",
               watch->rank, name_with_machines(lost).c_str(), lost.size() == 1 ? "is" : "are", watch->silence);
  std::fflush(stderr);
  std::_Exit(1);  // the launcher ends the other ranks
}

void run() {
  auto looked = Clock::now();
  double lost_for = 0;
  look_after(0, 0);
  for (int beat = 1;; ++beat) {
    for (auto now = looked; now < looked + kBeat; now = Clock::now()) {
      pollfd ready{watch->socket, POLLIN, 0};
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(looked + kBeat - now);
      if (poll(&ready, 1, static_cast<int>(left.count())) <= 0) continue;
      Datagram datagram;
      sockaddr_in from{};
      socklen_t length = sizeof from;
      const auto bytes = recvfrom(watch->socket, &datagram, sizeof datagram, MSG_DONTWAIT,
                                  reinterpret_cast<sockaddr*>(&from), &length);
      if (bytes == sizeof datagram) take(datagram, from);
    }
    const auto now = Clock::now();
    // A longer time was no silence of others: this process was itself stopped, or its whole job suspended.
    const double passed = std::min<Seconds>(now - looked, 2 * kBeat).count();
    looked = now;
    look_after(beat, passed);
    lost_for = watch->any_lost && !watch->ending ? lost_for + passed : 0;
    if (lost_for > kHandOver.count() * distance_to_lost()) end_process();
  }
}

}  // namespace

void open_heartbeat(double timeout) {
  auto* const mine = new Watch;
  check(MPI_Comm_rank(MPI_COMM_WORLD, &mine->rank), "MPI_Comm_rank");
  check(MPI_Comm_size(MPI_COMM_WORLD, &mine->size), "MPI_Comm_size");
  mine->silence = std::max(timeout / 12, kShortest);
  mine->secret = (std::uint64_t{std::random_device{}()} << 32) | std::random_device{}();
  check(MPI_Bcast(&mine->secret, sizeof mine->secret, MPI_BYTE, 0, MPI_COMM_WORLD), "MPI_Bcast");
  const Place place = open_socket(mine->socket);
  std::vector<Place> places(mine->size);
  check(MPI_Allgather(&place, sizeof place, MPI_BYTE, places.data(), sizeof place, MPI_BYTE, MPI_COMM_WORLD),
        "MPI_Allgather");
  mine->peers.resize(mine->size);
  for (int r = 0; r < mine->size; ++r) mine->peers[r].place = places[r];
  watch = mine;
  if (mine->size == 1 || place.port == 0) return;
  // Signals are the main thread's.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    std::thread(run).detach();
  } catch (const std::system_error&) {  // no more threads: then this rank stays silent
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  // From here on silence tells; where nothing comes through, the job starts all the same.
  for (const auto end = Clock::now() + kBeat; !watched_have_answered() && Clock::now() < end;) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

void say_waiting(bool waiting) { watch->waiting = waiting; }
void say_ending() { watch->ending = true; }
bool any_lost() { return watch->any_lost; }

std::vector<int> lost_ranks() {
  const std::lock_guard lock(watch->mutex);
  return watch->lost;
}

void ask_all() {
  const std::lock_guard lock(watch->mutex);
  for (int r = 0; r < watch->size; ++r) {
    if (r != watch->rank) ask(watch->peers[r]);
  }
}

std::vector<Heartbeat> heartbeats() {
  const std::lock_guard lock(watch->mutex);
  std::vector<Heartbeat> all;
  for (const Peer& peer : watch->peers) all.push_back(peer.sign);
  return all;
}

std::string name_with_machines(const std::vector<int>& ranks) {
  const auto machine = [](int r) { return std::string(watch->peers[r].place.machine.data()); };
  bool several = false;
  for (int r = 0; r < watch->size; ++r) several |= machine(r) != machine(0);
  return name_ranks(ranks, [&](int r) { return several ? " (" + machine(r) + ")" : std::string(); });
}

}  // namespace maki::mpi
