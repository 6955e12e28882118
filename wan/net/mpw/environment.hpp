// What a program written for MPWide cannot say in its calls: keys and settings, from the environment.
#pragma once

#include <functional>
#include <string>

#include "wan/net/settings.hpp"

namespace maki::wan::mpw {

struct Environment {
  Security security;
  PathSettings settings;
  bool streams_given = false;  // by the settings; else the program's channels count
  std::string listen;          // the address to listen on; empty: every one
  double wait = 600;           // seconds until a peer that does not come is an error
};

// Looks a variable up; nullptr where it is not set.
using Lookup = std::function<const char*(const char*)>;

// MAKI_WAN_KEY, MAKI_WAN_INSECURE and MAKI_WAN_SETTINGS (mpw.h says what they hold). Throws SecurityError where there
// is neither key nor certificate nor leave to go without, Error for settings that do not fit.
Environment read_environment(const Lookup& lookup);

// "streams = 32, window = 4 MB": into `environment`. Throws Error, naming `source`.
void read_settings(const std::string& text, const std::string& source, Environment& environment);

}  // namespace maki::wan::mpw
