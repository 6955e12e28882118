// The paths that a listener has taken in, by their session ids; decides what a Hello is answered. Runs in one loop.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "wan/net/listener.hpp"
#include "wan/net/path/held_memory.hpp"
#include "wan/net/path/path_core.hpp"
#include "wan/net/path/wire.hpp"

namespace maki::wan {

class SessionTable {
 public:
  SessionTable(const PathSettings& settings, const ListenerLimits& limits);

  // A new session's place is taken by a Welcome, until settle() or give_up(). `host`: where the peer is, which it
  // counts by where it has no identity.
  Welcome answer(const Hello& hello, const std::string& identity, const std::string& host);
  void settle(const SessionId& session, const std::shared_ptr<PathCore>& core);
  void give_up(const SessionId& session);
  Holding take_promised(const SessionId& session);  // before settle(): what the Welcome promised, for the path to hold
  std::shared_ptr<PathCore> find(const SessionId& session) const;

  static Welcome refuse(Answer answer, const std::string& reason = "");

 private:
  struct Entry {
    std::string identity, host;
    std::weak_ptr<PathCore> core;
    bool settled = false;
    std::uint64_t unmatched_limit = 0;  // as in its Welcome
    Holding promised;
  };
  struct Count {
    int sessions = 0, streams = 0;
  };

  Welcome accept(const SessionId& session, const Entry& entry, int streams) const;
  Welcome answer_new(const Hello& hello, const std::string& identity, const std::string& host, const Count& there);
  Welcome answer_join(const Hello& hello, const std::string& identity);
  Count count(const std::string& identity, const std::string& host) const;
  bool replaces(const Hello& hello, const std::string& identity) const;
  void remove_ended();

  PathSettings settings_;
  ListenerLimits limits_;
  std::map<SessionId, Entry> entries_;
};

}  // namespace maki::wan
