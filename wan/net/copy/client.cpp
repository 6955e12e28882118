#include "wan/net/copy/client.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>

#include "wan/net/copy/receiver.hpp"
#include "wan/net/copy/sender.hpp"

namespace maki::wan::copy {
namespace {

Reply ask(Courier& courier, const Order& order) {
  Bytes message = encode(order);
  if (order.sources.size() > kMaxSources || message.size > kMaxMessage)
    throw Error("too many files are named at once", fmt::format("{}", order.sources.size()),
                "name the folder that they are in");
  courier.send(kControlTag, std::move(message));
  const Reply reply = decode_reply(courier.receive(kControlTag).view());
  if (!reply.agreed) throw Error(fmt::format("{} refuses the copy", courier.peer()), shown(reply.reason));
  return reply;
}

// The folder of this machine that all goes into, and what is left of the destination below it.
std::pair<Root, Destination> local_destination(const std::string& given, bool sole_file, bool checksum) {
  namespace fs = std::filesystem;
  const fs::path path = given.empty() ? "." : given;
  Destination destination{.path = "", .sole_file = sole_file, .checksum = checksum};
  fs::path folder = path;
  std::error_code error;
  if (sole_file && !given.ends_with('/') && !fs::is_directory(path, error)) {
    folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
    destination.path = path.filename();
  }
  fs::create_directories(folder, error);
  if (error) throw Error(fmt::format("cannot make the folder '{}'", folder.string()), error.message());
  return {std::piecewise_construct, std::forward_as_tuple(folder.string()), std::forward_as_tuple(destination)};
}

}  // namespace

Client::~Client() {
  if (courier_) try {
      courier_->send(kControlTag, encode(Order{}));
      courier_->flush();
    } catch (const Error&) {
    }
}

CopyReport Client::push(std::vector<Source> sources, const std::string& destination, const CopyOptions& options) {
  Progress unseen;
  Sender sender(*courier_, std::move(sources), options.progress ? *options.progress : unseen, options.on_note,
                options.batch);
  Order order;
  order.action = Order::Action::kPush;
  order.checksum = options.checksum;
  order.sole_file = sender.sole_file();
  order.destination = destination;
  ask(*courier_, order);
  return sender.run();
}

CopyReport Client::push(const std::vector<std::string>& paths, const std::string& destination,
                        const CopyOptions& options) {
  std::vector<Source> sources;
  for (const std::string& path : paths) sources.push_back(local_source(path));
  return push(std::move(sources), destination, options);
}

CopyReport Client::pull(const std::vector<std::string>& paths, const std::string& destination,
                        const CopyOptions& options) {
  Order order;
  order.action = Order::Action::kPull;
  order.sources = paths;
  const Reply reply = ask(*courier_, order);
  Progress unseen;
  Claims claims;
  auto [root, below] = local_destination(destination, reply.sole_file, options.checksum);
  try {
    return Receiver(*courier_, root, claims, below, options.progress ? *options.progress : unseen, options.on_note)
        .run();
  } catch (const FileProblem& problem) {
    courier_->give_up();  // the server has begun to send
    throw Error(problem.what());
  }
}

}  // namespace maki::wan::copy
