// Network namespaces with names (as `ip netns` makes them), and running things inside.
#pragma once

#include <string>

namespace maki::testbed {

// Why links cannot be emulated on this machine (no root, no TUN); empty where they can.
std::string why_not();

// Owns one named network namespace, with its loopback up. Throws wan::Error where it cannot be made.
class Namespace {
 public:
  explicit Namespace(const std::string& name);
  ~Namespace();  // ends the processes that are still inside
  Namespace(const Namespace&) = delete;

  const std::string& name() const { return name_; }
  // A setting such as "net.ipv4.tcp_rmem", of this namespace.
  void set(const std::string& setting, const std::string& value) const;
  std::string get(const std::string& setting) const;

 private:
  std::string name_;
};

// Moves the calling thread into a namespace, and back at its end. Threads and processes that it starts meanwhile stay
// inside.
class InsideNamespace {
 public:
  explicit InsideNamespace(const std::string& name);
  ~InsideNamespace();
  InsideNamespace(const InsideNamespace&) = delete;

 private:
  int before_ = -1;
};

void enter_namespace(const std::string& name);
// Removes the namespaces that a testbed left behind whose process is gone. How many.
int remove_stale();

// "maki-PID-what": remove_stale() knows them by it.
std::string namespace_name(const std::string& what);

}  // namespace maki::testbed
