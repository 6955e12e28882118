// The loss of a site.
#include <fmt/format.h>

#include <chrono>

#include "wan/net/error.hpp"
#include "wan/sites/net_ring_core.hpp"

namespace maki::sites {
namespace {

// Time for another thread to read the notice of a peer that has closed its path.
constexpr auto kNoticeDelay = std::chrono::milliseconds(500);

std::string observation(const wan::PathError& error) {
  const std::string text = error.what();
  if (error.seconds_down() <= 0) return text;
  std::string seen = fmt::format("nothing was heard of it for {:.1f} s", error.seconds_down());
  const auto attempt = text.find("last attempt: ");
  if (attempt != std::string::npos) {
    const auto end = text.find("): look at", attempt);
    seen += "; " + text.substr(attempt, end == std::string::npos ? end : end - attempt);
  }
  return seen;
}

}  // namespace

void NetRing::Core::throw_if_failed() const {
  if (failed_) std::rethrow_exception(failed_);
}

void NetRing::Core::fail(std::exception_ptr error, const std::string& text, const Link* informed) {
  {
    const std::lock_guard lock(mutex_);
    if (failed_ || stopping_) return;
    failed_ = std::move(error);
    changed_.notify_all();
  }
  for (Link& link : links_)
    if (&link != informed) send_notice(link.path, Notice::kLost, text);
}

void NetRing::Core::report_loss(const Link& link, const wan::PathError& error) {
  {
    std::unique_lock lock(mutex_);
    const auto over = [&] { return failed_ || stopping_; };
    if (error.seconds_down() <= 0) changed_.wait_for(lock, kNoticeDelay, over);
    if (over()) return;
  }
  const SiteLost lost("site " + name(link.site) + " is lost",
                      "seen by site " + name(routes.me) + ": " + observation(error));
  fail(std::make_exception_ptr(lost), lost.what(), nullptr);
}

void NetRing::Core::await_notice(Link& link) {
  try {
    link.notice.wait();
    const wan::Bytes notice = link.notice.take();
    const std::string text = notice_text(notice.view());
    fail(std::make_exception_ptr(SiteLost(text)), text, &link);
  } catch (const wan::Error&) {
    // The path has ended: the calls that wait for a message judge whether that is a loss.
  }
}

}  // namespace maki::sites
