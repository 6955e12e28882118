#include "wan/net/copy/server.hpp"

#include <fmt/format.h>

#include <system_error>
#include <thread>

#include "wan/net/copy/receiver.hpp"
#include "wan/net/copy/sender.hpp"

namespace maki::wan::copy {
namespace {

constexpr double kSurplusOrder = 5;  // seconds that one too many has to say what it wants
constexpr double kLook = 0.05;       // seconds until it is seen that there is something else than newcomers

// "'a', 'b' and 3 more"
std::string list_of(const std::vector<std::string>& names) {
  constexpr std::size_t kShown = 3;
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), kShown); ++i)
    text += fmt::format("{}'{}'", i == 0 ? "" : ", ", printable(names[i], 200));
  return names.size() > kShown ? fmt::format("{} and {} more", text, names.size() - kShown) : text;
}

}  // namespace

Server::Server(const ServerOptions& options)
    : options_(options),
      log_(options.log),
      sessions_(options.limits, [this](Courier& courier, Guest& guest) { serve(courier, guest); }) {
  for (const auto& [identity, share] : options.shares) shares_.try_emplace(identity, share);
  if (options.others) others_.emplace(*options.others);
}

void Server::stop() {
  stopped_ = true;
  sessions_.stop();
}

void Server::run(Listener& listener) {
  while (!stopped_) {
    if (auto accepted = listener.accept_for(kLook)) try {
        const std::string peer = accepted->path.status().peer;
        const std::string name =
            accepted->name.empty() ? peer : fmt::format("{} ({})", printable(accepted->name), peer);
        sessions_.start(std::move(accepted->path), name, accepted->identity);
      } catch (const std::exception& error) {
        log_.mention(accepted->identity, fmt::format("a client is sent away: {}", error.what()));
      }
    sessions_.remove_ended();
    log_.catch_up();
  }
}

const Server::Opened* Server::opened(const Guest& guest) const {
  const auto found = shares_.find(guest.identity);
  if (found != shares_.end()) return &found->second;
  return others_ ? &*others_ : nullptr;
}

void Server::serve(Courier& courier, Guest& guest) {
  const Opened* own = opened(guest);
  const std::string holder = own && !own->share.holder.empty() ? own->share.holder : guest.identity;
  if (!holder.empty()) guest.name += ", " + printable(holder);
  log_.mention(guest.identity, fmt::format("{} is here", guest.name));
  try {
    while (serve_one(courier, guest)) guest.since = Guest::Clock::now();
    log_.mention(guest.identity, fmt::format("{} has left", guest.name));
  } catch (const std::exception& error) {
    courier.give_up();
    log_.mention(guest.identity, fmt::format("{} is gone: {}", guest.name, error.what()));
  }
}

// False where there are no more orders to come.
bool Server::serve_one(Courier& courier, Guest& guest) {
  const double patience = guest.surplus ? kSurplusOrder : options_.limits.order;
  const auto message = courier.receive_for(kControlTag, patience);
  if (!message) throw PathError("it asked for nothing", fmt::format("for {:g} s", patience));
  const Order order = decode_order(message->view());
  if (order.action == Order::Action::kBye && order.version == kVersion) return false;
  wait_for_turn(courier, guest);
  const Reply reply = check(order, guest);
  if (!reply.agreed) {
    courier.send(kControlTag, encode(reply));
    log_.mention(guest.identity, fmt::format("{} is refused: {}", guest.name, reply.reason));
    return true;
  }
  guest.copying = true;
  if (order.action == Order::Action::kPush)
    take_push(courier, guest, order);
  else
    give_pull(courier, guest, order);
  guest.copying = false;
  return true;
}

void Server::wait_for_turn(Courier& courier, const Guest& guest) {
  const auto due = Guest::Clock::now() + std::chrono::duration<double>(log_.turn(guest.identity));
  while (Guest::Clock::now() < due) {
    courier.check();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

Reply Server::check(const Order& order, const Guest& guest) const {
  Reply reply;
  const Opened* own = opened(guest);
  if (order.version != kVersion) {
    reply.reason = fmt::format("its copies have version {}, yours {}: use the same release on both sides", kVersion,
                               order.version);
  } else if (!own) {
    reply.reason = "it has no folder for you";
  } else if (order.action == Order::Action::kPush && own->share.read_only) {
    reply.reason = "it serves for reading only";
  } else if (guest.surplus) {
    reply.reason = "it has as many copies under way as it takes";
    reply.later = true;
  } else {
    reply.agreed = true;
  }
  return reply;
}

OnNote Server::failures_of(const Guest& guest, const char* what) {
  return [this, &guest, what](bool failed, const std::string& text) {
    if (failed) log_.mention(guest.identity, fmt::format("{} {}: {}", what, guest.name, text));
  };
}

// Each copy has a Root of its own: which folders are there may have changed since the last one.
void Server::take_push(Courier& courier, const Guest& guest, const Order& order) {
  log_.record(fmt::format("{} brings into '{}'", guest.name, printable(order.destination, 200)));
  const Root root(opened(guest)->root.folder(""));
  Progress progress;
  std::optional<Receiver> receiver;
  Reply reply{.agreed = true};
  try {
    receiver.emplace(courier, root, claims_,
                     Destination{.path = order.destination,
                                 .sole_file = order.sole_file,
                                 .checksum = order.checksum,
                                 .perms = options_.perms},
                     progress, failures_of(guest, "from"));
  } catch (const FileProblem& problem) {
    reply = {.agreed = false, .reason = problem.what()};
  }
  courier.send(kControlTag, encode(reply));
  if (receiver) log_.record(fmt::format("from {}: {}", guest.name, summary(receiver->run().counts)));
}

void Server::give_pull(Courier& courier, const Guest& guest, const Order& order) {
  log_.record(fmt::format("{} fetches {}", guest.name, list_of(order.sources)));
  const auto root = std::make_shared<const Root>(opened(guest)->root.folder(""));
  std::vector<Source> sources;
  std::vector<std::string> problems;
  for (const std::string& path : order.sources) try {
      sources.push_back(served_source(root, path));
    } catch (const FileProblem& problem) {
      problems.push_back(problem.what());
    }
  if (sources.empty()) {
    const std::string reason = problems.empty() ? "no file was named" : problems[0];
    courier.send(kControlTag, encode(Reply{.agreed = false, .reason = reason}));
    return;
  }
  Progress progress;
  Sender sender(courier, std::move(sources), progress, failures_of(guest, "to"), options_.batch);
  for (const std::string& problem : problems) sender.report_problem(problem);
  courier.send(kControlTag, encode(Reply{.agreed = true, .sole_file = sender.sole_file() && problems.empty()}));
  log_.record(fmt::format("to {}: {}", guest.name, summary(sender.run().counts)));
}

}  // namespace maki::wan::copy
