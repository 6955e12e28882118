#include "src/timing/phase_timers.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/device/device.hpp"
#include "kernels/error.hpp"

namespace maki {

namespace {

// Number of spans that triggers a collection, for callers that never collect.
constexpr std::size_t kMostSpans = 1024;

void reset_seconds(PhaseTimers::Node& node) {
  node.seconds = 0;
  for (auto& child : node.children) reset_seconds(*child);
}

std::size_t widest_name(const PhaseTimers::Node& node, std::size_t depth) {
  std::size_t width = 2 * depth + node.name.size();
  for (const auto& child : node.children) width = std::max(width, widest_name(*child, depth + 1));
  return width;
}

void write_line(std::string& text, const std::string& name, std::size_t width, double seconds, double whole,
                const std::string& calls) {
  const double percent = whole > 0 ? 100 * seconds / whole : 0;
  text += fmt::format("{:<{}}  {:>10.3f} s  {:>5.1f} %  {:>9}\n", name, width, seconds, percent, calls);
}

// Time not in any child; the table has a line for it where it is large enough.
double unaccounted(const PhaseTimers::Node& node) {
  double rest = node.total_seconds;
  for (const auto& child : node.children) rest -= child->total_seconds;
  return rest;
}

void write_tree(std::string& text, const PhaseTimers::Node& node, std::size_t depth, std::size_t width, double whole) {
  const std::string indent(2 * depth, ' ');
  write_line(text, indent + node.name, width, node.total_seconds, whole, fmt::format("{}", node.calls));
  for (const auto& child : node.children) write_tree(text, *child, depth + 1, width, whole);
  const double rest = unaccounted(node);
  if (!node.children.empty() && rest > 0.005 * whole) write_line(text, indent + "  (rest)", width, rest, whole, "");
}

void list_phases(const PhaseTimers::Node& node, const std::string& path, std::vector<PhaseTime>& list) {
  for (const auto& child : node.children) {
    const std::string name = path.empty() ? child->name : path + '/' + child->name;
    list.push_back({name, child->seconds, child->total_seconds, child->calls});
    list_phases(*child, name, list);
  }
}

}  // namespace

PhaseTimers::PhaseTimers() : root_(std::make_unique<Node>()), current_(root_.get()) { root_->name = "total"; }

void PhaseTimers::enter(const char* name) {
  auto& siblings = current_->children;
  auto found = std::find_if(siblings.begin(), siblings.end(), [name](const auto& node) { return node->name == name; });
  if (found == siblings.end()) {
    siblings.push_back(std::make_unique<Node>());
    found = siblings.end() - 1;
    (*found)->name = name;
    (*found)->parent = current_;
  }
  current_ = found->get();
}

PhaseTimers::Scope::Scope(PhaseTimers& timers, const char* name) : timers_(timers) {
  begin_phase_range(name);
  timers.enter(name);
  begin_ = std::chrono::steady_clock::now();
}

PhaseTimers::Scope::Scope(PhaseTimers& timers, const char* name, const Stream& stream)
    : timers_(timers), stream_(&stream) {
  begin_phase_range(name);
  timers.enter(name);
  first_mark_ = timers.clock_.mark(stream);
}

PhaseTimers::Scope::~Scope() {
  end_phase_range();
  Node& node = *timers_.current_;
  ++node.calls;
  timers_.current_ = node.parent;
  if (stream_) try {
      timers_.spans_.push_back({&node, first_mark_, timers_.clock_.mark(*stream_)});
      if (timers_.current_ == timers_.root_.get() && timers_.spans_.size() > kMostSpans) timers_.collect();
      return;
    } catch (const Error&) {  // of the device: told of where its results are waited for
      return;
    }
  const double elapsed = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  node.seconds += elapsed;
  node.total_seconds += elapsed;
}

void PhaseTimers::collect() {
  for (const Span& span : spans_) {
    const double elapsed = clock_.seconds(span.from, span.to);
    span.node->seconds += elapsed;
    span.node->total_seconds += elapsed;
  }
  spans_.clear();
  if (current_ == root_.get()) clock_.clear();  // marks of open scopes stay
}

void PhaseTimers::reset() {
  collect();
  reset_seconds(*root_);
}

std::string PhaseTimers::table() const {
  double whole = 0;
  for (const auto& child : root_->children) whole += child->total_seconds;
  const std::size_t width = std::max<std::size_t>(widest_name(*root_, 0) + 2, 24);
  std::string text = fmt::format("{:<{}}  {:>12}  {:>7}  {:>9}\n", "phase", width, "time", "share", "calls");
  for (const auto& child : root_->children) write_tree(text, *child, 0, width, whole);
  write_line(text, root_->name, width, whole, whole, "");
  return text;
}

std::vector<PhaseTime> phase_times(const PhaseTimers& timers) {
  std::vector<PhaseTime> list;
  list_phases(timers.root(), "", list);
  return list;
}

}  // namespace maki
