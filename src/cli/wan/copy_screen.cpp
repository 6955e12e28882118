#include "src/cli/wan/copy_screen.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>

namespace maki {
namespace {

constexpr int kMostNotes = 100;

}  // namespace

CopyScreen::CopyScreen(const wan::copy::Progress& progress, bool quiet)
    : meter_(progress), quiet_(quiet), terminal_(isatty(STDOUT_FILENO) == 1) {
  if (!quiet_) thread_ = std::thread([this] { run(); });
}

void CopyScreen::run() {
  const auto period = terminal_ ? std::chrono::milliseconds(250) : std::chrono::milliseconds(5000);
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, period, [this] { return ended_; })) draw();
}

void CopyScreen::draw() {
  const std::string line = meter_.line();
  fmt::print("{}{}{}", terminal_ ? "\r" : "", line, terminal_ ? "\x1b[K" : "\n");
  std::fflush(stdout);
  drawn_ = terminal_;
}

void CopyScreen::wipe() {
  if (drawn_) fmt::print("\r\x1b[K"), std::fflush(stdout);
  drawn_ = false;
}

void CopyScreen::note(bool failed, const std::string& text) {
  const std::lock_guard lock(mutex_);
  const int count = ++(failed ? problems_ : notes_);
  if (count > kMostNotes || (quiet_ && !failed)) return;
  wipe();
  fmt::print(stderr, "maki: {}{}{}\n", failed ? "not copied: " : "", text,
             count == kMostNotes ? " (no more of these are shown)" : "");
}

void CopyScreen::end() {
  {
    const std::lock_guard lock(mutex_);
    if (ended_) return;
    ended_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
  wipe();
}

}  // namespace maki
