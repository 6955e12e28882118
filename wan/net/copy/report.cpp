#include "wan/net/copy/report.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "wan/net/quantity.hpp"

namespace maki::wan::copy {
namespace {

constexpr std::size_t kMaxKept = 1000;
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
  const std::uint64_t moved = progress_.moved, bytes = progress_.bytes,
                      done = std::min<std::uint64_t>(progress_.bytes_done, bytes);
  samples_.push_back({now, moved});
  const auto age = [&](const Sample& sample) { return std::chrono::duration<double>(now - sample.when).count(); };
  while (samples_.size() > 2 && age(samples_[1]) > kWindow) samples_.erase(samples_.begin());
  const double span = age(samples_.front());
  const double rate = span > 0 ? static_cast<double>(moved - samples_.front().moved) / span : 0;
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
  auto& kept = failed ? problems_ : notes_;
  if (kept.size() < kMaxKept) kept.push_back(text);
  if (on_note_) on_note_(failed, text);
}

std::uint64_t Notes::failed() const {
  const std::lock_guard lock(mutex_);
  return failed_;
}

CopyReport Notes::report(const Counts& counts) const {
  const std::lock_guard lock(mutex_);
  return {counts, problems_, notes_};
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

}  // namespace maki::wan::copy
