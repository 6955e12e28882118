#include "wan/sites/link_start.hpp"

#include <algorithm>
#include <chrono>

#include "wan/net/error.hpp"
#include "wan/net/settings.hpp"
#include "wan/net/socket/tcp.hpp"
#include "wan/sites/ring_plan.hpp"

namespace maki::sites {
namespace {

using wan::seconds_since;
using wan::WallClock;

constexpr double kFirstAttempt = 1.5,
                 kLongestAttempt = 5;  // time limits of attempts (seconds), which grow; several round trips
constexpr std::chrono::duration<double> kPause{1};  // between attempts that fail at once

// The part of an error message in parentheses; the user knows the rest.
std::string reason_in(const std::string& message) {
  const auto open = message.find(" ("), close = message.rfind(')');
  if (open == std::string::npos || close == std::string::npos || close < open) return "";
  return message.substr(open + 2, close - open - 2);
}

}  // namespace

LinkCaller::LinkCaller(const RingPlan& plan, int site, wan::Context& context)
    : plan_(plan), site_(site), context_(context), peer_(plan.sites[static_cast<std::size_t>(site)]),
      end_(peer_.relay.used() ? peer_.relay.relay : peer_.address), within_(kFirstAttempt), next_within_(kFirstAttempt),
      reason_(end_.text() + " is called") {
  call();
}

void LinkCaller::call() {
  begun_ = WallClock::now();
  within_ = next_within_;
  next_within_ = std::min(1.4 * within_, kLongestAttempt);
  const std::string here = plan_.sites[static_cast<std::size_t>(plan_.me)].name;
  const wan::CallOptions options{here, peer_.relay, within_};
  attempt_ = std::async(std::launch::async, [this, link = link_to(plan_, site_), options] {
    try {
      wan::resolve(end_);
    } catch (const wan::Error& error) {  // a name server may be away for a while
      throw wan::PathError(error.what());
    }
    return wan::Path::connect(peer_.address, link.security, link.path, options, context_);
  });
}

std::optional<wan::Path> LinkCaller::take() {
  if (!attempt_.valid() && calling_ && WallClock::now() >= not_before_) call();
  if (!attempt_.valid() || attempt_.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return {};
  const auto where = [&] { return "site " + peer_.name + " at " + end_.text(); };
  try {
    wan::Path path = attempt_.get();
    calling_ = false;
    reason_ = end_.text() + " was reached, and has not said yet who it is";
    return path;
  } catch (const wan::PathError& error) {
    // A peer that has closed the path may come back; one that refuses it will refuse again.
    const std::string text = error.what(), reason = reason_in(text);
    if (text.find(" refuses the path") != std::string::npos)
      throw Error(where() + " refuses the path (" + (reason.empty() ? text : reason) + ")");
    if (seconds_since(begun_) < within_)
      retry(text);
    else
      reason_ = reason.empty() ? end_.text() + " does not answer" : reason;
  } catch (const wan::Error& error) {
    throw Error(where() + " cannot be called (" + error.what() + ")");
  }
  return {};
}

void LinkCaller::retry(const std::string& reason) {
  calling_ = true;
  if (reason.empty()) return;
  reason_ = reason;
  not_before_ = WallClock::now() + std::chrono::duration_cast<WallClock::duration>(kPause);
}

}  // namespace maki::sites
