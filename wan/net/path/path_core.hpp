// The working part of a Path: lives in one EventLoop, owned by handles, by its streams' callbacks and by the session table.
#pragma once

#include <memory>
#include <string>

#include "wan/net/path.hpp"
#include "wan/net/path/held_memory.hpp"
#include "wan/net/path/wire.hpp"
#include "wan/net/secure/channel.hpp"
#include "wan/net/socket/event_loop.hpp"

namespace maki::wan {

// What a listening side knows when it makes a path for a Hello with is_new().
struct AcceptedSession {
  SessionId session{};
  std::string identity;  // of the peer, authenticated
  std::string name;      // what it calls itself
  Hello hello;
  Address peer;
  PathSettings settings;  // of the Listener; `streams` and `unmatched_limit` as in the Welcome
  Holding promised;       // for the latter
};

// For the listening side (listener.cpp). make_accepted may be called from any thread.
std::shared_ptr<PathCore> make_accepted(EventLoop& loop, AcceptedSession session);
// Hands a greeted stream to its path: the Welcome has been sent in full. Any thread. `stream`, `epoch` as in the Hello.
void attach(const std::shared_ptr<PathCore>& core, int stream, unsigned epoch, std::unique_ptr<Channel> channel);
// How many streams have connections now, and whether this one has. Any thread.
int open_streams(const std::shared_ptr<PathCore>& core);
bool is_open(const std::shared_ptr<PathCore>& core, int stream);
// The epoch that `stream` has now (0: never connected), -1 where the path has ended. Any thread.
long current_epoch(const std::shared_ptr<PathCore>& core, int stream);

}  // namespace maki::wan
