// A ring over paths of wan/net: one path between each two neighbours.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "wan/net/path.hpp"
#include "wan/sites/link_start.hpp"
#include "wan/sites/ring.hpp"
#include "wan/sites/ring_plan.hpp"

namespace maki::sites {

using SharedMessage = std::shared_ptr<Message>;

// Messages travel in pieces, which intermediate sites pass on as they arrive. Phases do not wait for one another; their
// priorities on each link are, from high to low: control, sums, particles, trees, mesh, output.
// Traffic counts what this site puts on its links: a published message counts once for each of its links.
class NetRing : public Ring {
 public:
  // Connects to the neighbours, in whatever order the sites start, printing a line every ten seconds while one is
  // missing, and exchanges the hellos of all sites. Throws Error at all sites, naming the difference, where a site must
  // not take part (version, agreement, order of the ring, key); after `wait_limit`; and where a port is unavailable.
  // Afterwards a further job of a neighbour that is there is turned away, with a line in wan::log().
  explicit NetRing(const RingPlan& plan);
  // Destruction without close() looks like the loss of this site to the others.
  ~NetRing() override;

  int count() const override { return routes_.count; }
  int me() const override { return routes_.me; }
  void send(int to, Phase phase, std::uint64_t number, Message message) override;
  void publish(Phase phase, std::uint64_t number, Message message) override;
  Message receive(int from, Phase phase, std::uint64_t number) override;
  void leave_when(std::function<bool()> asked) override { asked_to_leave_ = std::move(asked); }
  std::size_t memory_limit() const override { return memory_limit_; }
  std::array<Traffic, kPhases> take_traffic() override;
  // Also waits until all other sites close.
  void close() override;

  // The hellos of all sites in the order of the ring, as exchanged at the start.
  const std::vector<Hello>& hellos() const { return hellos_; }
  // The path to a neighbour (for tests and reports); in a ring of two sites it is the left and the right one.
  wan::Path& path_to(int neighbour);

 private:
  // The link to a neighbour, with the messages sent to it.
  struct Link {
    int site = 0;
    std::string key;  // StartedLink::key
    wan::Path path;
    wan::Request notice;
    std::thread notice_thread, release_thread;
    int readers = 0;  // threads that still read from the path: lanes, and the one of the notice
    // Messages that the path reads from until they are acknowledged.
    std::deque<std::pair<wan::Request, SharedMessage>> unacknowledged;
    bool awaiting_oldest = false;  // the release thread waits for the oldest of them
  };
  // The messages of one phase from one site: received here, and passed on.
  struct Lane {
    int origin = 0;
    Phase phase = Phase::kControl;
    Link* from = nullptr;
    Link* onward = nullptr;  // link on which messages are passed on; null: none are
    std::thread thread;
    bool ended = false;
    std::deque<std::pair<std::uint64_t, SharedMessage>> arrived;
  };

  void connect_neighbours(const RingPlan& plan);
  void start_threads();
  void exchange_hellos(const RingPlan& plan, double limit);
  void stop(double seconds);
  void run_visits();

  // net_ring_lanes.cpp: messages in transit, and the loss of a site.
  // On one link, up to the site header.last; on all links, to all sites. Both fill in the sizes in the header.
  void post(Link& link, Phase phase, Header header, const SharedMessage& message);
  void post_to_all(Phase phase, Header header, const SharedMessage& message);
  void post_bytes(Link& link, wan::Tag tag, std::span<const std::byte> bytes, const SharedMessage& owner);
  void run_releases(Link& link);
  void run_lane(Lane& lane);
  bool receive_message(Lane& lane, std::span<std::byte> room);  // false: it was the last message of the lane
  void receive_pieces(Lane& lane, const Header& header, Link* onward, const SharedMessage& message);
  SharedMessage allocate(std::size_t bytes);
  void fail_lane(Lane& lane, const std::exception& error);
  void count_sent(Phase phase, std::size_t links, const Message& message);
  void count_passed_on(Phase phase, std::size_t bytes);

  // On the first failure wakes all waiting threads with `error`, and notifies the neighbours except `informed`.
  template <class Failure>
  void fail(const Failure& error, const Link* informed = nullptr);
  void fail_by_loss(int site, const std::string& seen, const Link* informed = nullptr);
  void report_loss(const Link& link, const wan::PathError& error);
  void await_notice(Link& link);
  void end_reader(Link& link);
  void throw_if_failed() const;  // under the lock
  // What a call waits for: "trees" of a site.
  struct Awaited {
    std::string what;
    int site;
  };
  // Waits under the lock until over(), and returns the seconds. Meanwhile tells what is waited for, and leaves where
  // this site is asked to (leave_when()). `usual`: the longest earlier wait of this kind.
  double wait_until(std::unique_lock<std::mutex>& lock, const std::function<bool()>& over,
                    const std::function<Awaited()>& awaited, double usual = 0);
  bool has_ended(const Link& link) const;  // all that came by it: a neighbour that has closed is not lost
  void leave_if_asked(const Awaited& awaited, double waited, double usual);
  std::string waiting_for(const Awaited& awaited, double waited) const;

  Link& right() { return links_.front(); }
  Link& left() { return links_.back(); }  // the same where there are two sites
  Lane& lane(int origin, Phase phase) {
    return *lanes_[static_cast<std::size_t>(origin) * kPhases + static_cast<std::size_t>(phase)];
  }
  const std::string& name(int site) const { return names_[static_cast<std::size_t>(site)]; }

  const Routes routes_;
  std::vector<Hello> hellos_;
  std::vector<std::string> names_;
  const std::size_t memory_limit_;
  const double wait_lines_;                  // RingPlan::wait_lines
  std::atomic<std::size_t> held_bytes_ = 0;  // bytes of received messages that are still in use
  wan::Context context_;
  std::unique_ptr<wan::Listener> listener_;
  std::deque<Link> links_;
  std::function<bool()> asked_to_leave_;
  std::vector<std::unique_ptr<Lane>> lanes_;  // by origin and phase; null: this site's own
  std::thread visits_thread_;

  mutable std::mutex mutex_;  // guards the members below, the queues of lanes and links, and Link::readers
  std::condition_variable changed_;
  std::exception_ptr failed_;
  bool closed_ = false, stopping_ = false;
  std::array<Traffic, kPhases> traffic_;
  std::array<double, kPhases> longest_wait_{};  // seconds that receive() has waited for a message that came
};

}  // namespace maki::sites
