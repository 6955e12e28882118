// Calls a neighbour again and again until it answers, in a thread of its own.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "wan/net/path.hpp"
#include "wan/sites/ring.hpp"
#include "wan/sites/ring_plan.hpp"

namespace maki::sites {

class LinkCaller {
 public:
  struct Reached {
    std::string problem;  // it refuses, or something here is wrong: no further call would help
    wan::Path path;       // else, where it is valid: it has answered
    wan::Bytes hello;
  };

  // Begins at once. What is referred to lives longer.
  LinkCaller(const RingPlan& plan, int site, const Message& hello, wan::Context& context);
  ~LinkCaller();

  Reached take();              // what has come of it, once
  void call();                 // again, after take()
  std::string reason() const;  // why it is not there yet
  void stop();                 // soon; the destructor waits for it

 private:
  void run();
  bool attempt();
  void fail(const std::string& problem);
  void wait_a_little(const std::string& reason);

  const RingPlan& plan_;
  const int site_;
  const Message& hello_;
  wan::Context& context_;
  const SitePlace& there_;
  double within_;  // of the next attempt (the thread's)

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool calling_ = true, stopping_ = false;
  std::string reason_;
  Reached reached_;
  std::thread thread_;  // last
};

}  // namespace maki::sites
