#include "src/io/rank_threads.hpp"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <new>
#include <utility>

#include "kernels/error.hpp"

namespace maki {

namespace {

// Computing threads have priority: at a barrier all would wait for a thread that shares its core with a writer.
void step_back() { (void)setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), 19); }

std::string problem_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const std::bad_alloc&) {
    return "there is no memory left to write files with";
  } catch (const std::exception& error) {
    return message_of(error);
  }
  return {};
}

}  // namespace

void RankThreads::start(std::function<void()> work) try {
  thread_ = std::async(std::launch::async, [work = std::move(work)]() mutable {
    const auto begin = std::chrono::steady_clock::now();
    step_back();
    std::string problem = problem_of(work);
    work = nullptr;
    return End{std::move(problem), std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count()};
  });
} catch (const std::exception& error) {  // an end as that of a thread, for all ranks to learn
  std::promise<End> none;
  none.set_value({fmt::format("cannot write files beside the steps ({})", message_of(error)), 0});
  thread_ = none.get_future();
}

bool RankThreads::all_done() const {
  const bool works = thread_.valid() && thread_.wait_for(std::chrono::seconds(0)) != std::future_status::ready;
  return largest_of(ranks_, std::uint64_t{works ? 1u : 0u}) == 0;
}

void RankThreads::wait() const {
  if (thread_.valid()) thread_.wait();
}

std::string RankThreads::problem() {
  const End mine = thread_.valid() ? thread_.get() : End{};
  seconds_ += largest_of(ranks_, mine.seconds);
  return first_text(ranks_, mine.problem);
}

}  // namespace maki
