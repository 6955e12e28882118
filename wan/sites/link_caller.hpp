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
  struct Result {
    std::string problem;  // why no further call would help: a refusal, or an error on this side; empty: none
    wan::Path path;       // valid once the neighbour has answered
    wan::Bytes hello;
  };

  // Begins to call at once. All references have to outlive this.
  LinkCaller(const RingPlan& plan, int site, const Message& hello, wan::Context& context);
  ~LinkCaller();

  Result take_result();        // the result, once there is one; then empty
  void retry();                // calls again, after take_result()
  std::string reason() const;  // why the neighbour has not answered yet
  void stop();                 // asks the thread to end; the destructor waits for it

 private:
  void run();
  bool attempt();
  void fail(const std::string& problem);
  void pause(const std::string& reason);

  const RingPlan& plan_;
  const int site_;
  const Message& hello_;
  wan::Context& context_;
  const SitePlace& peer_;
  double attempt_limit_;  // time limit of the next attempt, seconds; used by the thread alone

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool calling_ = true, stopping_ = false;
  std::string reason_;
  Result result_;
  std::thread thread_;  // declared last: it uses all the others
};

}  // namespace maki::sites
