#include "wan/net/mpw/link.hpp"

namespace maki::wan::mpw {
namespace {

constexpr double kCloseSeconds = 60;

}  // namespace

Link::Link(Path path, std::shared_ptr<SharedListener> listener, std::string name, int channels)
    : path_(std::move(path)), shared_listener_(std::move(listener)), name_(std::move(name)), channels_(channels),
      open_channels_(channels) {}

template <class Use>
auto Link::with_path(Use use) {
  const std::lock_guard lock(mutex_);
  if (!path_.valid()) throw PathError("The path to " + name_ + " is closed", "its channels were closed here");
  return use(path_);
}

Request Link::start_send(Tag tag, std::span<const std::byte> message) {
  return with_path([&](Path& path) { return path.start_send(tag, message); });
}

Request Link::start_receive(Tag tag, std::span<std::byte> buffer) {
  return with_path([&](Path& path) { return path.start_receive(tag, buffer); });
}

Request Link::start_receive_any(Tag tag, std::size_t limit) {
  return with_path([&](Path& path) { return path.start_receive_any(tag, limit); });
}

void Link::change(const PathSettings& settings) {
  with_path([&](Path& path) { path.change(settings); });
}

PathSettings Link::settings() {
  return with_path([](Path& path) { return path.settings(); });
}

PathStatus Link::status() {
  return with_path([](Path& path) { return path.status(); });
}

bool Link::live() {
  try {
    change(settings());  // throws once the path is over
    return true;
  } catch (const Error&) {
    return false;
  }
}

void Link::close() {
  Path path;
  std::shared_ptr<SharedListener> listener;
  {
    const std::lock_guard lock(mutex_);
    path = std::move(path_);
    path_ = Path();
    listener = std::move(shared_listener_);
  }
  if (path.valid()) path.close(kCloseSeconds);
}

void Link::leave() {
  bool last = false;
  {
    const std::lock_guard lock(mutex_);
    last = --open_channels_ == 0;
  }
  if (last) close();
}

void Link::come_back() {
  const std::lock_guard lock(mutex_);
  ++open_channels_;
}

}  // namespace maki::wan::mpw
