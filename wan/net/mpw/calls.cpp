#include "wan/net/mpw/calls.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>

#include "wan/net/error.hpp"
#include "wan/net/mpw/table.hpp"

namespace maki::wan::mpw {

// ---- errors --------------------------------------------------------------------------------------------------------

namespace {

std::atomic<MPW_ErrorHandler> handler_now{nullptr};
std::atomic<bool> ending{false};

}  // namespace

MPW_ErrorHandler set_error_handler(MPW_ErrorHandler handler) { return handler_now.exchange(handler); }

void report_error(const std::string& message) {
  if (const MPW_ErrorHandler handler = handler_now)
    handler(message.c_str());
  else
    log(LogLevel::kError, message);
}

// The first failure is the one to tell: closing paths at the end makes calls of other threads fail too.
void fail(const std::string& message) {
  if (handler_now != nullptr) return report_error(message);
  if (ending.exchange(true)) {
    while (true) pause();
  }
  log(LogLevel::kError, message);
  std::exit(1);
}

// ---- what calls do -------------------------------------------------------------------------------------------------

namespace {

struct Begun {
  std::mutex mutex;
  std::map<int, std::shared_ptr<Exchange>> exchanges;
  int next = 0;
};

Begun& begun() {
  static Begun all;
  return all;
}

// Null: it has been waited for.
std::shared_ptr<Exchange> find(int number) {
  Begun& all = begun();
  const std::lock_guard lock(all.mutex);
  if (number < 0 || number >= all.next)
    throw Error(fmt::format("There is no exchange {}", number), "", "use what MPW_ISendRecv gave");
  const auto found = all.exchanges.find(number);
  return found == all.exchanges.end() ? nullptr : found->second;
}

int count_of(const std::vector<Lane>& lanes) { return static_cast<int>(lanes.size()); }

}  // namespace

std::vector<int> numbers(const int* channels, int count) {
  if (count < 1) throw Error(fmt::format("{} channels", count), "", "a call needs one at least");
  std::vector<int> all(static_cast<std::size_t>(count));
  if (channels == nullptr)
    std::iota(all.begin(), all.end(), 0);
  else
    all.assign(channels, channels + count);
  return all;
}

std::vector<Lane> lanes_of(const int* channels, int count) { return Table::get().lanes(numbers(channels, count)); }
std::vector<Lane> lanes_of_path(int path) { return Table::get().lanes(Table::get().channels_of(path)); }

void init(const std::vector<std::string>& hosts, const int* ports, int count) {
  Table& table = Table::get();
  table.environment();
  if (count < 1) return;
  table.connect(table.add_channels(hosts, std::vector<int>(ports, ports + count)));
}

int create_path(const std::string& host, int base_port, int channels) {
  Table& table = Table::get();
  const int path = table.add_path(host, base_port, channels);
  try {
    table.connect(table.channels_of(path));
  } catch (...) {
    table.remove_path(path);
    throw;
  }
  return path;
}

void send(const std::vector<Lane>& lanes, char* buffer, long long size) {
  Exchange exchange;
  exchange.send(lanes, split(buffer, size, count_of(lanes)));
  exchange.wait();
}

void receive(const std::vector<Lane>& lanes, char* buffer, long long size) {
  Exchange exchange;
  exchange.receive(lanes, split(buffer, size, count_of(lanes)));
  exchange.wait();
}

void send_receive(const std::vector<Lane>& to, char* out, long long out_size, const std::vector<Lane>& from, char* in,
                  long long in_size) {
  const auto going = split(out, out_size, count_of(to));
  Exchange exchange;
  exchange.receive(from, split(in, in_size, count_of(from)));
  exchange.send(to, going);
  exchange.wait();
}

long long send_receive_unknown(const std::vector<Lane>& to, char* out, long long out_size,
                               const std::vector<Lane>& from, char* in, long long limit) {
  const auto going = split(out, out_size, count_of(to));
  return static_cast<long long>(exchange_unknown(to, going, from, split(in, limit, 1).front()));
}

int begin_send_receive(const std::vector<Lane>& lanes, char* out, long long out_size, char* in, long long in_size) {
  const auto exchange = std::make_shared<Exchange>();
  exchange->receive(lanes, split(in, in_size, count_of(lanes)));
  exchange->send(lanes, split(out, out_size, count_of(lanes)));
  Begun& all = begun();
  const std::lock_guard lock(all.mutex);
  all.exchanges[all.next] = exchange;
  return all.next++;
}

bool has_finished(int number) {
  const auto exchange = find(number);
  return !exchange || exchange->test();
}

void wait_for(int number) {
  const auto exchange = find(number);
  if (!exchange) return;
  exchange->wait();
  Begun& all = begun();
  const std::lock_guard lock(all.mutex);
  all.exchanges.erase(number);
}

void forget_exchanges() {
  Begun& all = begun();
  const std::lock_guard lock(all.mutex);
  all.exchanges.clear();
  all.next = 0;
}

}  // namespace maki::wan::mpw
