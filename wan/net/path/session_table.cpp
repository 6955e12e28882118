#include "wan/net/path/session_table.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <span>

#include "wan/net/secure/key.hpp"

namespace maki::wan {

SessionTable::SessionTable(const PathSettings& settings, const ListenerLimits& limits)
    : settings_(settings), limits_(limits) {
  HeldMemory::make_room(settings.unmatched_limit);
  if (limits_.streams_per_peer > 0) return;
  rlimit files{};
  const bool known = getrlimit(RLIMIT_NOFILE, &files) == 0;
  if (known && files.rlim_cur < files.rlim_max) {  // each stream is an open file
    const rlimit most{files.rlim_max, files.rlim_max};
    if (setrlimit(RLIMIT_NOFILE, &most) == 0) files = most;
  }
  limits_.streams_per_peer =
      known ? static_cast<int>(std::clamp<rlim_t>(files.rlim_cur / 4, kMaxStreams, 1 << 20)) : kMaxStreams;
}

Welcome SessionTable::refuse(Answer answer, const std::string& reason) {
  Welcome welcome;
  welcome.answer = answer;
  welcome.reason = reason;
  return welcome;
}

Welcome SessionTable::accept(const SessionId& session, const Entry& entry, int streams) const {
  Welcome welcome;
  welcome.session = session;
  welcome.streams = static_cast<std::uint32_t>(streams);
  welcome.unmatched_limit = entry.unmatched_limit;
  welcome.message_limit = settings_.message_limit;
  welcome.patience = settings_.patience;
  return welcome;
}

Welcome SessionTable::answer(const Hello& hello, const std::string& identity, const std::string& host) {
  if (hello.version != kProtocolVersion) return refuse(Answer::kVersion);
  if (hello.stream >= static_cast<std::uint32_t>(limits_.streams_per_path)) {
    return refuse(Answer::kRefused, fmt::format("at most {} streams a path", limits_.streams_per_path));
  }
  if (hello.is_new()) remove_ended();
  const Count there = count(identity, host);
  const char* each = identity.empty() ? "insecure address" : "key";
  if (there.sessions + (hello.is_new() ? 1 : 0) > limits_.sessions_per_peer)
    return refuse(Answer::kBusy, fmt::format("at most {} paths at once for one {}", limits_.sessions_per_peer, each));
  if (there.streams + (replaces(hello, identity) ? 0 : 1) > limits_.streams_per_peer)
    return refuse(Answer::kBusy, fmt::format("at most {} streams at once for one {}", limits_.streams_per_peer, each));
  return hello.is_new() ? answer_new(hello, identity, host, there) : answer_join(hello, identity);
}

// What a peer has, over all of its sessions.
SessionTable::Count SessionTable::count(const std::string& identity, const std::string& host) const {
  Count there;
  for (const auto& [session, entry] : entries_) {
    if (entry.identity != identity || (identity.empty() && entry.host != host)) continue;
    ++there.sessions;
    const auto core = entry.core.lock();
    there.streams += core ? core->open_streams() : entry.settled ? 0 : 1;
  }
  return there;
}

// A stream that comes again before its last connection is known to be lost counts once.
bool SessionTable::replaces(const Hello& hello, const std::string& identity) const {
  const auto found = hello.is_new() ? entries_.end() : entries_.find(hello.session);
  const auto core = found != entries_.end() && found->second.identity == identity ? found->second.core.lock() : nullptr;
  return core && core->is_open(static_cast<int>(hello.stream));
}

Welcome SessionTable::answer_new(const Hello& hello, const std::string& identity, const std::string& host,
                                 const Count& there) {
  if (entries_.size() >= static_cast<std::size_t>(limits_.sessions)) return refuse(Answer::kBusy);
  const int streams =
      std::clamp(static_cast<int>(std::min<std::uint32_t>(hello.streams, kMaxStreams)), 1, limits_.streams_per_path);
  if (hello.epoch == 0 || hello.stream >= static_cast<std::uint32_t>(streams))
    return refuse(Answer::kRefused, "a stream that cannot be");
  Entry entry{.identity = identity, .host = host, .core = {}, .promised = {}};
  const auto memory = HeldMemory::of(identity.empty() ? host : identity);
  const int others = std::max(0, limits_.sessions_per_peer - there.sessions - 1);
  entry.unmatched_limit = memory->room_for_path(settings_.unmatched_limit, static_cast<std::uint64_t>(others));
  if (entry.unmatched_limit == 0 || !entry.promised.grow_to(entry.unmatched_limit, memory))
    return refuse(Answer::kBusy, fmt::format("{} paths of this {} have all the memory that there is for it",
                                             there.sessions, identity.empty() ? "insecure address" : "key"));
  SessionId session{};
  while (session == SessionId{} || entries_.contains(session)) random_bytes(session);
  return accept(session, entries_[session] = std::move(entry), streams);
}

Welcome SessionTable::answer_join(const Hello& hello, const std::string& identity) {
  const auto found = entries_.find(hello.session);
  if (found == entries_.end()) return refuse(Answer::kUnknownSession);
  const Entry& entry = found->second;
  const auto bytes = [](const std::string& text) { return std::as_bytes(std::span(text)); };
  const auto core = entry.core.lock();
  // Somebody else's session is answered like none.
  if (!same_in_constant_time(bytes(entry.identity), bytes(identity)) || core == nullptr)
    return refuse(Answer::kUnknownSession);
  const long epoch = core->epoch_of(static_cast<int>(hello.stream));
  if (epoch < 0) return refuse(Answer::kUnknownSession);
  if (static_cast<long>(hello.epoch) <= epoch) return refuse(Answer::kStale);
  return accept(hello.session, entry, limits_.streams_per_path);
}

void SessionTable::settle(const SessionId& session, const std::shared_ptr<PathCore>& core) {
  Entry& entry = entries_[session];
  entry.core = core;
  entry.settled = true;
}

Holding SessionTable::take_promised(const SessionId& session) { return std::move(entries_[session].promised); }

void SessionTable::give_up(const SessionId& session) { entries_.erase(session); }

std::shared_ptr<PathCore> SessionTable::find(const SessionId& session) const {
  const auto found = entries_.find(session);
  return found == entries_.end() ? nullptr : found->second.core.lock();
}

// Only paths that live count.
void SessionTable::remove_ended() {
  std::erase_if(entries_, [](const auto& item) {
    const auto& entry = item.second;
    if (!entry.settled) return false;
    const auto core = entry.core.lock();
    return core == nullptr || core->epoch_of(0) < 0;
  });
}

}  // namespace maki::wan
