// The owner of a file descriptor.
#pragma once

#include <unistd.h>

#include <utility>

namespace maki::wan {

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) : descriptor_(number) {}
  ~Descriptor() { close(); }
  Descriptor(Descriptor&& other) noexcept : descriptor_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    if (this == &other) return *this;
    close();
    descriptor_ = other.release();
    return *this;
  }
  int descriptor() const { return descriptor_; }
  bool open() const { return descriptor_ >= 0; }
  void close() {
    if (open()) ::close(release());
  }
  int release() { return std::exchange(descriptor_, -1); }  // the caller closes it

 private:
  int descriptor_ = -1;
};

using Socket = Descriptor;

}  // namespace maki::wan
