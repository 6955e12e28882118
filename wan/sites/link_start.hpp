// Connects a site to its neighbours, up to the exchange of hellos.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "wan/net/listener.hpp"
#include "wan/net/path.hpp"
#include "wan/net/settings.hpp"
#include "wan/sites/ring.hpp"
#include "wan/sites/ring_plan.hpp"

namespace maki::sites {

// Calls a neighbour until it answers, and tells why it has not.
class LinkCaller {
 public:
  // Begins to call at once. All references have to outlive this.
  LinkCaller(const RingPlan& plan, int site, wan::Context& context);
  LinkCaller(const LinkCaller&) = delete;

  // As PathCaller::take(), with the site in its errors.
  std::optional<wan::Path> take();
  void retry(const std::string& reason = "");            // calls again
  const std::string& reason() const { return reason_; }  // why the neighbour has not answered yet

 private:
  const SitePlace& peer_;
  const wan::Endpoint end_;  // that is called: the neighbour's, or its relay's
  std::string reason_;
  wan::PathCaller caller_;
};

// Callers that are not admitted. Their paths stay open until they have read why; the oldest of many are closed.
class TurnedAway {
 public:
  // The caller gets this site's hello, so that it learns which site it has reached, and the reason, if any.
  void add(wan::Path path, const Message& hello, const std::string& why);
  void keep(wan::Path path);  // as it is
  void close();

 private:
  std::vector<wan::Path> paths_;
};

// The link to one neighbour.
struct StartedLink {
  int site = 0;
  bool peer_calls = false;  // the neighbour calls this site
  bool up = false;
  std::string key;      // id of the neighbour's key; empty where links have no keys
  std::string problem;  // why the link has failed; empty: it has not failed
  wan::Path path;
  wan::Request notice;  // the pending receive of kNoticeTag
  Hello theirs;
};

// Brings all links of a site up, whichever side calls.
class LinkStart {
 public:
  // Listens where a neighbour is to call. Throws Error for an inconsistent plan, a port that is not available, and
  // missing key files. `context` has to outlive this object, its links and its listener.
  LinkStart(const RingPlan& plan, Purpose purpose, wan::Context& context);

  // Returns when each link is up or has failed; with `all_or_none`, as soon as one has failed. A link that is not up
  // after `wait_limit` seconds (0: no limit) has failed.
  void run(bool all_or_none, double wait_limit);

  // Sends the reason why there will be no run to all callers that are not among links() yet.
  void refuse(const std::string& why);

  // Link to the right neighbour first; in a ring of two sites there is one link.
  std::vector<StartedLink>& links() { return links_; }
  std::unique_ptr<wan::Listener> take_listener() { return std::move(listener_); }
  const Hello& ours() const { return ours_; }

 private:
  struct Candidate {
    std::size_t link;  // of links_
    wan::Path path;
    wan::Request hello;
    wan::WallClock::time_point begun = wan::WallClock::now();
    bool undecided = false;  // its hello has come, and whether another job is there is not known yet
  };

  void accept();
  void greet(std::size_t link, wan::Path path);
  void lost(std::size_t link, const std::string& why);
  void refuse_caller(wan::Accepted& accepted, const std::string& key);
  bool stands(std::size_t link) const;  // it is up, and no caller waits that may replace it
  std::optional<bool> is_taken(const Candidate& caller) const;
  void check_candidates();
  void check_callers();
  void check_notices();
  // Takes in a path whose hello has arrived. `taken`: another job of the site is there. Throws Error where the hello is
  // not of the site at this link.
  void accept_hello(std::size_t link, wan::Path path, std::span<const std::byte> hello, bool taken);
  std::string reason_of_wait(std::size_t link) const;
  const std::string& name(int site) const { return plan_.site(site).name; }

  const RingPlan plan_;
  const Hello ours_;
  const Message hello_;
  wan::Context& context_;
  std::unique_ptr<wan::Listener> listener_;
  std::vector<StartedLink> links_;
  std::vector<std::string> reasons_;  // by link: why it is not up yet
  std::vector<Candidate> candidates_;
  TurnedAway turned_away_;
  std::vector<std::unique_ptr<LinkCaller>> callers_;  // by link; null where the neighbour calls
};

// Whether the job at the other end still answers, after a second one of its site has called: true where it was heard
// after that, false where its path is down, empty while neither is known.
std::optional<bool> answers_after(const wan::Path& path, wan::WallClock::time_point call);

// Tells the site at the other end why the run ends; that site throws an error with this text. Never waits or throws.
void send_notice(wan::Path& path, std::uint32_t kind, const std::string& text);
std::uint32_t notice_kind(std::span<const std::byte> notice);
std::string notice_text(std::span<const std::byte> notice);
// The text of a notice for a caller that is turned away, and the line for the user.
std::string turned_away_text(const std::string& here, const std::string& why);
std::string turned_away_line(const std::string& caller, const std::string& why);

}  // namespace maki::sites
