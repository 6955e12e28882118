// Which queued work is carried out next, and when.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <thread>
#include <vector>

#include "tests/gpu_model/choices.hpp"
#include "tests/gpu_model/report.hpp"
#include "tests/gpu_model/runtime/call.hpp"
#include "tests/gpu_model/runtime/host_pages.hpp"
#include "tests/gpu_model/runtime/streams.hpp"

namespace gpu_model {
namespace {

using namespace std::chrono_literals;

constexpr double kMillisecondsOfWork = 0.01, kMillisecondsOfMark = 0.001;  // of the model's clock
double clock_now = 0;
std::uint64_t moves = 0;  // pieces that have been carried out
bool ended = false;       // the program

// MAKI_GPU_MODEL_ORDER=late: nothing is carried out before it has to be. Otherwise drawn anew for each wait.
bool always_late() {
  static const bool late = [] {
    const char* order = std::getenv("MAKI_GPU_MODEL_ORDER");
    if (order && std::strcmp(order, "late") != 0 && std::strcmp(order, "random") != 0) {
      std::fprintf(stderr, "modelled GPU: MAKI_GPU_MODEL_ORDER is '%s', it has to be late or random\n", order);
      std::exit(2);
    }
    return order && std::strcmp(order, "late") == 0;
  }();
  return late;
}

// False: it has to be asked again later.
bool do_work(Stream& stream, Queued& work) {
  int& error = device_error(stream.device);
  if (error) return true;  // a device that has failed does nothing more
  try {
    return work.carry_out(work.number) == Progress::kDone;
  } catch (const Stopped& stopped) {
    error = stopped.code;
  } catch (const std::exception& e) {
    report({"not modelled", words(work.number), e.what()});
    error = cudaErrorNotSupported;
  }
  return true;
}

// The first of a stream's queue; false: it cannot be carried out now.
bool advance(Stream& stream) {
  if (stream.queue.empty()) return false;
  Queued& first = stream.queue.front();
  if (first.wait_for && !first.wait_for->reached) return false;
  if (first.carry_out && !do_work(stream, first)) return false;
  if (first.number) work_carried_out(first.number);
  if (first.carry_out) clock_now += kMillisecondsOfWork;
  if (first.reach) {
    first.reach->reached = true;
    first.reach->milliseconds = clock_now += kMillisecondsOfMark;
  }
  stream.queue.pop_front();
  ++moves;
  return true;
}

// Streams that may have something to carry out.
std::vector<Stream*> runnable() {
  std::vector<Stream*> found;
  for (Stream& s : all_streams())
    if (!s.queue.empty() && !(s.queue.front().wait_for && !s.queue.front().wait_for->reached)) found.push_back(&s);
  return found;
}

// One piece of any stream.
bool advance_any() {
  std::vector<Stream*> streams = runnable();
  while (!streams.empty()) {
    const auto drawn = streams.begin() + static_cast<std::ptrdiff_t>(choices().below(streams.size()));
    if (advance(**drawn)) return true;
    streams.erase(drawn);
  }
  return false;
}

// The stream whose next piece has to be carried out before `mark` is reached.
Stream& needed_for(const Mark& mark) {
  Stream* s = mark.stream;
  while (s->queue.front().wait_for && !s->queue.front().wait_for->reached) s = s->queue.front().wait_for->stream;
  return *s;
}

void reached_by_host(const Mark& mark) {
  host_waited(mark.place);
  open_host_pages();
}

thread_local bool holds = false;

std::mutex& mutex() {
  static auto* m = new std::mutex;
  return *m;
}

// Work that nobody waits for is carried out once nothing has moved for a while.
void move_late() {
  constexpr auto patience = 20ms, look = 5ms;
  std::uint64_t seen = 0;
  auto since = std::chrono::steady_clock::now();
  for (;;) {
    std::this_thread::sleep_for(look);
    const Lock lock;
    if (ended) return;
    if (seen != moves) {
      seen = moves;
      since = std::chrono::steady_clock::now();
    } else if (std::chrono::steady_clock::now() - since >= patience && advance_any()) {
      seen = moves;
    }
  }
}

}  // namespace

void Lock::take() {
  mutex().lock();
  holds = true;
}
void Lock::release() {
  holds = false;
  mutex().unlock();
}
bool Lock::held() { return holds; }

void wait_for(Lock& lock, const MarkPointer& mark) {
  bool waited = false;
  const std::size_t early = always_late() ? 0 : choices().below(4);  // of four pieces
  while (!mark->reached) {
    Stream& needed = needed_for(*mark);
    waited |= needed.queue.front().carry_out != nullptr;
    const bool moved = early > choices().below(4) ? advance_any() : advance(needed);
    if (!moved && !advance_any()) {
      lock.release();
      std::this_thread::sleep_for(50us);
      lock.take();
    }
  }
  host_waits += waited;
  reached_by_host(*mark);
}

void wait_for_device(Lock& lock, int device) {
  std::vector<MarkPointer> marks;
  for (Stream& s : all_streams())
    if (s.device == device) marks.push_back(mark_end(s));
  while (!marks.empty()) {
    const auto drawn = marks.begin() + static_cast<std::ptrdiff_t>(choices().below(marks.size()));
    wait_for(lock, *drawn);
    marks.erase(drawn);
  }
}

bool ask(Mark& mark) {
  if (!mark.reached) {
    if (always_late()) {
      advance(needed_for(mark));
    } else {
      for (std::size_t pieces = choices().below(4); pieces > 0; --pieces) advance_any();
    }
  }
  if (mark.reached) reached_by_host(mark);
  return mark.reached;
}

void queue_work(cudaStream_t stream, std::string what, std::function<Progress(WorkNumber)> carry_out) {
  const Lock lock;
  if (Stream* const s = find_stream(stream))
    add_to(*s, std::move(what), std::move(carry_out));
  else
    no_handle(what);
}

void keep_moving() {
  [[maybe_unused]] static const bool started = [] {
    std::thread(move_late).detach();
    return std::atexit([] {
             if (Lock::held()) return;
             const Lock lock;
             ended = true;
           }) == 0;
  }();
}

}  // namespace gpu_model
