// What MPWide's calls do, and where the library's exceptions end: those calls have none.
#pragma once

#include <exception>
#include <string>
#include <type_traits>
#include <vector>

#include "wan/net/mpw.h"
#include "wan/net/mpw/transfer.hpp"

namespace maki::wan::mpw {

MPW_ErrorHandler set_error_handler(MPW_ErrorHandler handler);

// Prints `message`, or hands it to the handler.
void report_error(const std::string& message);
// The same, and without a handler ends the program.
void fail(const std::string& message);

// What `call` gives (0 where that is nothing); a negative value (true, for bool) where it throws. Ends the program then,
// unless there is a handler.
template <class Call>
auto guarded(Call call) {
  using Given = decltype(call());
  using Value = std::conditional_t<std::is_void_v<Given>, int, Given>;
  try {
    if constexpr (!std::is_void_v<Given>)
      return call();
    else
      return call(), 0;
  } catch (const std::exception& error) {
    fail(error.what());
  }
  return std::is_same_v<Value, bool> ? Value(true) : Value(-1);
}

// For calls that report failure by their value always.
template <class Call>
int reported(Call call) {
  try {
    if constexpr (std::is_void_v<decltype(call())>)
      return call(), 0;
    else
      return call();
  } catch (const std::exception& error) {
    report_error(error.what());
  }
  return -1;
}

// What the C++ and the C forms of a call share: channel numbers from either, and the work itself. All throw.

// A null pointer: 0, 1, ...
std::vector<int> numbers(const int* channels, int count);
std::vector<Lane> lanes_of(const int* channels, int count);
std::vector<Lane> lanes_of_path(int path);

void init(const std::vector<std::string>& hosts, const int* ports, int count);
int create_path(const std::string& host, int base_port, int channels);

void send(const std::vector<Lane>& lanes, char* buffer, long long size);
void receive(const std::vector<Lane>& lanes, char* buffer, long long size);
void send_receive(const std::vector<Lane>& to, char* out, long long out_size, const std::vector<Lane>& from, char* in,
                  long long in_size);
// The size of what came.
long long send_receive_unknown(const std::vector<Lane>& to, char* out, long long out_size,
                               const std::vector<Lane>& from, char* in, long long limit);

// Exchanges that were begun and not waited for.
int begin_send_receive(const std::vector<Lane>& lanes, char* out, long long out_size, char* in, long long in_size);
bool has_finished(int number);
void wait_for(int number);
void forget_exchanges();

}  // namespace maki::wan::mpw
