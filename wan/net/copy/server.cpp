#include "wan/net/copy/server.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>
#include <thread>
#include <vector>

#include "wan/net/copy/receiver.hpp"
#include "wan/net/copy/sender.hpp"
#include "wan/net/error.hpp"

namespace maki::wan::copy {

// ---- connected clients ---------------------------------------------------------------------------------------------

namespace {

constexpr std::chrono::seconds kIdle(5);  // without an order: as long as a new client's may be in flight
constexpr double kGone = 15;              // seconds that a client without a stream has to come back

}  // namespace

void Server::stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  for (const auto& session : sessions_) dismiss(*session);
}

void Server::start(Accepted& accepted) {
  auto session = std::make_unique<Session>();
  const std::string peer = accepted.path.status().peer;
  session->client.name = accepted.name.empty() ? peer : fmt::format("{} ({})", printable(accepted.name), peer);
  session->client.identity = accepted.identity;
  const std::lock_guard lock(mutex_);
  auto& under_way = under_way_[accepted.identity];
  if (!under_way) under_way = std::make_shared<UnderWay>(0);
  session->channel = std::make_shared<MessageChannel>(std::move(accepted.path), under_way);
  session->client.surplus = !make_room(accepted.identity);
  session->thread = std::jthread([this, running = session.get()] { host(*running); });
  if (stopped_) dismiss(*session);
  sessions_.push_back(std::move(session));
}

// Also closes the path, which may wait for the peer; no other thread does.
void Server::host(Session& session) {
  std::shared_ptr<MessageChannel> channel;
  {
    const std::lock_guard lock(mutex_);
    channel = session.channel;
  }
  serve(*channel, session.client);
  {
    const std::lock_guard lock(mutex_);
    session.channel.reset();
  }
  channel.reset();
  session.ended = true;
}

// With mutex_ held. False if there is no place for this one.
bool Server::make_room(const std::string& identity) {
  std::map<std::string, int> count;
  int all = 0;
  for (const auto& session : sessions_)
    if (session->counts()) ++count[session->client.identity], ++all;
  const int own = count[identity];
  const bool among_own = own >= options_.limits.of_each;
  if (!among_own && all < options_.limits.all) return true;
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

bool Server::is_idle(const Session& session) {
  if (!session.client.copying && ClientState::Clock::now() - session.client.since.load() > kIdle) return true;
  const PathStatus status = session.channel->path().status();
  return status.streams_up == 0 && status.silent > kGone;
}

// With mutex_ held. The goodbye may take a while.
void Server::dismiss(Session& session) {
  if (!session.channel || session.farewell.joinable()) return;
  session.leaving = true;
  const auto leave = [&session](std::shared_ptr<MessageChannel> channel) {
    channel->give_up();
    channel.reset();
    session.leaving = false;
  };
  try {
    session.farewell = std::jthread(leave, session.channel);
  } catch (const std::system_error&) {  // out of threads
    leave(session.channel);
  }
}

void Server::remove_ended() {
  std::vector<std::unique_ptr<Session>> ended;  // their threads are joined after the lock
  const std::lock_guard lock(mutex_);
  std::erase_if(sessions_, [&](auto& session) {
    if (!session->ended || session->leaving) return false;
    ended.push_back(std::move(session));
    return true;
  });
}

// ---- orders --------------------------------------------------------------------------------------------------------

namespace {

constexpr double kSurplusOrder = 5;  // seconds that a surplus client has to send its order
constexpr double kLook = 0.05;       // seconds between checks for other work than new clients

// "'a', 'b' and 3 more"
std::string list_of(const std::vector<std::string>& names) {
  constexpr std::size_t kShown = 3;
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), kShown); ++i)
    text += fmt::format("{}'{}'", i == 0 ? "" : ", ", printable(names[i], 200));
  return names.size() > kShown ? fmt::format("{} and {} more", text, names.size() - kShown) : text;
}

}  // namespace

Server::Server(const ServerOptions& options) : options_(options), log_(options.log) {
  for (const auto& [identity, share] : options.shares) shares_.try_emplace(identity, share);
  if (options.others) others_.emplace(*options.others);
}

void Server::run(Listener& listener) {
  while (!stopped_) {
    if (auto accepted = listener.accept_for(kLook)) try {
        start(*accepted);
      } catch (const std::exception& error) {
        log_.mention(fmt::format("a client is sent away: {}", error.what()), accepted->identity);
      }
    remove_ended();
  }
}

const Server::Opened* Server::opened(const ClientState& client) const {
  const auto found = shares_.find(client.identity);
  if (found != shares_.end()) return &found->second;
  return others_ ? &*others_ : nullptr;
}

void Server::serve(MessageChannel& channel, ClientState& client) {
  const Opened* own = opened(client);
  const std::string holder = own && !own->share.holder.empty() ? own->share.holder : client.identity;
  if (!holder.empty()) client.name += ", " + printable(holder);
  log_.mention(fmt::format("{} is here", client.name), client.identity);
  try {
    while (serve_one(channel, client)) {
    }
    log_.mention(fmt::format("{} has left", client.name), client.identity);
  } catch (const std::exception& error) {
    channel.give_up();
    log_.mention(fmt::format("{} is gone: {}", client.name, error.what()), client.identity);
  }
}

// False where there are no more orders to come.
bool Server::serve_one(MessageChannel& channel, ClientState& client) {
  const double patience = client.surplus ? kSurplusOrder : options_.limits.order;
  const auto message = channel.receive_for(kControlTag, patience);
  if (!message) throw PathError("it asked for nothing", fmt::format("for {:g} s", patience));
  const Order order = decode_order(message->view());
  if (order.action == Order::Action::kBye && order.version == kVersion) return false;
  wait_for_turn(channel, client);
  const Reply reply = check(order, client);
  if (reply.word != Reply::Word::kAgreed) {
    channel.send(kControlTag, encode(reply));
    log_.mention(fmt::format("{} is refused: {}", client.name, reply.reason), client.identity);
    return true;
  }
  client.copying = true;
  if (order.action == Order::Action::kPush)
    take_push(channel, client, order);
  else
    give_pull(channel, client, order);
  client.since = ClientState::Clock::now();  // before `copying`: an idle client is sent away
  client.copying = false;
  return true;
}

double Turns::take(const std::string& identity) {
  constexpr auto kEach = std::chrono::duration_cast<Clock::duration>(std::chrono::seconds(1)) / kASecond;
  const std::lock_guard lock(mutex_);
  const auto now = Clock::now();
  auto& due = due_[identity];
  due = std::max(due, now - kBurst * kEach) + kEach;
  return std::chrono::duration<double>(due - now).count();
}

void Server::wait_for_turn(MessageChannel& channel, const ClientState& client) {
  const auto due = ClientState::Clock::now() + std::chrono::duration<double>(turns_.take(client.identity));
  while (ClientState::Clock::now() < due) {
    channel.check();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

Reply Server::check(const Order& order, const ClientState& client) const {
  Reply reply;
  const Opened* own = opened(client);
  if (order.version != kVersion) {
    reply.reason = fmt::format("its copies have version {}, yours {}: use the same release on both sides", kVersion,
                               order.version);
  } else if (!own) {
    reply.reason = "it has no folder for you";
  } else if (order.action == Order::Action::kPush && own->share.read_only) {
    reply.reason = "it serves for reading only";
  } else if (client.surplus) {
    reply.reason = "it has as many copies under way as it takes";
    reply.word = Reply::Word::kLater;
  } else {
    reply.word = Reply::Word::kAgreed;
  }
  return reply;
}

OnNote Server::failures_of(const ClientState& client, const char* what) {
  return [this, &client, what](bool failed, const std::string& text) {
    if (failed) log_.mention(fmt::format("{} {}: {}", what, client.name, text), client.identity);
  };
}

// Each copy has a Root of its own, since the set of folders may have changed since the last one.
void Server::take_push(MessageChannel& channel, const ClientState& client, const Order& order) {
  log_.record(fmt::format("{} brings into '{}'", client.name, printable(order.destination, 200)));
  const Root root(opened(client)->root.folder(""));
  Progress progress;
  std::optional<Receiver> receiver;
  Reply reply{.word = Reply::Word::kAgreed};
  try {
    receiver.emplace(channel, root, leases_,
                     Destination{.path = order.destination,
                                 .sole_file = order.sole_file,
                                 .checksum = order.checksum,
                                 .perms = options_.perms},
                     progress, failures_of(client, "from"));
  } catch (const FileProblem& problem) {
    reply = {.word = Reply::Word::kRefused, .reason = problem.what()};
  }
  channel.send(kControlTag, encode(reply));
  if (receiver) log_.record(fmt::format("from {}: {}", client.name, summary(receiver->run())));
}

void Server::give_pull(MessageChannel& channel, const ClientState& client, const Order& order) {
  log_.record(fmt::format("{} fetches {}", client.name, list_of(order.sources)));
  const auto root = std::make_shared<const Root>(opened(client)->root.folder(""));
  std::vector<Source> sources;
  std::vector<std::string> problems;
  for (const std::string& path : order.sources) try {
      sources.push_back(served_source(root, path));
    } catch (const FileProblem& problem) {
      problems.push_back(problem.what());
    }
  if (sources.empty()) {
    const std::string reason = problems.empty() ? "no file was named" : problems[0];
    channel.send(kControlTag, encode(Reply{.reason = reason}));
    return;
  }
  Progress progress;
  Sender sender(channel, std::move(sources), progress, failures_of(client, "to"), options_.batch);
  for (const std::string& problem : problems) sender.report_problem(problem);
  channel.send(kControlTag,
               encode(Reply{.word = Reply::Word::kAgreed, .sole_file = sender.sole_file() && problems.empty()}));
  log_.record(fmt::format("to {}: {}", client.name, summary(sender.run())));
}

}  // namespace maki::wan::copy
