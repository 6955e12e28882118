#include "wan/sites/link_start.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <thread>
#include <utility>

#include "wan/net/error.hpp"
#include "wan/sites/link_plan.hpp"
#include "wan/sites/ring_wire.hpp"
#include "wan/sites/translate_errors.hpp"

namespace maki::sites {
namespace {

using Clock = std::chrono::steady_clock;
constexpr double kTurn = 0.02;  // seconds between looks
constexpr double kFirstLine = 2, kLines = 10;
constexpr std::size_t kLongestNews = 12 << 10;
constexpr std::size_t kMostLeft = 8;  // paths that end by themselves

double since(Clock::time_point then) { return std::chrono::duration<double>(Clock::now() - then).count(); }

std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : "; ") + part;
  return text;
}

std::unique_ptr<wan::Listener> listen(const RingPlan& plan, wan::Context& context) {
  const SitePlace& here = plan.sites[static_cast<std::size_t>(plan.me)];
  wan::Endpoint local = here.listen.port != 0 ? here.listen : wan::Endpoint{here.listen.host, here.address.port};
  const auto open = [&] {
    const LinkPlan listening = listening_plan(plan);
    return std::make_unique<wan::Listener>(local, listening.security, listening.path, wan::ListenerLimits{}, here.relay,
                                           context);
  };
  return translate_errors(open, [&](const std::string& reason) {
    return Error("site " + here.name + " cannot be called", reason);
  });
}

// As whom a neighbour has to show itself.
std::string key_of(const RingPlan& plan, int neighbour) {
  return translate_errors([&] { return key_id(link_to(plan, neighbour)); },
                          [&](const std::string& reason) {
                            const std::string& here = plan.sites[static_cast<std::size_t>(plan.me)].name;
                            const std::string& there = plan.sites[static_cast<std::size_t>(neighbour)].name;
                            return Error("there is no link between sites " + here + " and " + there, reason);
                          });
}

// Of one neighbour, for a path that came through the listening of all. The streams are as many as the caller asks for, and
// limits those that it was told.
void settle(wan::Path& path, const LinkPlan& link) {
  wan::PathSettings settings = link.path;
  const wan::PathSettings now = path.settings();
  settings.streams = now.streams;
  settings.unmatched_limit = now.unmatched_limit;
  settings.message_limit = now.message_limit;
  path.change(settings);
}

}  // namespace

void send_news(wan::Path& path, std::uint32_t kind, const std::string& text) {
  try {
    std::vector<std::byte> news(sizeof kind + std::min(text.size(), kLongestNews));
    std::memcpy(news.data(), &kind, sizeof kind);
    std::memcpy(news.data() + sizeof kind, text.data(), news.size() - sizeof kind);
    path.start_send(kNewsTag, news);  // small: copied
  } catch (const wan::Error&) {
    // It hears of it otherwise.
  }
}

void say(const RingPlan& plan, const std::string& line) {
  if (plan.say) {
    plan.say(line);
  } else {
    std::fprintf(stderr, "maki: %s\n", line.c_str());
  }
}

LinkStart::LinkStart(const RingPlan& plan, Purpose purpose, wan::Context& context)
    : plan_(plan), ours_((check(plan), hello_of(plan, purpose))), hello_(encode(ours_)), context_(context) {
  for (const int neighbour : neighbours(plan)) {
    StartedLink& link = links_.emplace_back();
    link.site = neighbour;
    link.calls = calls_us(plan, neighbour);
    key_ids_.push_back(key_of(plan, neighbour));
  }
  reasons_.resize(links_.size());
  if (std::any_of(links_.begin(), links_.end(), [](const StartedLink& link) { return link.calls; }))
    listener_ = listen(plan, context);
  for (StartedLink& link : links_)
    callers_.push_back(link.calls ? nullptr : std::make_unique<LinkCaller>(plan_, link.site, hello_, context));
}

LinkStart::~LinkStart() {
  for (const auto& caller : callers_)
    if (caller) caller->stop();  // all, before the first is waited for
}

void LinkStart::run(bool all_or_none, double wait_limit) {
  const auto begun = Clock::now();
  double next_line = kFirstLine;
  for (;;) {
    accept();
    look_at_candidates();
    look_at_callers();
    look_at_news();
    std::size_t up = 0, lost = 0;
    for (const StartedLink& link : links_) up += link.up, lost += !link.problem.empty();
    if (up + lost == links_.size() || (all_or_none && lost > 0)) break;
    const double waited = since(begun);
    for (std::size_t i = 0; i < links_.size(); ++i) {
      StartedLink& link = links_[i];
      if (link.up || !link.problem.empty()) continue;
      if (wait_limit > 0 && waited > wait_limit) {
        link.problem = "site " + name(link.site) + " did not come within " +
                       std::to_string(static_cast<long>(wait_limit)) + " s (" + why_waiting(i) + ")";
      } else if (waited > next_line) {
        say(plan_, "waiting for site " + name(link.site) + " (" + why_waiting(i) + ")");
      }
    }
    if (waited > next_line) next_line = waited + kLines;
  }
  for (const auto& caller : callers_)
    if (caller) caller->stop();
}

void LinkStart::refuse(const std::string& why) {
  const auto tell = [&](wan::Path path, bool greet) {
    try {
      if (greet) path.start_send(kHelloTag, hello_);
    } catch (const wan::Error&) {
    }
    send_news(path, News::kRefused, why);
    left_.push_back(std::move(path));
  };
  for (Candidate& candidate : candidates_) tell(std::move(candidate.path), false);
  candidates_.clear();
  for (const auto& caller : callers_) {
    if (!caller) continue;
    LinkCaller::Reached reached = caller->take();
    if (reached.path.valid()) tell(std::move(reached.path), false);
  }
  while (auto accepted = listener_ ? listener_->accept_for(0) : std::nullopt) tell(std::move(accepted->path), true);
}

std::string LinkStart::why_waiting(std::size_t i) const {
  if (!reasons_[i].empty()) return reasons_[i];
  if (callers_[i]) return callers_[i]->reason();
  const SitePlace& here = plan_.sites[static_cast<std::size_t>(plan_.me)];
  if (here.relay.used())
    return "it has not called yet by the relay " + here.relay.relay.text() + ", where this site is " +
           here.relay.target;
  return "it has not called port " + std::to_string(listener_->address().port) + " of this site yet";
}

// One look at the listening, which also is the pause between two turns.
void LinkStart::accept() {
  if (!listener_) return;
  auto accepted = listener_->accept_for(kTurn);
  if (!accepted) return;
  for (std::size_t i = 0; i < links_.size(); ++i) {
    StartedLink& link = links_[i];
    if (!link.calls || name(link.site) != accepted->name) continue;
    if (!key_ids_[i].empty() && accepted->identity != key_ids_[i]) return turn_away(*accepted, key_ids_[i]);
    Candidate candidate{i, std::move(accepted->path), {}};
    try {
      settle(candidate.path, link_to(plan_, link.site));
      candidate.path.start_send(kHelloTag, hello_);
      candidate.hello = candidate.path.start_receive_any(kHelloTag, kLongestHello);
      candidates_.push_back(std::move(candidate));
    } catch (const wan::Error& error) {
      reasons_[i] = error.what();
    }
    return;
  }
  turn_away(*accepted, "");
}

// `key`: the one that it should have shown; empty: it should not call at all.
void LinkStart::turn_away(wan::Accepted& accepted, const std::string& key) {
  try {
    accepted.path.start_send(kHelloTag, hello_);  // so that it finds out whom it has called
  } catch (const wan::Error&) {
  }
  const std::string why = key.empty() ? "it is no neighbour of " + name(plan_.me) + " that should call it"
                                      : "it shows the key " + accepted.identity + ", and that of this link is " + key +
                                            ": give the same sites.NAME.key at both ends";
  if (!key.empty())
    send_news(accepted.path, News::kRefused, "site " + name(plan_.me) + " turns this site away (" + why + ")");
  left_.push_back(std::move(accepted.path));
  if (left_.size() > kMostLeft) left_.erase(left_.begin());
  say(plan_, "a site that calls itself " + printable(accepted.name) + " was turned away: " + why);
}

void LinkStart::look_at_candidates() {
  for (std::size_t c = 0; c < candidates_.size();) {
    Candidate& candidate = candidates_[c];
    try {
      if (!candidate.hello.test()) {
        ++c;
        continue;
      }
      const wan::Bytes hello = candidate.hello.take();
      judge(candidate.link, std::move(candidate.path), hello.view());
    } catch (const std::exception& error) {  // it has gone again, or is no site: another may come
      reasons_[candidate.link] = error.what();
    }
    candidates_.erase(candidates_.begin() + static_cast<std::ptrdiff_t>(c));
  }
}

void LinkStart::look_at_callers() {
  if (!listener_) std::this_thread::sleep_for(std::chrono::duration<double>(kTurn));
  for (std::size_t i = 0; i < links_.size(); ++i) {
    if (!callers_[i] || links_[i].up || !links_[i].problem.empty()) continue;
    LinkCaller::Reached reached = callers_[i]->take();
    if (!reached.problem.empty()) {
      links_[i].problem = reached.problem;
    } else if (reached.path.valid()) {
      try {
        judge(i, std::move(reached.path), reached.hello.view());
      } catch (const Error& error) {
        links_[i].problem = "site " + name(links_[i].site) + " cannot be reached (" + error.what() + ")";
      }
      if (!links_[i].up && links_[i].problem.empty()) callers_[i]->call();
    }
  }
}

// What a neighbour says, or its leaving, while others are waited for.
void LinkStart::look_at_news() {
  for (std::size_t i = 0; i < links_.size(); ++i) {
    StartedLink& link = links_[i];
    if (!link.up) continue;
    try {
      if (!link.news.test()) continue;
      const wan::Bytes news = link.news.take();
      link.problem = text_of_news(news.view());
    } catch (const wan::Error& error) {
      reasons_[i] = std::string("it was there and has left: ") + error.what();
      if (callers_[i]) callers_[i]->call();
    }
    link.up = false;
  }
}

void LinkStart::judge(std::size_t which, wan::Path path, std::span<const std::byte> hello) {
  StartedLink& link = links_[which];
  Hello theirs = decode_hello(hello);
  if (theirs.name != name(link.site)) {
    throw Error("it calls itself " + theirs.name, "", "correct the address of site " + name(link.site));
  }
  if (ours_.purpose == Purpose::kRun) {
    if (theirs.purpose == Purpose::kCheck) {
      reasons_[which] = "it tries its links, and does not run yet";
      left_.push_back(std::move(path));
      return;
    }
    if (const auto found = differences(ours_, theirs); !found.empty()) {
      link.problem = "site " + name(plan_.me) + " and site " + theirs.name + " cannot run together (" + joined(found) +
                     "): start them with the same program and configuration";
    }
  }
  link.news = path.start_receive_any(kNewsTag, kLongestNews + sizeof(std::uint32_t));
  link.path = std::move(path);
  link.theirs = std::move(theirs);
  link.up = link.problem.empty();
}

std::string text_of_news(std::span<const std::byte> news) {
  if (news.size() < sizeof(std::uint32_t)) return "a neighbour has left";
  const auto text = news.subspan(sizeof(std::uint32_t));
  return printable(std::string(reinterpret_cast<const char*>(text.data()), text.size()));
}

}  // namespace maki::sites
