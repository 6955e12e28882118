// What happens when a site is lost.
#include <fmt/format.h>

#include <chrono>

#include "wan/net/error.hpp"
#include "wan/sites/net_ring_core.hpp"

namespace maki::sites {
namespace {

// A path that its peer has closed: what the peer said before is being read by another thread.
constexpr auto kWordsOnTheirWay = std::chrono::milliseconds(500);

std::string seen_of(const wan::PathError& error) {
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

void NetRing::Core::fail(std::exception_ptr error, const std::string& text, const Link* told_by) {
  {
    const std::lock_guard lock(mutex_);
    if (failed_ || stopping_) return;
    failed_ = std::move(error);
    changed_.notify_all();
  }
  for (Link& link : links_)
    if (&link != told_by) send_news(link.path, News::kLost, text);
}

void NetRing::Core::lose(const Link& link, const wan::PathError& error) {
  {
    std::unique_lock lock(mutex_);
    const auto over = [&] { return failed_ || stopping_; };
    if (error.seconds_down() <= 0) changed_.wait_for(lock, kWordsOnTheirWay, over);
    if (over()) return;
  }
  const SiteLost lost("site " + name(link.site) + " is lost", "seen by site " + name(ways.me) + ": " + seen_of(error));
  fail(std::make_exception_ptr(lost), lost.what(), nullptr);
}

void NetRing::Core::run_news(Link& link) {
  try {
    link.news.wait();
    const wan::Bytes news = link.news.take();
    const std::string text = text_of_news(news.view());
    fail(std::make_exception_ptr(SiteLost(text)), text, &link);
  } catch (const wan::Error&) {
    // The path is over: whoever waits for a message finds out whether it was time.
  }
}

}  // namespace maki::sites
