#include "wan/net/copy/sessions.hpp"

#include <algorithm>

namespace maki::wan::copy {
namespace {

constexpr std::chrono::seconds kIdle(5);  // an order is on its way at first
constexpr double kGone = 15;              // seconds that a client without a stream may need to come back

}  // namespace

Sessions::~Sessions() {
  stop();
  for (const auto& session : sessions_) {
    session->thread.join();
    if (session->farewell.joinable()) session->farewell.join();
  }
}

void Sessions::stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  for (const auto& session : sessions_) dismiss(*session);
}

void Sessions::start(Path path, const std::string& name, const std::string& identity) {
  auto session = std::make_unique<Session>();
  session->client.name = name;
  session->client.identity = identity;
  const std::lock_guard lock(mutex_);
  auto& under_way = under_way_[identity];
  if (!under_way) under_way = std::make_shared<UnderWay>(0);
  session->channel = std::make_shared<PathChannel>(std::move(path), under_way);
  session->client.surplus = !make_room(identity);
  session->thread = std::thread([this, running = session.get()] { host(*running); });
  if (stopped_) dismiss(*session);
  sessions_.push_back(std::move(session));
}

// The path is closed here, which may wait for the peer: nobody else does.
void Sessions::host(Session& session) {
  std::shared_ptr<PathChannel> channel;
  {
    const std::lock_guard lock(mutex_);
    channel = session.channel;
  }
  serve_(*channel, session.client);
  {
    const std::lock_guard lock(mutex_);
    session.channel.reset();
  }
  channel.reset();
  session.ended = true;
}

// With mutex_ held. False where this one is too many.
bool Sessions::make_room(const std::string& identity) {
  std::map<std::string, int> count;
  int all = 0;
  for (const auto& session : sessions_)
    if (session->counts()) ++count[session->client.identity], ++all;
  const int own = count[identity];
  const bool among_own = own >= limits_.of_each;
  if (!among_own && all < limits_.all) return true;
  const auto give_way = [&](const auto& may) {
    const auto found = std::find_if(sessions_.begin(), sessions_.end(),
                                    [&](const auto& session) { return session->counts() && may(*session); });
    if (found != sessions_.end()) dismiss(**found);
    return found != sessions_.end();
  };
  if (give_way([&](const Session& session) {
        return (!among_own || session.client.identity == identity) && is_idle(session);
      }))
    return true;
  const auto most =
      std::max_element(count.begin(), count.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  if (among_own || most->second <= own + 1) return false;
  return give_way([&](const Session& session) { return session.client.identity == most->first; });
}

bool Sessions::is_idle(const Session& session) {
  if (!session.client.copying && ClientState::Clock::now() - session.client.since.load() > kIdle) return true;
  const PathStatus status = session.channel->path().status();
  return status.streams_up == 0 && status.silent > kGone;
}

// With mutex_ held. Saying goodbye may take a while.
void Sessions::dismiss(Session& session) {
  if (!session.channel || session.farewell.joinable()) return;
  session.leaving = true;
  session.farewell = std::thread([&session, channel = session.channel]() mutable {
    channel->give_up();
    channel.reset();
    session.leaving = false;
  });
}

void Sessions::remove_ended() {
  std::list<std::unique_ptr<Session>> ended;
  {
    const std::lock_guard lock(mutex_);
    for (auto it = sessions_.begin(); it != sessions_.end();) {
      const auto next = std::next(it);
      if ((*it)->ended && !(*it)->leaving) ended.splice(ended.end(), sessions_, it);
      it = next;
    }
  }
  for (const auto& session : ended) {
    session->thread.join();
    if (session->farewell.joinable()) session->farewell.join();
  }
}

}  // namespace maki::wan::copy
