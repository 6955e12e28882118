// The tables in [sites]: [sites.NAME] for each site, in it [sites.NAME.path] for the link from that site to the next
// one in the ring, and [sites.path] for all links, both with the keys of paths (text.hpp). The user names the sites, so
// these tables are not part of the table of keys.
#pragma once

#include <string>
#include <vector>

#include "src/config/config.hpp"
#include "src/config/keys.hpp"
#include "src/config/text.hpp"

namespace maki {

// [sites.`table`] `key` = value; path.KEY is a key of [sites.`table`.path]. Throws Error with the expected value; the
// parser adds the place.
void set_site_value(Config& config, const std::string& table, const std::string& key, const Value& value);

// Throws Error where names and tables do not fit together.
void check_sites(const Config& config);

// The tables as TOML, and their description in `maki config`.
std::string site_tables_text(const Config& config);
std::string describe_site_tables();

// The link from the site `left` to the next one in the ring, as `maki wan` takes it: settings missing in that site's
// table come from [sites.path] and sites.key. Without a name: links without settings of their own. Throws Error where
// neither a key nor certificates identify the other end.
PathChoices site_path(const Config& config, const std::string& left = "");

// "sites.key=FILE", "sites.NAME.key=FILE" with absolute paths: to_toml() leaves keys out, and a resumed run needs them.
std::vector<std::string> key_settings(const Config& config);

// The table of a site, empty where there is none.
SiteAddress find_site(const Config& config, const std::string& name);
// Throws Error that lists the known sites.
int place_in_ring(const Config& config, const std::string& name);

}  // namespace maki
