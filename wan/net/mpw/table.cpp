#include "wan/net/mpw/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <future>
#include <map>
#include <set>

#include "wan/net/path.hpp"
#include "wan/net/path/wire.hpp"

namespace maki::wan::mpw {

Table& Table::get() {
  static Table table;
  return table;
}

// The I/O thread must outlive the paths, so it is made first.
Table::Table() { Context::shared(); }

Table::~Table() { end_attempts(); }

const Environment& Table::environment() {
  const std::lock_guard lock(mutex_);
  if (!environment_) environment_ = read_environment([](const char* name) -> const char* { return std::getenv(name); });
  return *environment_;
}

// ---- numbers -------------------------------------------------------------------------------------------------------

Table::Channel& Table::channel(int number) {
  const auto i = static_cast<std::size_t>(number);
  if (number < 0 || i >= channels_.size() || !channels_[i])
    throw Error(fmt::format("There is no channel {}", number), "",
                "channels are numbered from 0, in the order of their making");
  return *channels_[i];
}

int Table::reserve(std::size_t count) {
  std::size_t first = 0;
  for (std::size_t i = 0; i < channels_.size() && i < first + count; ++i)
    if (channels_[i]) first = i + 1;
  if (first + count > kMaxChannels)
    throw Error(fmt::format("{} more channels are too many", count), fmt::format("there may be {}", kMaxChannels));
  channels_.resize(std::max(channels_.size(), first + count));
  return static_cast<int>(first);
}

std::vector<int> Table::add_channels(const std::vector<std::string>& hosts, const std::vector<int>& ports) {
  for (const int port : ports)
    if (port < 1 || port > 65535) throw Error(fmt::format("{} is no port", port), "ports are 1 to 65535");
  const std::lock_guard lock(mutex_);
  const int first = reserve(ports.size());
  std::vector<int> numbers;
  for (std::size_t i = 0; i < ports.size(); ++i) {
    numbers.push_back(first + static_cast<int>(i));
    channels_[static_cast<std::size_t>(numbers.back())] = Channel{hosts[i], ports[i], 0, nullptr, 0, false};
  }
  return numbers;
}

int Table::add_path(const std::string& host, int base_port, int channels) {
  if (channels < 1) throw Error(fmt::format("A path of {} channels", channels), "", "it has one at least");
  std::vector<int> ports(static_cast<std::size_t>(channels));
  for (int i = 0; i < channels; ++i) ports[static_cast<std::size_t>(i)] = base_port + i;
  auto numbers = add_channels(std::vector<std::string>(ports.size(), host), ports);
  const std::lock_guard lock(mutex_);
  const auto free = std::find(paths_.begin(), paths_.end(), std::nullopt);
  const auto path = free - paths_.begin();
  if (free == paths_.end()) paths_.emplace_back();
  paths_[static_cast<std::size_t>(path)] = std::move(numbers);
  return static_cast<int>(path);
}

std::vector<int> Table::channels_of(int path) {
  const std::lock_guard lock(mutex_);
  const auto i = static_cast<std::size_t>(path);
  if (path < 0 || i >= paths_.size() || !paths_[i])
    throw Error(fmt::format("There is no path {}", path), "", "use what MPW_CreatePath gave, if that was not negative");
  return *paths_[i];
}

void Table::remove_channels(const std::vector<int>& channels) {
  close(channels);
  const std::lock_guard lock(mutex_);
  for (const int number : channels) channels_[static_cast<std::size_t>(number)].reset();
}

void Table::remove_path(int path) {
  remove_channels(channels_of(path));
  const std::lock_guard lock(mutex_);
  paths_[static_cast<std::size_t>(path)].reset();
}

int Table::channel_count() {
  const std::lock_guard lock(mutex_);
  return static_cast<int>(std::ranges::count_if(channels_, &std::optional<Channel>::has_value));
}

Lane Table::lane(int number) {
  const std::lock_guard lock(mutex_);
  const Channel& one = channel(number);
  if (!one.open || !one.link)
    throw Error(fmt::format("Channel {} is not connected", number), fmt::format("to {} port {}", one.host, one.port),
                "connect it first (MPW_Init, MPW_ConnectPath, MPW_ReOpenChannels)");
  return {one.link, one.tag, number};
}

std::vector<Lane> Table::lanes(const std::vector<int>& channels) {
  std::vector<Lane> lanes;
  for (const int number : channels) lanes.push_back(lane(number));
  return lanes;
}

namespace {

int after(int number) { return number == INT_MAX ? 0 : number + 1; }

}  // namespace

int Table::add_exchange(std::shared_ptr<Exchange> exchange) {
  const std::lock_guard lock(mutex_);
  while (exchanges_.contains(next_exchange_)) next_exchange_ = after(next_exchange_);
  const int number = next_exchange_;
  exchanges_[number] = std::move(exchange);
  next_exchange_ = after(number);
  return number;
}

std::shared_ptr<Exchange> Table::begun(int number) {
  const std::lock_guard lock(mutex_);
  if (const auto found = exchanges_.find(number); found != exchanges_.end()) return found->second;
  if (number < 0 || number >= next_exchange_)
    throw Error(fmt::format("There is no exchange {}", number), "", "use what MPW_ISendRecv gave");
  return nullptr;
}

void Table::forget(int number) {
  const std::lock_guard lock(mutex_);
  exchanges_.erase(number);
}

std::string Table::describe() {
  const std::lock_guard lock(mutex_);
  std::string text;
  std::set<Link*> seen;
  for (std::size_t i = 0; i < channels_.size(); ++i) {
    if (!channels_[i]) continue;
    const Channel& one = *channels_[i];
    text += fmt::format("channel {}: {} port {}, {}\n", i, one.host, one.port, one.open ? "open" : "closed");
    if (!one.open || !seen.insert(one.link.get()).second) continue;
    const PathStatus status = one.link->path()->status();
    text += fmt::format("  path to {}: {} of {} streams up, round trip {:.1f} ms, sent {}, received {} bytes, {}\n",
                        status.peer, status.streams_up, status.streams, 1e3 * status.round_trip, status.sent,
                        status.received, status.identity.empty() ? "not encrypted" : "key " + status.identity);
  }
  return text;
}

// ---- settings ------------------------------------------------------------------------------------------------------

void Table::set_window(const std::vector<int>& channels, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  for (const int number : channels)
    channel(number).window = bytes == 0 ? 0 : std::clamp<std::size_t>(bytes, 4 << 10, 1 << 30);
  apply();
}

void Table::set_chunks(std::size_t sending, std::size_t receiving) {
  const std::lock_guard lock(mutex_);
  send_chunk_ = std::clamp<std::size_t>(sending, 256, kMaxPayload);
  receive_chunk_ = std::clamp<std::size_t>(receiving, 256, 64 << 20);
  apply();
}

void Table::set_pacing(double rate) {
  const std::lock_guard lock(mutex_);
  pacing_ = rate > 0 ? rate : -1;
  apply();
}

// Settings of a path with these channels. With mutex_ held.
PathSettings Table::settings_for(const std::vector<int>& channels) {
  PathSettings settings = environment_->settings;
  const int count = static_cast<int>(channels.size());
  if (!environment_->streams_given)
    settings.streams = std::min(autotuning_ ? std::max(count, settings.streams) : count, kMaxStreams);
  for (const int number : channels) settings.window = std::max(settings.window, channel(number).window);
  if (send_chunk_ > 0) settings.send_chunk = send_chunk_;
  if (receive_chunk_ > 0) settings.receive_chunk = receive_chunk_;
  if (pacing_ > 0) settings.pacing_rate = std::clamp(pacing_ * count, 1e3, 1e12);
  return settings;
}

// Applies the settings to existing paths. With mutex_ held.
void Table::apply() {
  std::set<Link*> done;
  for (const auto& one : channels_) {
    if (!one || !one->open || !done.insert(one->link.get()).second) continue;
    std::vector<int> channels;
    for (std::size_t i = 0; i < channels_.size(); ++i)
      if (channels_[i] && channels_[i]->link == one->link) channels.push_back(static_cast<int>(i));
    try {
      one->link->path()->change(settings_for(channels));
    } catch (const PathError&) {
      // closed or lost: its next user gets the error
    }
  }
}

// ---- connecting, closing, opening again ----------------------------------------------------------------------------

namespace {

bool waits_only(const std::string& host) { return host.empty() || host == "0" || host == "0.0.0.0" || host == "::"; }

}  // namespace

MeetingPlan Table::plan_for(const std::string& host, const std::vector<int>& channels, bool wait_as_server) {
  if (waits_only(host) && !wait_as_server)
    throw Error("A path without a host cannot be called", fmt::format("its host is \"{}\"", host),
                "name the other side, or wait as a server");
  MeetingPlan plan;
  plan.environment = environment();
  const std::lock_guard lock(mutex_);
  plan.host = host;
  plan.manner = waits_only(host) ? Manner::kWait : wait_as_server ? Manner::kBoth : Manner::kCall;
  for (const int number : channels) plan.ports.push_back(channel(number).port);
  plan.environment.settings = settings_for(channels);
  return plan;
}

// Gives the channels with partners their tags, and removes them from `channels`.
void Table::assign(std::vector<int>& channels, Met met) {
  const auto link =
      std::make_shared<Link>(std::move(met.path), std::move(met.listener), static_cast<int>(met.ports.size()));
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < met.ports.size(); ++i) {
    const auto found = std::find_if(channels.begin(), channels.end(),
                                    [&](int number) { return channel(number).port == met.ports[i]; });
    Channel& one = channel(*found);
    one.link = link;
    one.tag = kFirstLane + i;
    one.open = true;
    channels.erase(found);
  }
}

// Channels to one host may end at several programs: after each, the remaining ones look for the next.
void Table::join_host(const std::string& host, std::vector<int> channels, bool wait_as_server) {
  {
    const std::lock_guard lock(mutex_);
    std::stable_sort(channels.begin(), channels.end(), [&](int a, int b) { return channel(a).port < channel(b).port; });
  }
  const std::size_t all = channels.size();
  while (!channels.empty()) {
    try {
      assign(channels, meet(plan_for(host, channels, wait_as_server)));
    } catch (const Error& error) {
      if (channels.size() == all) throw;
      throw Error(
          fmt::format("{} of {} channels to {} are connected; {}", all - channels.size(), all, host, error.what()));
    }
  }
}

void Table::connect(const std::vector<int>& channels, bool wait_as_server) {
  environment();  // reports its errors before anything begins
  std::map<std::string, std::vector<int>> hosts;
  {
    const std::lock_guard lock(mutex_);
    for (const int number : channels) hosts[channel(number).host].push_back(number);
  }
  // All hosts at once: they may be waiting for one another.
  std::vector<std::future<void>> joining;
  for (const auto& [host, theirs] : hosts)
    joining.push_back(std::async(std::launch::async, &Table::join_host, this, host, theirs, wait_as_server));
  for (auto& one : joining) one.get();  // if one throws, the others are still waited for
}

void Table::close(const std::vector<int>& channels) {
  std::vector<std::shared_ptr<Link>> left;
  {
    const std::lock_guard lock(mutex_);
    for (const int number : channels) {
      Channel& one = channel(number);
      if (one.open) left.push_back(one.link);
      one.open = false;
    }
  }
  for (const auto& link : left) link->leave();
}

void Table::reopen(const std::vector<int>& channels) {
  std::vector<int> lost;
  {
    const std::lock_guard lock(mutex_);
    for (const int number : channels) {
      Channel& one = channel(number);
      const bool live = one.link && one.link->live();
      if (live && !one.open) one.link->come_back();
      one.open = live;
      if (!live) lost.push_back(number);
    }
  }
  if (!lost.empty()) connect(lost);
}

void Table::finalize() {
  std::vector<std::shared_ptr<Link>> left;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& one : channels_)
      if (one && one->open) left.push_back(one->link);
    channels_.clear();
    paths_.clear();
    exchanges_.clear();
    next_exchange_ = 0;
    environment_.reset();
    send_chunk_ = receive_chunk_ = 0;
    pacing_ = -1;
    autotuning_ = true;
  }
  for (const auto& link : left) link->leave();
  end_attempts();
}

}  // namespace maki::wan::mpw
