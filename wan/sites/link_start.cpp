#include "wan/sites/link_start.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "wan/net/error.hpp"
#include "wan/net/settings.hpp"
#include "wan/net/socket/tcp.hpp"
#include "wan/sites/ring.hpp"
#include "wan/sites/ring_plan.hpp"

namespace maki::sites {

// ---- calling a neighbour -------------------------------------------------------------------------------------------

namespace {

using wan::seconds_since;
using wan::WallClock;

constexpr double kFirstAttempt = 1.5,
                 kLongestAttempt = 5;  // time limits of attempts (seconds), which grow; several round trips

// The part of an error message in parentheses; the user knows the rest.
std::string reason_in(const std::string& message) {
  const auto open = message.find(" ("), close = message.rfind(')');
  if (open == std::string::npos || close == std::string::npos || close < open) return "";
  return message.substr(open + 2, close - open - 2);
}

}  // namespace

LinkCaller::LinkCaller(const RingPlan& plan, int site, wan::Context& context)
    : peer_(plan.site(site)), end_(peer_.relay.used() ? peer_.relay.relay : peer_.address),
      reason_(end_.text() + " is called"),
      caller_(
          [this, link = link_to(plan, site), here = plan.here().name, &context](double within) {
            try {
              wan::resolve(end_);
            } catch (const wan::Error& error) {  // a name server may be away for a while
              throw wan::PathError(error.what());
            }
            return wan::Path::connect(peer_.address, link.security, link.path, {here, peer_.relay, within}, context);
          },
          kFirstAttempt, kLongestAttempt,
          [this](const wan::PathError& error, bool early) {
            const std::string reason = reason_in(error.what());
            reason_ = early ? error.what() : reason.empty() ? end_.text() + " does not answer" : reason;
            return true;
          }) {}

std::optional<wan::Path> LinkCaller::take() {
  const auto where = [&] { return "site " + peer_.name + " at " + end_.text(); };
  try {
    auto path = caller_.take();
    if (path) reason_ = end_.text() + " was reached, and has not said yet who it is";
    return path;
  } catch (const wan::PathError& error) {  // it refuses us
    const std::string text = error.what(), reason = reason_in(text);
    throw Error(where() + " refuses the path (" + (reason.empty() ? text : reason) + ")");
  } catch (const wan::Error& error) {
    throw Error(where() + " cannot be called (" + error.what() + ")");
  }
}

void LinkCaller::retry(const std::string& reason) {
  caller_.again();
  if (!reason.empty()) reason_ = reason;
}

// ---- all links -----------------------------------------------------------------------------------------------------

namespace {

constexpr double kPollInterval = 0.02;  // seconds
constexpr double kSilence = 30;         // seconds until a neighbour that was called and says nothing is called again
constexpr double kFirstReport = 2, kReportInterval = 10;  // seconds between lines about sites that are waited for
constexpr std::size_t kLongestNotice = 12 << 10;
constexpr std::size_t kMostRefusedPaths = 8;  // kept open until their peers have read the notice

std::unique_ptr<wan::Listener> listen(const RingPlan& plan, wan::Context& context) {
  const SitePlace& here = plan.here();
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

// The id of the key that a neighbour must prove.
std::string key_of(const RingPlan& plan, int neighbour) {
  return translate_errors([&] { return key_id(link_to(plan, neighbour)); },
                          [&](const std::string& reason) {
                            return Error("there is no link between sites " + plan.here().name + " and " +
                                             plan.site(neighbour).name,
                                         reason);
                          });
}

}  // namespace

void send_notice(wan::Path& path, std::uint32_t kind, const std::string& text) {
  try {
    std::vector<std::byte> notice(sizeof kind + std::min(text.size(), kLongestNotice));
    std::memcpy(notice.data(), &kind, sizeof kind);
    std::memcpy(notice.data() + sizeof kind, text.data(), notice.size() - sizeof kind);
    path.start_send(kNoticeTag, notice);  // small: copied
  } catch (const wan::Error&) {
    // The neighbour learns of the end by the loss of its path.
  }
}

LinkStart::LinkStart(const RingPlan& plan, Purpose purpose, wan::Context& context)
    : plan_(plan), ours_((check(plan), hello_of(plan, purpose))), hello_(encode(ours_)), context_(context) {
  for (const int neighbour : neighbours(plan)) {
    StartedLink& link = links_.emplace_back();
    link.site = neighbour;
    link.peer_calls = calls_us(plan, neighbour);
    link.key = key_of(plan, neighbour);
  }
  reasons_.resize(links_.size());
  if (std::any_of(links_.begin(), links_.end(), [](const StartedLink& link) { return link.peer_calls; }))
    listener_ = listen(plan, context);
  for (StartedLink& link : links_)
    callers_.push_back(link.peer_calls ? nullptr : std::make_unique<LinkCaller>(plan_, link.site, context));
}

void LinkStart::run(bool all_or_none, double wait_limit) {
  const auto begun = WallClock::now();
  double next_report = kFirstReport;
  for (;;) {
    accept();
    check_candidates();
    check_callers();
    check_notices();
    std::vector<std::size_t> missing;
    std::size_t lost = 0;
    for (std::size_t i = 0; i < links_.size(); ++i) {
      const bool failed = !links_[i].problem.empty();
      lost += failed;
      if (!failed && !stands(i)) missing.push_back(i);
    }
    if (missing.empty() || (all_or_none && lost > 0)) break;
    const double waited = seconds_since(begun);
    for (const std::size_t i : missing) {
      StartedLink& link = links_[i];
      if (wait_limit > 0 && waited > wait_limit) {
        link.problem = "site " + name(link.site) + " did not come within " +
                       std::to_string(static_cast<long>(wait_limit)) + " s (" + reason_of_wait(i) + ")";
      } else if (waited > next_report) {
        plan_.report("waiting for site " + name(link.site) + " (" + reason_of_wait(i) + ")");
      }
    }
    if (waited > next_report) next_report = waited + kReportInterval;
  }
}

void LinkStart::refuse(const std::string& why) {
  const auto refuse_path = [&](wan::Path path, bool greet) {
    try {
      if (greet) path.start_send(kHelloTag, hello_);
    } catch (const wan::Error&) {
    }
    send_notice(path, Notice::kRefused, why);
    turned_away_.keep(std::move(path));
  };
  for (Candidate& candidate : candidates_) refuse_path(std::move(candidate.path), false);
  candidates_.clear();
  for (const auto& caller : callers_) try {
      if (auto path = caller ? caller->take() : std::nullopt) refuse_path(std::move(*path), true);
    } catch (const Error&) {  // no caller to refuse
    }
  while (auto accepted = listener_ ? listener_->accept_for(0) : std::nullopt)
    refuse_path(std::move(accepted->path), true);
}

std::string LinkStart::reason_of_wait(std::size_t i) const {
  if (links_[i].up) return "it was there, and does not answer";
  if (!reasons_[i].empty()) return reasons_[i];
  if (callers_[i]) return callers_[i]->reason();
  const SitePlace& here = plan_.here();
  if (here.relay.used())
    return "it has not called yet by the relay " + here.relay.relay.text() + ", where this site is " +
           here.relay.target;
  return "it has not called port " + std::to_string(listener_->address().port) + " of this site yet";
}

// Accepts one caller; waiting for it is the pause between two polls.
void LinkStart::accept() {
  if (!listener_) return;
  auto accepted = listener_->accept_for(kPollInterval);
  if (!accepted) return;
  for (std::size_t i = 0; i < links_.size(); ++i) {
    StartedLink& link = links_[i];
    if (!link.peer_calls || name(link.site) != accepted->name) continue;
    if (!link.key.empty() && accepted->identity != link.key) return refuse_caller(*accepted, link.key);
    return greet(i, std::move(accepted->path));
  }
  refuse_caller(*accepted, "");
}

void LinkStart::greet(std::size_t link, wan::Path path) try {
  if (!callers_[link]) path.change(link_to(plan_, links_[link].site).path);
  path.start_send(kHelloTag, hello_);
  wan::Request hello = path.start_receive_any(kHelloTag, kLongestHello);
  candidates_.push_back({link, std::move(path), std::move(hello)});
} catch (const wan::Error& error) {
  lost(link, error.what());
}

// The path of a candidate is lost: another may come.
void LinkStart::lost(std::size_t link, const std::string& why) {
  if (callers_[link])
    callers_[link]->retry(why);
  else
    reasons_[link] = why;
}

// `key`: the id that the caller should have proved; empty: no such neighbour should call.
void LinkStart::refuse_caller(wan::Accepted& accepted, const std::string& key) {
  const std::string why = key.empty() ? "it is no neighbour of " + name(plan_.me) + " that should call it"
                                      : "it shows the key " + accepted.identity + ", and that of this link is " + key +
                                            ": give the same sites.NAME.key at both ends";
  turned_away_.add(std::move(accepted.path), hello_, key.empty() ? "" : turned_away_text(name(plan_.me), why));
  plan_.report(turned_away_line(accepted.name, why));
}

bool LinkStart::stands(std::size_t link) const {
  const auto rivals = [link](const Candidate& one) { return one.link == link && one.undecided; };
  return links_[link].up && std::ranges::none_of(candidates_, rivals) && links_[link].path.status().up;
}

// Whether a job of the caller's site is there already; empty: not known yet.
std::optional<bool> LinkStart::is_taken(const Candidate& caller) const {
  const StartedLink& link = links_[caller.link];
  if (!link.up || !link.peer_calls || ours_.purpose == Purpose::kCheck) return false;
  return answers_after(link.path, caller.begun);
}

void LinkStart::check_candidates() {
  for (std::size_t c = 0; c < candidates_.size();) {
    Candidate& candidate = candidates_[c];
    const std::size_t link = candidate.link;
    StartedLink& started = links_[link];
    try {
      if (!candidate.hello.test()) {
        if (callers_[link] && seconds_since(candidate.begun) > kSilence)
          throw wan::Error("it was reached and says nothing");
        ++c;
        continue;
      }
      const std::optional<bool> taken = is_taken(candidate);
      candidate.undecided = !taken;
      if (!taken) {
        ++c;
        continue;
      }
      const wan::Bytes hello = candidate.hello.take();
      accept_hello(link, std::move(candidate.path), hello.view(), *taken);
      if (callers_[link] && !started.up) callers_[link]->retry();
    } catch (const wan::Error& error) {
      lost(link, error.what());
    } catch (const Error& error) {  // its peer is no site, or another one
      if (callers_[link])
        started.problem = "site " + name(started.site) + " cannot be reached (" + error.what() + ")";
      else
        reasons_[link] = error.what();
    }
    candidates_.erase(candidates_.begin() + static_cast<std::ptrdiff_t>(c));
  }
}

void LinkStart::check_callers() {
  if (!listener_) std::this_thread::sleep_for(std::chrono::duration<double>(kPollInterval));
  for (std::size_t i = 0; i < links_.size(); ++i) {
    if (!callers_[i] || links_[i].up || !links_[i].problem.empty()) continue;
    try {
      if (auto path = callers_[i]->take()) greet(i, std::move(*path));
    } catch (const Error& error) {
      links_[i].problem = error.what();
    }
  }
}

// Notices and losses of links that are up, while others are waited for.
void LinkStart::check_notices() {
  for (std::size_t i = 0; i < links_.size(); ++i) {
    StartedLink& link = links_[i];
    if (!link.up) continue;
    try {
      if (!link.notice.test()) continue;
      const wan::Bytes notice = link.notice.take();
      if (notice_kind(notice.view()) == Notice::kLost) throw wan::Error(notice_text(notice.view()));
      link.problem = notice_text(notice.view());
    } catch (const wan::Error& error) {
      reasons_[i] = std::string("it was there and has left: ") + error.what();
      if (callers_[i]) callers_[i]->retry();
    }
    link.up = false;
  }
}

void LinkStart::accept_hello(std::size_t which, wan::Path path, std::span<const std::byte> hello, bool taken) {
  StartedLink& link = links_[which];
  Hello theirs = decode_hello(hello);
  if (theirs.name != name(link.site)) {
    throw Error("it calls itself " + theirs.name, "", "correct the address of site " + name(link.site));
  }
  if (ours_.purpose == Purpose::kRun) {
    if (theirs.purpose == Purpose::kCheck) {
      reasons_[which] = "it tries its links, and does not run yet";
      turned_away_.keep(std::move(path));
      return;
    }
    if (taken) {
      const std::string why = "another job of site " + name(link.site) + " takes part already: end one of them";
      send_notice(path, Notice::kTurnedAway, turned_away_text(name(plan_.me), why));
      turned_away_.keep(std::move(path));
      plan_.report(turned_away_line(theirs.name, why));
      return;
    }
    if (const auto found = differences(ours_, theirs); !found.empty()) {
      link.problem = fmt::format(
          "site {} and site {} cannot run together ({}): start them with the same program and configuration",
          name(plan_.me), theirs.name, fmt::join(found, "; "));
    }
  }
  link.notice = path.start_receive_any(kNoticeTag, kLongestNotice + sizeof(std::uint32_t));
  if (link.path.valid()) link.path.close(0);  // of a job that is gone
  link.path = std::move(path);
  link.theirs = std::move(theirs);
  link.up = link.problem.empty();
}

void TurnedAway::add(wan::Path path, const Message& hello, const std::string& why) {
  // The reason first: a caller that has read a hello goes on with its start.
  if (!why.empty()) send_notice(path, Notice::kTurnedAway, why);
  try {
    path.start_send(kHelloTag, hello);
  } catch (const wan::Error&) {
  }
  keep(std::move(path));
}

void TurnedAway::keep(wan::Path path) {
  paths_.push_back(std::move(path));
  if (paths_.size() <= kMostRefusedPaths) return;
  paths_.front().close(0);
  paths_.erase(paths_.begin());
}

void TurnedAway::close() {
  for (wan::Path& path : paths_) path.close(0);
}

std::optional<bool> answers_after(const wan::Path& path, wan::WallClock::time_point call) {
  const double called = seconds_since(call);  // read first: time that passes between the two readings is no answer
  const wan::PathStatus there = path.status();
  if (!there.up) return false;
  if (there.silent < called) return true;
  return {};
}

std::string turned_away_text(const std::string& here, const std::string& why) {
  return "site " + here + " turns this site away (" + why + ")";
}

std::string turned_away_line(const std::string& caller, const std::string& why) {
  return "a site that calls itself " + wan::printable(caller) + " was turned away: " + why;
}

std::uint32_t notice_kind(std::span<const std::byte> notice) {
  std::uint32_t kind = Notice::kLost;
  if (notice.size() >= sizeof kind) std::memcpy(&kind, notice.data(), sizeof kind);
  return kind;
}

std::string notice_text(std::span<const std::byte> notice) {
  if (notice.size() <= sizeof(std::uint32_t)) return "a neighbour has left";
  const auto text = notice.subspan(sizeof(std::uint32_t));
  return wan::printable({reinterpret_cast<const char*>(text.data()), text.size()}, kLongestNotice);
}

}  // namespace maki::sites
