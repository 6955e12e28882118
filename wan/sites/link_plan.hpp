// The links of one site: with whom, by which settings, and with whose key.
#pragma once

#include <string>
#include <vector>

#include "wan/sites/ring_plan.hpp"

namespace maki::sites {

// Of this site: the one on the right first; two sites have one.
std::vector<int> neighbours(const RingPlan& plan);
// Whether a neighbour calls this site; else this site calls it. Throws Error where neither can be called.
bool calls_us(const RingPlan& plan, int neighbour);
// What the site on the left has for the way to the next one, else what all links have. The same at both ends, but for the
// name that each calls itself by: its own in the ring, unless the settings have another.
LinkPlan link_to(const RingPlan& plan, int neighbour);

// What this site listens with for all neighbours that call it: all their keys, each once, and room for the largest of
// their settings. Throws wan::SecurityError for keys that cannot be used.
LinkPlan listening_plan(const RingPlan& plan);

// Of a neighbour's link, as a path tells it of its peer; empty where links have no keys. A neighbour is who its key says
// and not who it says: another site of the ring may hold a key that this one knows. Throws wan::SecurityError.
std::string key_id(const LinkPlan& link);
// For the user, where both neighbours of this site hold the same key, or where certificates do not tell them apart; empty
// otherwise. Throws wan::SecurityError.
std::string shared_key_warning(const RingPlan& plan);

}  // namespace maki::sites
