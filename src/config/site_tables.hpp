// What [sites] holds besides its keys: a table [sites.NAME] for each site, in it [sites.NAME.path] for the link from that
// site to the next one in the ring, and [sites.path] for all links, both with the keys of paths (text.hpp). The
// names of sites are the user's, so these tables stand beside the table of keys.
#pragma once

#include <string>
#include <vector>

#include "src/config/config.hpp"
#include "src/config/keys.hpp"
#include "src/config/text.hpp"

namespace maki {

struct SiteKey {
  const char* name;
  const char* meaning;
  std::string SiteAddress::*field;
};
const std::vector<SiteKey>& site_keys();

// [sites.`table`] `key` = value; path.KEY is a key of [sites.`table`.path]. Throws Error that says what was expected; the
// parser adds where.
void set_site_value(Config& config, const std::string& table, const std::string& key, const Value& value);

// What no single value can say: names and tables that do not fit together. Throws Error.
void check_sites(const Config& config);

// The tables as TOML, and what `maki config` says of them.
std::string site_tables_text(const Config& config);
std::string describe_site_tables();

// The link from the site `left` to the next one in the ring, as `maki wan` takes it: what that site's table leaves open is
// that of [sites.path] and sites.key. Without a name: links that have nothing of their own. Throws Error where nothing says
// who may be at the other end.
PathChoices site_path(const Config& config, const std::string& left = "");

// "sites.key=FILE", "sites.NAME.key=FILE" with absolute paths: keys are not printed, and a run that goes on needs them.
std::vector<std::string> key_settings(const Config& config);

// The table of a site, empty where there is none.
SiteAddress find_site(const Config& config, const std::string& name);
// Throws Error, naming the sites that there are.
int place_in_ring(const Config& config, const std::string& name);

}  // namespace maki
