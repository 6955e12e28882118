#include "wan/net/path/session_table.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <span>

#include "wan/net/secure/key.hpp"

namespace maki::wan {

SessionTable::SessionTable(const PathSettings& settings, const ListenerLimits& limits) : settings_(settings), limits_(limits) {
  if (limits_.streams_per_peer > 0) return;
  rlimit files{};
  const bool known = getrlimit(RLIMIT_NOFILE, &files) == 0;
  if (known && files.rlim_cur < files.rlim_max) {  // each stream is an open file
    const rlimit most{files.rlim_max, files.rlim_max};
    if (setrlimit(RLIMIT_NOFILE, &most) == 0) files = most;
  }
  limits_.streams_per_peer = known ? static_cast<int>(std::clamp<rlim_t>(files.rlim_cur / 4, kMaxStreams, 1 << 20)) : kMaxStreams;
}

Welcome SessionTable::refuse(Answer answer, const std::string& reason) {
  Welcome welcome;
  welcome.answer = answer;
  welcome.reason = reason;
  return welcome;
}

Welcome SessionTable::accept(const SessionId& session, int streams) const {
  Welcome welcome;
  welcome.session = session;
  welcome.streams = static_cast<std::uint32_t>(streams);
  welcome.unmatched_limit = settings_.unmatched_limit;
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
  if (const std::string why = too_many(identity, host, hello.is_new()); !why.empty()) return refuse(Answer::kBusy, why);
  return hello.is_new() ? answer_new(hello, identity, host) : answer_join(hello, identity);
}

// What a peer has too much of, over all of its sessions.
std::string SessionTable::too_many(const std::string& identity, const std::string& host, bool one_more) const {
  int sessions = one_more ? 1 : 0, streams = 1;
  for (const auto& [session, entry] : entries_) {
    if (entry.identity != identity || (identity.empty() && entry.host != host)) continue;
    ++sessions;
    const auto core = entry.core.lock();
    streams += core ? open_streams(core) : entry.settled ? 0 : 1;
  }
  const char* each = identity.empty() ? "insecure address" : "key";
  if (sessions > limits_.sessions_per_peer) return fmt::format("at most {} paths at once for one {}", limits_.sessions_per_peer, each);
  if (streams > limits_.streams_per_peer) return fmt::format("at most {} streams at once for one {}", limits_.streams_per_peer, each);
  return {};
}

Welcome SessionTable::answer_new(const Hello& hello, const std::string& identity, const std::string& host) {
  if (entries_.size() >= static_cast<std::size_t>(limits_.sessions)) return refuse(Answer::kBusy);
  const int streams = std::clamp(static_cast<int>(std::min<std::uint32_t>(hello.streams, kMaxStreams)), 1, limits_.streams_per_path);
  if (hello.epoch == 0 || hello.stream >= static_cast<std::uint32_t>(streams)) return refuse(Answer::kRefused, "a stream that cannot be");
  SessionId session{};
  while (session == SessionId{} || entries_.contains(session)) random_bytes(session);
  entries_[session] = {.identity = identity, .host = host, .core = {}};
  return accept(session, streams);
}

Welcome SessionTable::answer_join(const Hello& hello, const std::string& identity) {
  const auto found = entries_.find(hello.session);
  if (found == entries_.end()) return refuse(Answer::kUnknownSession);
  const Entry& entry = found->second;
  const auto bytes = [](const std::string& text) { return std::as_bytes(std::span(text)); };
  const auto core = entry.core.lock();
  // Somebody else's session is answered like none.
  if (!same_in_constant_time(bytes(entry.identity), bytes(identity)) || core == nullptr) return refuse(Answer::kUnknownSession);
  const long epoch = current_epoch(core, static_cast<int>(hello.stream));
  if (epoch < 0) return refuse(Answer::kUnknownSession);
  if (static_cast<long>(hello.epoch) <= epoch) return refuse(Answer::kStale);
  return accept(hello.session, limits_.streams_per_path);
}

void SessionTable::settle(const SessionId& session, const std::shared_ptr<PathCore>& core) {
  Entry& entry = entries_[session];
  entry.core = core;
  entry.settled = true;
}

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
    return core == nullptr || current_epoch(core, 0) < 0;
  });
}

}  // namespace maki::wan
