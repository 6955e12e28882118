#include "wan/net/copy/server.hpp"

#include <fmt/format.h>

#include "wan/net/copy/receiver.hpp"
#include "wan/net/copy/sender.hpp"

namespace maki::wan::copy {

Server::Server(const ServerOptions& options) : options_(options), root_(options.root) {}

Server::~Server() {
  stop();
  remove_ended(true);
}

void Server::stop() {
  stopped_ = true;
  const std::lock_guard lock(mutex_);
  for (const auto& session : sessions_) session->courier->give_up();
}

void Server::log(const std::string& line) const {
  if (options_.log) options_.log(line);
}

void Server::run(Listener& listener) {
  while (!stopped_) {
    if (auto accepted = listener.accept_for(0.5)) start(std::move(*accepted));
    remove_ended(false);
  }
  remove_ended(true);
}

void Server::start(Accepted accepted) {
  const std::string who = accepted.name.empty()
                              ? accepted.path.status().peer
                              : fmt::format("{} ({})", shown(accepted.name), accepted.path.status().peer);
  auto session = std::make_unique<Session>();
  session->courier = std::make_unique<PathCourier>(std::move(accepted.path));
  Session* running = session.get();
  const std::lock_guard lock(mutex_);
  if (stopped_) return;
  session->thread = std::thread([this, running, who] {
    serve(*running->courier, who);
    running->ended = true;
  });
  sessions_.push_back(std::move(session));
}

void Server::remove_ended(bool all) {
  std::list<std::unique_ptr<Session>> ended;
  {
    const std::lock_guard lock(mutex_);
    for (auto it = sessions_.begin(); it != sessions_.end();) {
      const auto next = std::next(it);
      if (all || (*it)->ended) ended.splice(ended.end(), sessions_, it);
      it = next;
    }
  }
  for (const auto& session : ended) session->thread.join();
}

void Server::serve(Courier& courier, const std::string& name) {
  log(fmt::format("{} is here", name));
  try {
    while (serve_one(courier, name)) {
    }
    log(fmt::format("{} has left", name));
  } catch (const std::exception& error) {
    courier.give_up();
    log(fmt::format("{} is gone: {}", name, error.what()));
  }
}

bool Server::serve_one(Courier& courier, const std::string& name) {
  const Order order = decode_order(courier.receive(kControlTag).view());
  const Reply reply = check(order);
  if (!reply.agreed) {
    courier.send(kControlTag, encode(reply));
    return true;
  }
  if (order.action == Order::Action::kPush) take_push(courier, name, order);
  if (order.action == Order::Action::kPull) give_pull(courier, name, order);
  return order.action != Order::Action::kBye;
}

Reply Server::check(const Order& order) const {
  Reply reply;
  if (order.version != kVersion)
    reply.reason = fmt::format("its copies have version {}, yours {}: use the same release on both sides", kVersion,
                               order.version);
  else if (order.action == Order::Action::kPush && options_.read_only)
    reply.reason = "it serves for reading only";
  else
    reply.agreed = true;
  return reply;
}

// Each copy has a Root of its own: which folders are there may have changed since the last one.
void Server::take_push(Courier& courier, const std::string& name, const Order& order) {
  const Root root(root_.folder(""));
  Progress progress;
  std::optional<Receiver> receiver;
  Reply reply{.agreed = true, .sole_file = false, .reason = ""};
  try {
    receiver.emplace(courier, root, claims_, Destination{order.destination, order.sole_file, order.checksum}, progress,
                     [&](bool failed, const std::string& text) {
                       if (failed) log(fmt::format("from {}: {}", name, text));
                     });
  } catch (const FileProblem& problem) {
    reply = {.agreed = false, .sole_file = false, .reason = problem.what()};
  }
  courier.send(kControlTag, encode(reply));
  if (receiver) log_end(name, "from", receiver->run());
}

void Server::give_pull(Courier& courier, const std::string& name, const Order& order) {
  const auto root = std::make_shared<const Root>(root_.folder(""));
  std::vector<Source> sources;
  std::vector<std::string> problems;
  for (const std::string& path : order.sources) try {
      sources.push_back(served_source(root, path));
    } catch (const FileProblem& problem) {
      problems.push_back(problem.what());
    }
  if (sources.empty()) {
    courier.send(kControlTag, encode(Reply{false, false, problems.empty() ? "no file was named" : problems[0]}));
    return;
  }
  Progress progress;
  Sender sender(
      courier, std::move(sources), progress,
      [&](bool failed, const std::string& text) {
        if (failed) log(fmt::format("to {}: {}", name, text));
      },
      options_.batch);
  for (const std::string& problem : problems) sender.report_problem(problem);
  courier.send(kControlTag, encode(Reply{true, sender.sole_file() && problems.empty(), ""}));
  log_end(name, "to", sender.run());
}

void Server::log_end(const std::string& name, const char* what, const CopyReport& report) const {
  log(fmt::format("{} {}: {}", what, name, summary(report.counts)));
}

std::string summary(const Counts& counts) {
  std::string text = fmt::format("{} file{} ({})", counts.files, counts.files == 1 ? "" : "s", size_text(counts.bytes));
  if (counts.folders > 0) text += fmt::format(" in {} folder{}", counts.folders, counts.folders == 1 ? "" : "s");
  if (counts.skipped > 0)
    text += fmt::format("; {} {} there already ({})", counts.skipped, counts.skipped == 1 ? "was" : "were",
                        size_text(counts.skipped_bytes));
  if (counts.failed > 0) text += fmt::format("; {} failed", counts.failed);
  return text;
}

}  // namespace maki::wan::copy
