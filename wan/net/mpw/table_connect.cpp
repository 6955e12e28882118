// How channels are joined to those of other programs, closed and opened again.
#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <map>
#include <thread>

#include "wan/net/mpw/dialer.hpp"
#include "wan/net/mpw/greeting.hpp"
#include "wan/net/mpw/table.hpp"

namespace maki::wan::mpw {
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
  plan.settings = settings_for(channels);
  return plan;
}

// Gives the channels that found partners their tags, and takes them out of `channels`.
void Table::assign(std::vector<int>& channels, Met met) {
  const std::string name = met.path.status().peer;
  const auto link =
      std::make_shared<Link>(std::move(met.path), std::move(met.listener), name, static_cast<int>(met.ports.size()));
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

// Channels to one host may end at several programs there: after each, those that are left look for the next.
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
  environment();  // what is wrong with it is told before anything begins
  std::map<std::string, std::vector<int>> hosts;
  {
    const std::lock_guard lock(mutex_);
    for (const int number : channels) hosts[channel(number).host].push_back(number);
  }
  if (hosts.size() == 1) return join_host(hosts.begin()->first, channels, wait_as_server);
  // All hosts at once: they may be waiting for one another.
  std::vector<std::exception_ptr> errors(hosts.size());
  std::vector<std::thread> threads;
  std::size_t i = 0;
  for (const auto& [host, theirs] : hosts) {
    threads.emplace_back([this, wait_as_server, &host = host, &theirs = theirs, &error = errors[i++]] {
      try {
        join_host(host, theirs, wait_as_server);
      } catch (...) {
        error = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& error : errors) {
    if (error) std::rethrow_exception(error);
  }
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
  std::vector<int> all;
  {
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < channels_.size(); ++i) {
      if (channels_[i]) all.push_back(static_cast<int>(i));
    }
  }
  close(all);
  {
    const std::lock_guard lock(mutex_);
    channels_.clear();
    paths_.clear();
    environment_.reset();
    send_chunk_ = receive_chunk_ = 0;
    pacing_ = -1;
    autotuning_ = true;
  }
  Dialer::end_all();
}

}  // namespace maki::wan::mpw
