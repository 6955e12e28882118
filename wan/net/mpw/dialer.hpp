// Calls a peer until it answers, in the background: a side that both calls and listens may be called meanwhile.
#pragma once

#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "wan/net/path.hpp"

namespace maki::wan::mpw {

struct DialerPlan {
  Endpoint peer;
  Security security;
  PathSettings settings;
  std::string name;    // what we call ourselves
  double attempt = 5;  // seconds
  bool once = false;   // a single attempt
};

class Dialer {
 public:
  explicit Dialer(DialerPlan plan);
  ~Dialer();  // waits for the attempt under way
  // Ends without waiting: the attempt under way ends by itself, before end_all() returns.
  static void leave(std::unique_ptr<Dialer> dialer);
  static void end_all();

  // The path, once. Throws where there is no hope: the peer refuses us, or the one attempt is over.
  std::optional<Path> take();
  void again();  // what take() gave was no good
  std::string last_failure() const;

 private:
  void run();
  void stop();

  const DialerPlan plan_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false, wanted_ = true, again_ = false;
  std::optional<Path> path_;
  std::exception_ptr hopeless_;
  std::string last_failure_;
  std::thread thread_;
};

}  // namespace maki::wan::mpw
