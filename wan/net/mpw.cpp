// MPWide's calls: what they have in common (conversion of exceptions, which they do not throw; channels and buffers as
// arguments), the C++ forms, then those common to C.
#include "wan/net/mpw.h"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <limits>
#include <numeric>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "wan/net/error.hpp"
#include "wan/net/mpw/table.hpp"
#include "wan/net/socket/tcp.hpp"

namespace maki::wan::mpw {
namespace {

constexpr int kDefaultPort = 6000;

std::size_t size_of(int bytes) { return bytes > 0 ? static_cast<std::size_t>(bytes) : 0; }

// ---- errors --------------------------------------------------------------------------------------------------------

std::atomic<MPW_ErrorHandler> error_handler{nullptr};

// Prints `message`, or hands it to the handler.
void report_error(const std::string& message) {
  if (const MPW_ErrorHandler handler = error_handler)
    handler(message.c_str());
  else
    log(LogLevel::kError, message);
}

// Reports as report_error(), but without a handler ends the program. Only the first failure is reported: closing paths
// at the end makes calls of other threads fail too.
void fail(const std::string& message) {
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

Table& table() { return Table::get(); }

using Lanes = std::vector<Lane>;

// ---- channels and buffers as arguments -----------------------------------------------------------------------------

// A null pointer stands for 0, 1, ...
std::vector<int> numbers(const int* channels, int count) {
  if (count < 1) throw Error(fmt::format("{} channels", count), "", "a call needs one at least");
  std::vector<int> all(static_cast<std::size_t>(count));
  if (channels == nullptr)
    std::iota(all.begin(), all.end(), 0);
  else
    all.assign(channels, channels + count);
  return all;
}

Lanes lanes_of(const int* channels, int count) { return table().lanes(numbers(channels, count)); }
Lanes lanes_of(int path) { return table().lanes(table().channels_of(path)); }

// Nothing is sent from an empty one, nor received.
struct Buffer {
  char* data = nullptr;
  long long size = 0;
  std::vector<Part> parts(const Lanes& lanes) const { return split(data, size, static_cast<int>(lanes.size())); }
};

// ---- common to calls over a path and over channels -----------------------------------------------------------------

template <class Text>
int init(Text* hosts, int* ports, int count) {
  return guarded([&] {
    table().environment();
    if (count < 1) return;
    const std::vector<int> added = table().add_channels({hosts, hosts + count}, {ports, ports + count});
    try {
      table().connect(added);
    } catch (...) {
      table().remove_channels(added);
      throw;
    }
  });
}

int create_path(const std::string& host, int base_port, int channels) {
  const int path = table().add_path(host, base_port, channels);
  try {
    table().connect(table().channels_of(path));
  } catch (...) {
    table().remove_path(path);
    throw;
  }
  return path;
}

void begin(Exchange& exchange, const Lanes& to, Buffer out, const Lanes& from, Buffer in) {
  const auto going = out.parts(to);
  exchange.receive(from, in.parts(from));
  exchange.send(to, going);
}

void send_receive(const Lanes& to, Buffer out, const Lanes& from, Buffer in) {
  Exchange exchange;
  begin(exchange, to, out, from, in);
  exchange.wait();
}

// `in`: room for the message; returns its size.
long long send_receive_unknown(const Lanes& to, Buffer out, const Lanes& from, Buffer in) {
  const auto going = out.parts(to);
  return static_cast<long long>(exchange_unknown(to, going, from, split(in.data, in.size, 1).front()));
}

// `which`: a path, or channels and their number.
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

}  // namespace
}  // namespace maki::wan::mpw

using namespace maki::wan::mpw;

// ---- C++ -----------------------------------------------------------------------------------------------------------

int MPW_Init(std::string* url, int* server_side_ports, int*, int num_channels) {
  return MPW_Init(url, server_side_ports, num_channels);
}

int MPW_Init(std::string* url, int* server_side_ports, int num_channels) {
  return init(url, server_side_ports, num_channels);
}

int MPW_Init(std::string url, int port) { return MPW_Init(&url, &port, 1); }
int MPW_Init(std::string url) { return MPW_Init(url, kDefaultPort); }
int MPW_Init() { return MPW_Init(nullptr, nullptr, 0); }

int MPW_CreatePath(std::string host, int server_side_base_port, int num_streams) {
  return reported([&] { return create_path(host, server_side_base_port, num_streams); });
}

int MPW_CreatePathWithoutConnect(std::string host, int server_side_base_port, int streams_in_path) {
  return reported([&] { return table().add_path(host, server_side_base_port, streams_in_path); });
}

int MPW_Send(char* sendbuf, long long int sendsize, int path) {
  return send_receive_over({sendbuf, sendsize}, {}, path);
}
int MPW_Recv(char* recvbuf, long long int recvsize, int path) {
  return send_receive_over({}, {recvbuf, recvsize}, path);
}

int MPW_SendRecv(char* sendbuf, long long int sendsize, char* recvbuf, long long int recvsize, int path) {
  return send_receive_over({sendbuf, sendsize}, {recvbuf, recvsize}, path);
}

int MPW_DSendRecv(char* sendbuf, long long int sendsize, char* recvbuf, long long int maxrecvsize, int path) {
  return guarded([&] {
    if (maxrecvsize > std::numeric_limits<int>::max())
      throw maki::wan::Error("MPW_DSendRecv over a path returns an int, and 2 GiB or more may come", "",
                             "use MPW_DSendRecv over channels, which returns a long long");
    return static_cast<int>(send_receive_unknown_over({sendbuf, sendsize}, {recvbuf, maxrecvsize}, path));
  });
}

int MPW_Send(char* buf, long long int size, int* channels, int num_channels) {
  return send_receive_over({buf, size}, {}, channels, num_channels);
}
int MPW_Recv(char* buf, long long int size, int* channels, int num_channels) {
  return send_receive_over({}, {buf, size}, channels, num_channels);
}

int MPW_SendRecv(char* sendbuf, long long int sendsize, char* recvbuf, long long int recvsize, int* channel,
                 int num_channels) {
  return send_receive_over({sendbuf, sendsize}, {recvbuf, recvsize}, channel, num_channels);
}

long long int MPW_DSendRecv(char* sendbuf, long long int sendsize, char* recvbuf, long long int maxrecvsize,
                            int* channel, int num_channels) {
  return send_receive_unknown_over({sendbuf, sendsize}, {recvbuf, maxrecvsize}, channel, num_channels);
}

char* MPW_DNSResolve(std::string host) { return MPW_DNSResolve(host.data()); }

// ---- C and C++ -----------------------------------------------------------------------------------------------------

extern "C" {

char* MPW_DNSResolve(char* host) {
  thread_local std::string address;
  try {
    address = maki::wan::resolve({host, 0}).front().host();
    return address.data();
  } catch (const std::exception& error) {
    report_error(error.what());
  }
  return nullptr;
}

int MPW_ConnectPath(int path_id, bool server_wait) {
  return reported([&] { table().connect(table().channels_of(path_id), server_wait); });
}

int MPW_DestroyPath(int path) {
  return reported([&] { table().remove_path(path); });
}

int MPW_Finalize(void) {
  return guarded([] { table().finalize(); });
}

void MPW_CloseChannels(int* channels, int num_channels) {
  guarded([&] { table().close(numbers(channels, num_channels)); });
}

void MPW_ReOpenChannels(int* channels, int num_channels) {
  guarded([&] { table().reopen(numbers(channels, num_channels)); });
}

void MPW_Print(void) {
  guarded([] { std::fputs(table().describe().c_str(), stdout); });
}

int MPW_NumChannels(void) { return table().channel_count(); }

int MPW_PSendRecv(char** sendbuf, long long int* sendsize, char** recvbuf, long long int* recvsize, int* channel,
                  int num_channels) {
  return guarded([&] {
    const Lanes lanes = lanes_of(channel, num_channels);
    Exchange exchange;
    if (recvbuf != nullptr) exchange.receive(lanes, parts_of(recvbuf, recvsize, num_channels));
    if (sendbuf != nullptr) exchange.send(lanes, parts_of(sendbuf, sendsize, num_channels));
    exchange.wait();
  });
}

int MPW_PSend(char** sendbuf, long long int* sendsize, int* channel, int num_channels) {
  return MPW_PSendRecv(sendbuf, sendsize, nullptr, nullptr, channel, num_channels);
}

int MPW_PRecv(char** recvbuf, long long int* recvsize, int* channel, int num_channels) {
  return MPW_PSendRecv(nullptr, nullptr, recvbuf, recvsize, channel, num_channels);
}

int MPW_Cycle(char* sendbuf, long long int sendsize, char* recvbuf, long long int recvsize, int* ch_send,
              int num_ch_send, int* ch_recv, int num_ch_recv) {
  return guarded([&] {
    const Lanes to = lanes_of(ch_send, num_ch_send), from = lanes_of(ch_recv, num_ch_recv);
    send_receive(to, {sendbuf, sendsize}, from, {recvbuf, recvsize});
  });
}

long long int MPW_DCycle(char* sendbuf, long long int sendsize, char* recvbuf, long long int recvsize, int* ch_send,
                         int num_ch_send, int* ch_recv, int num_ch_recv) {
  return guarded([&] {
    const Lanes to = lanes_of(ch_send, num_ch_send), from = lanes_of(ch_recv, num_ch_recv);
    return send_receive_unknown(to, {sendbuf, sendsize}, from, {recvbuf, recvsize});
  });
}

void MPW_Relay(int* channels, int* channels2, int num_channels) {
  guarded([&] {
    relay(lanes_of(channels, num_channels), lanes_of(channels2, num_channels),
          table().environment().settings.message_limit);
  });
}

void MPW_Barrier(int channel) {
  guarded([&] { barrier(table().lane(channel)); });
}

int MPW_ISendRecv(char* sendbuf, long long int sendsize, char* recvbuf, long long int recvsize, int path) {
  return guarded([&] {
    const Lanes lanes = lanes_of(path);
    auto exchange = std::make_shared<Exchange>();
    begin(*exchange, lanes, {sendbuf, sendsize}, lanes, {recvbuf, recvsize});
    return table().add_exchange(std::move(exchange));
  });
}

bool MPW_Has_NBE_Finished(int NBE_id) {
  return guarded([&] {
    const auto exchange = table().begun(NBE_id);
    if (exchange && !exchange->test()) return false;
    table().forget(NBE_id);  // MPW_Wait has nothing left to do
    return true;
  });
}

void MPW_Wait(int NBE_id) {
  guarded([&] {
    const auto exchange = table().begun(NBE_id);
    if (!exchange) return;
    exchange->wait();
    table().forget(NBE_id);
  });
}

void MPW_splitBuf(char* buf, long long int bsize, int num_chunks, char** split_buf, long long int* chunk_sizes) {
  guarded([&] {
    const auto parts = split(buf, bsize, num_chunks);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      split_buf[i] = parts[i].data;
      chunk_sizes[i] = static_cast<long long>(parts[i].size);
    }
  });
}

void MPW_setChunkSize(int sending, int receiving) {
  guarded([&] { table().set_chunks(size_of(sending), size_of(receiving)); });
}

void MPW_setWin(int channel, int size) {
  guarded([&] { table().set_window({channel}, size_of(size)); });
}

void MPW_setPathWin(int path, int size) {
  guarded([&] { table().set_window(table().channels_of(path), size_of(size)); });
}

void MPW_setPacingRate(double rate) {
  guarded([&] { table().set_pacing(rate); });
}

double MPW_getPacingRate(void) { return table().pacing(); }
void MPW_setAutoTuning(bool b) { table().set_autotuning(b); }
bool MPW_AutoTuning(void) { return table().autotuning(); }

MPW_ErrorHandler MPW_SetErrorHandler(MPW_ErrorHandler handler) { return error_handler.exchange(handler); }

// ---- C forms of the C++ calls of mpw.h ----

int MPW_Init_c(char** url, int* ports, int numsockets) { return init(url, ports, numsockets); }
int MPW_Init1_c(char* url, int port) { return MPW_Init_c(&url, &port, 1); }

int MPW_SendRecv1_c(char* sendbuf, long long int sendsize, char* recvbuf, long long int recvsize, int base_channel) {
  return MPW_SendRecv(sendbuf, sendsize, recvbuf, recvsize, &base_channel, 1);
}

int MPW_SendRecv_c(char* sendbuf, long long int sendsize, char* recvbuf, long long int recvsize, int* base_channel,
                   int num_channels) {
  return MPW_SendRecv(sendbuf, sendsize, recvbuf, recvsize, base_channel, num_channels);
}

int MPW_PSendRecv_c(char** sendbuf, long long int* sendsize, char** recvbuf, long long int* recvsize, int* channel,
                    int num_channels) {
  return MPW_PSendRecv(sendbuf, sendsize, recvbuf, recvsize, channel, num_channels);
}

int MPW_Send_c(char* buf, long long int size, int* channels, int num_channels) {
  return MPW_Send(buf, size, channels, num_channels);
}
int MPW_Recv_c(char* buf, long long int size, int* channels, int num_channels) {
  return MPW_Recv(buf, size, channels, num_channels);
}

long long int MPW_DSendRecv_c(char* sendbuf, long long int sendsize, char* recvbuf, long long int maxrecvsize,
                              int* channel, int num_channels) {
  return MPW_DSendRecv(sendbuf, sendsize, recvbuf, maxrecvsize, channel, num_channels);
}

int MPW_CreatePath_c(char* host, int server_side_base_port, int num_streams) {
  return MPW_CreatePath(host, server_side_base_port, num_streams);
}
int MPW_CreatePathWithoutConnect_c(char* host, int server_side_base_port, int streams_in_path) {
  return MPW_CreatePathWithoutConnect(host, server_side_base_port, streams_in_path);
}

int MPW_PathSend_c(char* buf, long long int size, int path) { return MPW_Send(buf, size, path); }
int MPW_PathRecv_c(char* buf, long long int size, int path) { return MPW_Recv(buf, size, path); }

int MPW_PathSendRecv_c(char* sendbuf, long long int sendsize, char* recvbuf, long long int recvsize, int path) {
  return MPW_SendRecv(sendbuf, sendsize, recvbuf, recvsize, path);
}

int MPW_PathDSendRecv_c(char* sendbuf, long long int sendsize, char* recvbuf, long long int maxrecvsize, int path) {
  return MPW_DSendRecv(sendbuf, sendsize, recvbuf, maxrecvsize, path);
}

}  // extern "C"
