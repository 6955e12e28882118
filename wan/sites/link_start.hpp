// The links of a site to its neighbours, from nothing to exchanged hellos.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "wan/net/listener.hpp"
#include "wan/net/path.hpp"
#include "wan/sites/hello.hpp"
#include "wan/sites/link_caller.hpp"
#include "wan/sites/ring_plan.hpp"

namespace maki::sites {

struct StartedLink {
  int site = 0;
  bool calls = false;  // they call us
  bool up = false;
  std::string problem;  // why there is no hope, where there is none
  wan::Path path;
  wan::Request news;  // posted for kNewsTag
  Hello theirs;
};

class LinkStart {
 public:
  // Listens where a neighbour is to call. Throws Error for a plan that does not fit, a port that cannot be had, key
  // files that are missing. `context` lives longer than what comes of this.
  LinkStart(const RingPlan& plan, Purpose purpose, wan::Context& context);
  ~LinkStart();

  // Returns when all links are up, or as soon as one has no hope where `all_or_none`, else when each is up or has none.
  // A link that is not up when `wait_limit` (0: none) is over has no hope then.
  void run(bool all_or_none, double wait_limit);

  // Tells those who have come meanwhile and are not among links() yet why there will be no run.
  void refuse(const std::string& why);

  // The one on the right first; two sites have one.
  std::vector<StartedLink>& links() { return links_; }
  std::unique_ptr<wan::Listener> take_listener() { return std::move(listener_); }
  const Hello& ours() const { return ours_; }

 private:
  struct Candidate {
    std::size_t link;  // of links_
    wan::Path path;
    wan::Request hello;
  };

  void accept();
  void turn_away(wan::Accepted& accepted, const std::string& key);
  void look_at_candidates();
  void look_at_callers();
  void look_at_news();
  // Takes a path whose hello is there. Throws Error where it is not that site's.
  void judge(std::size_t link, wan::Path path, std::span<const std::byte> hello);
  std::string why_waiting(std::size_t link) const;
  std::string name(int site) const { return plan_.sites[static_cast<std::size_t>(site)].name; }

  const RingPlan plan_;
  const Hello ours_;
  const Message hello_;
  wan::Context& context_;
  std::unique_ptr<wan::Listener> listener_;
  std::vector<StartedLink> links_;
  std::vector<std::string> key_ids_;  // that the neighbours hold, beside links_; empty: paths know them otherwise
  std::vector<std::string> reasons_;  // of waiting, beside links_
  std::vector<Candidate> candidates_;
  std::vector<wan::Path> left_;  // of others than our neighbours, and of those that only try their links
  std::vector<std::unique_ptr<LinkCaller>> callers_;  // null where they call
};

// Why the run ends, for the site at the other end: it throws this text. Never waits or throws.
void send_news(wan::Path& path, std::uint32_t kind, const std::string& text);
std::string text_of_news(std::span<const std::byte> news);
void say(const RingPlan& plan, const std::string& line);

}  // namespace maki::sites
