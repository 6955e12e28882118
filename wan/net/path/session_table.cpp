#include "wan/net/path/session_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "wan/net/secure/key.hpp"

namespace maki::wan {

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

Welcome SessionTable::answer(const Hello& hello, const std::string& identity) {
  if (hello.version != kProtocolVersion) return refuse(Answer::kVersion);
  if (hello.stream >= static_cast<std::uint32_t>(limits_.streams_per_path)) {
    return refuse(Answer::kRefused, fmt::format("at most {} streams a path", limits_.streams_per_path));
  }
  return hello.is_new() ? answer_new(hello, identity) : answer_join(hello, identity);
}

Welcome SessionTable::answer_new(const Hello& hello, const std::string& identity) {
  remove_ended();
  if (entries_.size() >= static_cast<std::size_t>(limits_.sessions)) return refuse(Answer::kBusy);
  const int streams = std::clamp(static_cast<int>(std::min<std::uint32_t>(hello.streams, kMaxStreams)), 1, limits_.streams_per_path);
  if (hello.epoch == 0 || hello.stream >= static_cast<std::uint32_t>(streams)) return refuse(Answer::kRefused, "a stream that cannot be");
  SessionId session{};
  while (session == SessionId{} || entries_.contains(session)) random_bytes(session);
  entries_[session].identity = identity;
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
