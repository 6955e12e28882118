// Progress of a copy: on a terminal one line that is overwritten, elsewhere a line every few seconds.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "wan/net/copy/message_channel.hpp"

namespace maki {

class CopyScreen {
 public:
  // Without progress lines where `quiet`; problems are always shown.
  CopyScreen(const wan::copy::Progress& progress, bool quiet);
  ~CopyScreen() { end(); }

  void note(bool failed, const std::string& text);  // any thread; after a hundred notes only the first of each kind
  void end();                                       // no line is overwritten any more

 private:
  void run();
  void draw();
  void wipe();

  wan::copy::Meter meter_;
  bool quiet_, terminal_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ended_ = false;
  bool drawn_ = false;
  int notes_ = 0, problems_ = 0;
  std::thread thread_;
};

}  // namespace maki
