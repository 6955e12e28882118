#include "wan/net/relay/splice_pipe.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "wan/net/error.hpp"

namespace maki::wan {
namespace {

// Larger pipes save system calls, but bytes in them are late: bench/NOTES.md has the measurement.
constexpr int kPipeSize = 512 << 10;
constexpr std::size_t kFreePipes = 16;
// Before others in the loop have their turn.
constexpr int kTurns = 4;

}  // namespace

PipePool::Pipe PipePool::take() {
  if (!free_.empty()) {
    Pipe pipe = std::move(free_.back());
    free_.pop_back();
    return pipe;
  }
  int ends[2];
  if (pipe2(ends, O_NONBLOCK | O_CLOEXEC) != 0)
    throw Error("cannot make a pipe", std::strerror(errno),
                "raise the limit of open files (ulimit -n), or lower --sessions");
  Pipe pipe{Socket(ends[0]), Socket(ends[1]), 0};
  // A user who has many pipes gets small ones (fs.pipe-user-pages-soft): they do, only slower.
  fcntl(ends[1], F_SETPIPE_SZ, kPipeSize);
  const int size = fcntl(ends[1], F_GETPIPE_SZ);
  pipe.size = size > 0 ? static_cast<std::size_t>(size) : 4096;
  return pipe;
}

void PipePool::give(Pipe pipe) {
  if (free_.size() < kFreePipes) free_.push_back(std::move(pipe));
}

SplicePipe::Step SplicePipe::fill(int source) {
  if (!pipe_.open()) pipe_ = pipes_.take();
  for (;;) {
    const ssize_t got =
        splice(source, nullptr, pipe_.in.descriptor(), nullptr, pipe_.size, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
    if (got > 0) {
      held_ = static_cast<std::size_t>(got);
      return Step::kGone;
    }
    if (got == 0) return Step::kEnd;
    if (errno == EINTR) continue;
    return errno == EAGAIN ? Step::kBlocked : Step::kFailed;
  }
}

SplicePipe::Step SplicePipe::drain(int target) {
  while (held_ > 0) {
    const ssize_t sent =
        splice(pipe_.out.descriptor(), nullptr, target, nullptr, held_, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno == EAGAIN) return Step::kBlocked;
    if (sent <= 0) return Step::kFailed;
    held_ -= static_cast<std::size_t>(sent);
    bytes_ += static_cast<std::uint64_t>(sent);
  }
  return Step::kGone;
}

void SplicePipe::release() {
  if (pipe_.open()) pipes_.give(std::move(pipe_));
  pipe_ = {};
}

SplicePipe::Result SplicePipe::move(int source, int target) {
  if (finished_) return Result::kFlowing;
  for (int turn = 0; turn < kTurns; ++turn) {
    if (held_ == 0) {
      const Step step = fill(source);
      if (step != Step::kGone) release();
      if (step == Step::kBlocked) return Result::kFlowing;
      if (step == Step::kFailed) return Result::kSourceFailed;
      if (step == Step::kEnd) {
        finished_ = true;
        return shutdown(target, SHUT_WR) == 0 ? Result::kFlowing : Result::kTargetFailed;
      }
    }
    const Step step = drain(target);
    if (step == Step::kBlocked) return Result::kFlowing;
    if (step == Step::kFailed) return Result::kTargetFailed;
  }
  release();
  return Result::kFlowing;
}

}  // namespace maki::wan
