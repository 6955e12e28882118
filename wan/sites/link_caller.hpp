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
    std::string problem;  // the neighbour refuses, or something here is wrong: no further call would help
    wan::Path path;       // valid where the neighbour has answered
    wan::Bytes hello;
  };

  // Begins to call at once. All references have to outlive this.
  LinkCaller(const RingPlan& plan, int site, const Message& hello, wan::Context& context);
  ~LinkCaller();

  Reached take();              // the result of the calls, once
  void call();                 // begins to call again, after take()
  std::string reason() const;  // why the neighbour has not answered yet
  void stop();                 // asks the thread to end; the destructor waits for it

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
  double within_;  // time limit of the next attempt, seconds; used by the thread alone

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool calling_ = true, stopping_ = false;
  std::string reason_;
  Reached reached_;
  std::thread thread_;  // declared last: it uses all the others
};

}  // namespace maki::sites
