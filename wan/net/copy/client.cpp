#include "wan/net/copy/client.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>

#include "wan/net/copy/receiver.hpp"
#include "wan/net/copy/sender.hpp"
#include "wan/net/error.hpp"

namespace maki::wan::copy {
namespace {

Reply ask(MessageChannel& channel, const Order& order) {
  Bytes message = encode(order);
  if (order.sources.size() > kMaxSources || message.size > kMaxMessage)
    throw Error("too many files are named at once", fmt::format("{}", order.sources.size()),
                "name the folder that they are in");
  const Reply reply = [&] {
    try {
      channel.send(kControlTag, std::move(message));
      return decode_reply(channel.receive(kControlTag).view());
    } catch (const PathError& error) {
      throw PathError(fmt::format("{} did not answer as a server of files does", channel.peer()), error.what(),
                      "see that 'maki wan serve' runs there, and what it says");
    }
  }();
  if (reply.word == Reply::Word::kAgreed) return reply;
  const std::string reason = printable(reply.reason);
  if (reply.word == Reply::Word::kLater)
    throw PathError(fmt::format("{} cannot take the copy now", channel.peer()), reason, "try again later");
  throw Error(fmt::format("{} refuses the copy", channel.peer()), reason);
}

// The names under which these paths may arrive; none where any may.
std::set<std::string, std::less<>> names_of(const std::vector<std::string>& paths, bool sole_file) try {
  std::set<std::string, std::less<>> names;
  bool any = false;
  for (const std::string& path : paths) {
    const std::string_view end = last_of(path);
    any = any || (!sole_file && (end.empty() || end == "."));
    names.emplace(last_of(relative_path(path)));
  }
  if (sole_file && (paths.size() != 1 || names.contains("")))
    throw ProtocolError("the peer sends one file where others were asked for");
  return any ? std::set<std::string, std::less<>>() : names;
} catch (const FileProblem& problem) {
  throw Error(problem.what());
}

// The local folder that receives everything, and the rest of the destination below it.
std::pair<Root, Destination> local_destination(const std::string& given, Destination destination) {
  namespace fs = std::filesystem;
  const fs::path path = given.empty() ? "." : given;
  fs::path folder = path;
  std::error_code error;
  if (destination.sole_file && !given.ends_with('/') && !fs::is_directory(path, error)) {
    folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
    destination.path = path.filename();
  }
  fs::create_directories(folder, error);
  if (error) throw Error(fmt::format("cannot make the folder '{}'", folder.string()), error.message());
  return {std::piecewise_construct, std::forward_as_tuple(folder.string()), std::forward_as_tuple(destination)};
}

}  // namespace

Client::~Client() {
  if (channel_) try {
      channel_->send(kControlTag, encode(Order{}));  // the channel waits a moment for it to arrive
    } catch (const Error&) {
    }
}

Counts Client::push(std::vector<Source> sources, const std::string& destination, const CopyOptions& options) {
  Progress unseen;
  Sender sender(*channel_, std::move(sources), options.progress ? *options.progress : unseen, options.on_note,
                options.batch);
  Order order;
  order.action = Order::Action::kPush;
  order.checksum = options.checksum;
  order.sole_file = sender.sole_file();
  order.destination = destination;
  ask(*channel_, order);
  return sender.run();
}

Counts Client::push(const std::vector<std::string>& paths, const std::string& destination, const CopyOptions& options) {
  std::vector<Source> sources;
  for (const std::string& path : paths) sources.push_back(local_source(path));
  return push(std::move(sources), destination, options);
}

Counts Client::pull(const std::vector<std::string>& paths, const std::string& destination, const CopyOptions& options) {
  Order order;
  order.action = Order::Action::kPull;
  order.sources = paths;
  names_of(paths, false);  // throws for invalid requests
  const Reply reply = ask(*channel_, order);
  Progress unseen;
  Leases leases;
  try {
    auto [root, below] = local_destination(destination, {.path = "",
                                                         .sole_file = reply.sole_file,
                                                         .checksum = options.checksum,
                                                         .perms = options.perms,
                                                         .asked = names_of(paths, reply.sole_file)});
    return Receiver(*channel_, root, leases, below, options.progress ? *options.progress : unseen, options.on_note)
        .run();
  } catch (const FileProblem& problem) {
    channel_->give_up();  // the server has begun to send
    throw Error(problem.what());
  } catch (const Error&) {
    channel_->give_up();
    throw;
  }
}

}  // namespace maki::wan::copy
