// A limited number of connections, by origin: an origin with too many displaces its own, nobody else's.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>

namespace maki::wan {

// Refers to its members and owns none. For one thread.
template <class Member>
class Crowd {
 public:
  // A member already there counts as new, and of this origin.
  void enter(const std::string& origin, Member& member) {
    leave(member);
    places_[&member] = {origin, ++last_};
    origins_[origin][last_] = &member;
  }

  void leave(Member& member) {  // no effect if it is not there
    const auto place = places_.find(&member);
    if (place == places_.end()) return;
    const auto group = origins_.find(place->second.origin);
    group->second.erase(place->second.turn);
    if (group->second.empty()) origins_.erase(group);
    places_.erase(place);
  }

  std::size_t size() const { return places_.size(); }

  // The oldest member of the largest origin; of several such, the oldest of all. There must be one.
  Member& surplus() const {
    const auto smaller = [](const auto& a, const auto& b) {
      const auto &one = a.second, &other = b.second;
      return one.size() != other.size() ? one.size() < other.size() : one.begin()->first > other.begin()->first;
    };
    return *std::max_element(origins_.begin(), origins_.end(), smaller)->second.begin()->second;
  }

 private:
  struct Place {
    std::string origin;
    std::uint64_t turn = 0;
  };
  std::map<Member*, Place> places_;
  std::map<std::string, std::map<std::uint64_t, Member*>> origins_;
  std::uint64_t last_ = 0;
};

}  // namespace maki::wan
