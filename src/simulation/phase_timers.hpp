// A tree of timers: where the time of a step goes.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace maki {

// Scopes nest: a Scope opened while another is open becomes its child. Not for use from several threads.
class PhaseTimers {
 public:
  struct Node {
    std::string name;
    double seconds = 0;        // since the last reset
    double total_seconds = 0;  // since the start
    std::uint64_t calls = 0;
    Node* parent = nullptr;
    std::vector<std::unique_ptr<Node>> children;
  };

  class Scope {
   public:
    Scope(PhaseTimers& timers, const char* name);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    PhaseTimers& timers_;
    std::chrono::steady_clock::time_point begin_;
  };

  PhaseTimers();
  void reset();  // seconds back to 0, totals kept
  const Node& root() const { return *root_; }
  std::string table() const;  // aligned text, one line a node, with percentages

 private:
  std::unique_ptr<Node> root_;
  Node* current_;
};

}  // namespace maki
