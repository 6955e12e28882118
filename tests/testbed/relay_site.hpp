// A relay at a site of the testbed, in a process of its own, for measurements through it.
#pragma once

#include <string>

#include "tests/testbed/measure.hpp"

namespace maki::testbed {

class RelaySite {
 public:
  // Forks: before there are threads. The relay listens at `address` in the namespace `space`. Throws wan::Error.
  RelaySite(const std::string& space, const std::string& address, const std::string& key_file,
            const std::string& congestion);
  ~RelaySite();
  RelaySite(const RelaySite&) = delete;
  std::uint16_t port() const { return port_; }
  double cpu_seconds() const;  // of the relay so far

 private:
  wan::Socket own_;
  pid_t child_ = -1;
  std::uint16_t port_ = 0;
};

}  // namespace maki::testbed
