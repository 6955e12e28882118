#include "tests/gpu_model/report.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <set>
#include <utility>

namespace gpu_model {
namespace {

struct Book {
  std::mutex mutex;
  std::vector<Fault> open;
  std::set<std::string> told;
  std::size_t count = 0;
  bool written = true;
};

Book& book() {
  static auto* instance = new Book;  // faults may be found until the very end
  return *instance;
}

// Faults that nobody took make the program fail, whatever it returned.
void at_exit() {
  Book& b = book();
  if (b.open.empty()) return;
  std::fprintf(stderr, "GPU model: %zu fault%s found\n", b.count, b.count == 1 ? "" : "s");
  std::fflush(nullptr);
  _exit(86);
}

// The part of a fault's place that does not change from thread to thread.
std::string without_thread(const std::string& where) {
  const auto block = where.find(", block (");
  if (block == std::string::npos) return where;
  const auto thread = where.find("thread (", block);
  const auto end = where.find(')', thread);
  return where.substr(0, block) + where.substr(std::min(end, where.size()));
}

}  // namespace

void report(Fault fault) {
  Book& b = book();
  const std::lock_guard lock(b.mutex);
  [[maybe_unused]] static const int registered = std::atexit(at_exit);
  ++b.count;
  // Of each place once.
  const bool in_kernel = fault.where.find(", block (") != std::string::npos;
  const std::string key = fault.kind + without_thread(fault.where) + (in_kernel ? "" : fault.text);
  if (!b.told.insert(key).second) return;
  if (b.written) std::fprintf(stderr, "GPU model: %s\n", to_string(fault).c_str());
  b.open.push_back(std::move(fault));
}

void write_faults(bool yes) { book().written = yes; }

std::vector<Fault> take_faults() {
  Book& b = book();
  const std::lock_guard lock(b.mutex);
  b.told.clear();
  b.count = 0;
  return std::exchange(b.open, {});
}

}  // namespace gpu_model
