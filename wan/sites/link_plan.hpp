// The links of one site: neighbours, settings and keys.
#pragma once

#include <string>
#include <vector>

#include "wan/sites/ring_plan.hpp"

namespace maki::sites {

// The neighbours of this site, the right one first; in a ring of two sites there is one.
std::vector<int> neighbours(const RingPlan& plan);
// Whether a neighbour calls this site; else this site calls it. Throws Error where neither can be called.
bool calls_us(const RingPlan& plan, int neighbour);
// Settings of the link to a neighbour: SitePlace::onward of its left site, else those of all links. The same at both
// ends but for the name by which each end introduces itself: its name in the ring, unless the settings have another.
LinkPlan link_to(const RingPlan& plan, int neighbour);

// Settings for the listener of this site: the keys of all neighbours that call it, each once, and the largest of their
// settings. Throws wan::SecurityError for unusable keys.
LinkPlan listening_plan(const RingPlan& plan);

// The id of the key of a neighbour's link, as a path gives it for its peer; empty where links have no keys. Neighbours
// are recognised by their keys, not by the names they give: another site of the ring may hold a key that this one
// knows.
// Throws wan::SecurityError.
std::string key_id(const LinkPlan& link);
// A warning for the user where both neighbours of this site hold the same key, or where certificates do not distinguish
// them; else empty. Throws wan::SecurityError.
std::string shared_key_warning(const RingPlan& plan);

}  // namespace maki::sites
