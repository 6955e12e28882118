#include "wan/net/copy/message_channel.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "wan/net/settings.hpp"

namespace maki::wan::copy {

// ---- progress and result -------------------------------------------------------------------------------------------

namespace {

constexpr double kWindow = 8;  // seconds over which the rate is averaged

}  // namespace

std::string time_text(double seconds) {
  const auto whole = static_cast<std::uint64_t>(std::max(seconds, 0.0) + 0.5);
  if (whole < 120) return fmt::format("{} s", whole);
  if (whole < 7200) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} min", whole / 3600, whole / 60 % 60);
}

std::string Meter::line() {
  const auto now = Clock::now();
  const std::uint64_t given = progress_.moved, finished = progress_.bytes_done, bytes = progress_.bytes;
  const std::uint64_t under_way = under_way_();  // after those: what is sent meanwhile has not arrived
  const auto arrived = [&](std::uint64_t sent) { return sent - std::min(sent, under_way); };
  const std::uint64_t moved = arrived(given), done = std::min(arrived(finished), bytes);
  samples_.push_back({now, moved});
  const auto age = [&](const Sample& sample) { return std::chrono::duration<double>(now - sample.when).count(); };
  while (samples_.size() > 2 && age(samples_[1]) > kWindow) samples_.erase(samples_.begin());
  const double span = age(samples_.front());
  const double rate =
      span > 0 && moved > samples_.front().moved ? static_cast<double>(moved - samples_.front().moved) / span : 0;
  const bool listed = progress_.listed;
  std::string text = fmt::format("{} of {}{} files, {} of {}{}", progress_.files_done.load(), progress_.files.load(),
                                 listed ? "" : "+", amount(done), amount(bytes), listed ? "" : "+");
  if (listed && bytes > 0)
    text += fmt::format(" ({:.0f} %)", 100.0 * static_cast<double>(done) / static_cast<double>(bytes));
  text += fmt::format(", {}/s", amount(static_cast<std::uint64_t>(rate)));
  if (listed && rate > 0) text += fmt::format(", {} left", time_text(static_cast<double>(bytes - done) / rate));
  return text;
}

void Notes::add(bool failed, const std::string& text) {
  const std::lock_guard lock(mutex_);
  failed_ += failed;
  if (on_note_) on_note_(failed, text);
}

std::uint64_t Notes::failed() const {
  const std::lock_guard lock(mutex_);
  return failed_;
}

std::string summary(const Counts& counts) {
  std::string text = fmt::format("{} file{} ({})", counts.files, counts.files == 1 ? "" : "s", amount(counts.bytes));
  if (counts.folders > 0) text += fmt::format(" in {} folder{}", counts.folders, counts.folders == 1 ? "" : "s");
  if (counts.skipped > 0)
    text += fmt::format("; {} {} there already ({})", counts.skipped, counts.skipped == 1 ? "was" : "were",
                        amount(counts.skipped_bytes));
  if (counts.failed > 0) text += fmt::format("; {} failed", counts.failed);
  return text;
}

// ---- messages in flight --------------------------------------------------------------------------------------------

namespace {

constexpr std::size_t kBatchesPosted = 8;

std::size_t limit_of(Tag tag) { return tag == kDataTag ? kMaxBatch : kMaxMessage; }
// Receives posted: file contents are long in flight and come in large messages; other tags need few.
std::size_t posted_of(Tag tag) { return tag == kDataTag ? kBatchesPosted : tag == kControlTag ? 1 : 4; }

}  // namespace

MessageChannel::~MessageChannel() {
  path_ = Path();  // closed: nothing is in flight after this
  for (const Lane& lane : lanes_) *all_ -= lane.bytes;
}

template <class Start>
Request MessageChannel::start(Start start) {
  const std::lock_guard lock(closing_);
  check();
  return start();
}

void MessageChannel::wait_for_oldest(Lane& lane) {
  auto& [request, bytes] = lane.sent.front();
  request.wait();
  lane.bytes -= bytes;
  *all_ -= bytes;
  lane.sent.pop_front();
}

bool MessageChannel::has_room(const Lane& lane, std::size_t bytes) const {
  return lane.sent.empty() || (lane.bytes + bytes <= kUnderWay && *all_ + bytes <= kAllUnderWay);
}

void MessageChannel::send(Tag tag, Bytes message) {
  Lane& to = lane(tag);
  const std::lock_guard lock(to.sending);
  while (!to.sent.empty() && (to.sent.front().first.test() || !has_room(to, message.size))) wait_for_oldest(to);
  const std::size_t bytes = message.size;
  to.sent.emplace_back(start([&] { return path_.start_send(tag, std::move(message)); }), bytes);
  to.bytes += bytes;
  *all_ += bytes;
}

std::optional<Bytes> MessageChannel::receive_for(Tag tag, double seconds) {
  const std::lock_guard lock(lane(tag).receiving);
  std::deque<Request>& posted = lane(tag).posted;
  while (posted.size() < posted_of(tag))
    posted.push_back(start([&] { return path_.start_receive_any(tag, limit_of(tag)); }));
  if (!posted.front().wait_for(seconds)) return {};
  Request next = std::move(posted.front());
  posted.pop_front();
  return next.take();
}

void MessageChannel::flush() {
  for (Lane& lane : lanes_) {
    const std::lock_guard lock(lane.sending);
    while (!lane.sent.empty()) wait_for_oldest(lane);
  }
}

void MessageChannel::give_up() {
  given_up_ = true;
  const std::lock_guard lock(closing_);
  path_.close(0);
}

}  // namespace maki::wan::copy
