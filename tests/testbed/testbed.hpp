// Sites, each a network namespace, joined by emulated links.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <vector>

#include "tests/testbed/link.hpp"
#include "tests/testbed/namespaces.hpp"

namespace maki::testbed {

struct TestbedSettings {
  int sites = 2;
  // Of a line 0 - 1 - 2 ... sites that are not neighbours cannot reach each other (relays); of a ring the last one is
  // the neighbour of the first.
  bool ring = false;
  LinkSettings link;
  // Of each link in place of link.rate, that from site 0 to site 1 first, in a ring that from the last site to the
  // first at the end; empty: all alike.
  std::vector<double> rates;
  // Of each site's kernel, by name. Empty: left as the namespace starts. "net.core.*" belongs to all and is not
  // touched.
  std::map<std::string, std::string> kernel;
};

// TestbedSettings::kernel with receive and send limits (bytes); 0: left alone.
std::map<std::string, std::string> tcp_limits(std::size_t rmem, std::size_t wmem);

class Testbed {
 public:
  // Throws wan::Error where it cannot be made (ask why_not() before).
  explicit Testbed(const TestbedSettings& settings);

  struct Link {
    int a, b;
    EmulatedLink link;
  };
  int sites() const { return static_cast<int>(spaces_.size()); }
  const Namespace& site(int i) const { return spaces_.at(static_cast<std::size_t>(i)); }
  std::string address(int i) const;  // IPv4, of the site on all its links
  std::string address6(int i) const;
  const std::vector<Link>& links() const { return links_; }

 private:
  std::deque<Namespace> spaces_;
  std::vector<Link> links_;  // ends before the namespaces do
};

// What all links have done, as a table.
std::string counters_text(const Testbed& testbed);

}  // namespace maki::testbed
