// Common to the C++ and C forms of MPWide's calls: conversion of exceptions, which the calls do not throw; unfinished
// exchanges; and the work itself.
#pragma once

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "wan/net/error.hpp"
#include "wan/net/mpw.h"
#include "wan/net/mpw/table.hpp"
#include "wan/net/mpw/transfer.hpp"

namespace maki::wan::mpw {

// ---- errors --------------------------------------------------------------------------------------------------------

inline std::atomic<MPW_ErrorHandler> error_handler{nullptr};

// Prints `message`, or hands it to the handler.
inline void report_error(const std::string& message) {
  if (const MPW_ErrorHandler handler = error_handler)
    handler(message.c_str());
  else
    log(LogLevel::kError, message);
}

// The same, but without a handler ends the program. Only the first failure is reported: closing paths at the end makes
// calls of other threads fail too.
inline void fail(const std::string& message) {
  static std::atomic<bool> ending{false};
  if (error_handler != nullptr) return report_error(message);
  if (ending.exchange(true)) {
    while (true) pause();
  }
  log(LogLevel::kError, message);
  std::exit(1);
}

// The result of `call` (0 for void). If it throws: a negative value (true, for bool) after `on_error`.
template <class Call>
auto guarded(Call call, void (*on_error)(const std::string&) = fail) {
  using Given = decltype(call());
  using Value = std::conditional_t<std::is_void_v<Given>, int, Given>;
  try {
    if constexpr (!std::is_void_v<Given>)
      return call();
    else
      return call(), 0;
  } catch (const std::exception& error) {
    on_error(error.what());
  }
  return std::is_same_v<Value, bool> ? Value(true) : Value(-1);
}

// For calls that always report failure by their value.
template <class Call>
int reported(Call call) {
  return guarded(call, report_error);
}

// ---- unfinished exchanges ------------------------------------------------------------------------------------------

// Exchanges begun and not waited for, by number. Thread-safe.
class BegunExchanges {
 public:
  int add(std::shared_ptr<Exchange> exchange) {
    const std::lock_guard lock(mutex_);
    exchanges_[next_] = std::move(exchange);
    return next_++;
  }
  // Null if it has been waited for. Throws Error for an unknown number.
  std::shared_ptr<Exchange> find(int number) {
    const std::lock_guard lock(mutex_);
    if (number < 0 || number >= next_)
      throw Error(fmt::format("There is no exchange {}", number), "", "use what MPW_ISendRecv gave");
    const auto found = exchanges_.find(number);
    return found == exchanges_.end() ? nullptr : found->second;
  }
  void forget(int number) {
    const std::lock_guard lock(mutex_);
    exchanges_.erase(number);
  }
  void forget_all() {
    const std::lock_guard lock(mutex_);
    exchanges_.clear();
    next_ = 0;
  }

 private:
  std::mutex mutex_;
  std::map<int, std::shared_ptr<Exchange>> exchanges_;
  int next_ = 0;
};

inline Table& table() { return Table::get(); }

inline BegunExchanges& begun() {
  static BegunExchanges all;
  return all;
}

using Lanes = std::vector<Lane>;

// ---- channels and buffers as arguments -----------------------------------------------------------------------------

// A null pointer stands for 0, 1, ...
inline std::vector<int> numbers(const int* channels, int count) {
  if (count < 1) throw Error(fmt::format("{} channels", count), "", "a call needs one at least");
  std::vector<int> all(static_cast<std::size_t>(count));
  if (channels == nullptr)
    std::iota(all.begin(), all.end(), 0);
  else
    all.assign(channels, channels + count);
  return all;
}

inline Lanes lanes_of(const int* channels, int count) { return table().lanes(numbers(channels, count)); }
inline Lanes lanes_of(int path) { return table().lanes(table().channels_of(path)); }

struct Buffer {
  char* data;
  long long size;
  std::vector<Part> parts(const Lanes& lanes) const { return split(data, size, static_cast<int>(lanes.size())); }
};

// ---- common to calls over a path and over channels -----------------------------------------------------------------

template <class Text>
int init(Text* hosts, int* ports, int count) {
  return guarded([&] {
    table().environment();
    if (count < 1) return;
    table().connect(table().add_channels({hosts, hosts + count}, {ports, ports + count}));
  });
}

inline int create_path(const std::string& host, int base_port, int channels) {
  const int path = table().add_path(host, base_port, channels);
  try {
    table().connect(table().channels_of(path));
  } catch (...) {
    table().remove_path(path);
    throw;
  }
  return path;
}

// `which`: a path, or channels and their number.
template <class... Which>
int send_over(Buffer out, Which... which) {
  return guarded([&] {
    const Lanes to = lanes_of(which...);
    Exchange exchange;
    exchange.send(to, out.parts(to));
    exchange.wait();
  });
}

template <class... Which>
int receive_over(Buffer in, Which... which) {
  return guarded([&] {
    const Lanes from = lanes_of(which...);
    Exchange exchange;
    exchange.receive(from, in.parts(from));
    exchange.wait();
  });
}

inline void begin(Exchange& exchange, const Lanes& to, Buffer out, const Lanes& from, Buffer in) {
  const auto going = out.parts(to);
  exchange.receive(from, in.parts(from));
  exchange.send(to, going);
}

inline void send_receive(const Lanes& to, Buffer out, const Lanes& from, Buffer in) {
  Exchange exchange;
  begin(exchange, to, out, from, in);
  exchange.wait();
}

// `in`: room for the message; returns its size.
inline long long send_receive_unknown(const Lanes& to, Buffer out, const Lanes& from, Buffer in) {
  const auto going = out.parts(to);
  return static_cast<long long>(exchange_unknown(to, going, from, split(in.data, in.size, 1).front()));
}

template <class... Which>
int send_receive_over(Buffer out, Buffer in, Which... which) {
  return guarded([&] {
    const Lanes lanes = lanes_of(which...);
    send_receive(lanes, out, lanes, in);
  });
}

template <class... Which>
long long send_receive_unknown_over(Buffer out, Buffer in, Which... which) {
  return guarded([&] {
    const Lanes lanes = lanes_of(which...);
    return send_receive_unknown(lanes, out, lanes, in);
  });
}

}  // namespace maki::wan::mpw
