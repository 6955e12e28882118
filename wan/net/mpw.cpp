// MPWide's calls: the C++ forms, then those common to C.
#include "wan/net/mpw.h"

#include <cstdio>
#include <vector>

#include "wan/net/mpw/calls.hpp"
#include "wan/net/socket/tcp.hpp"

using namespace maki::wan::mpw;

namespace {

constexpr int kDefaultPort = 6000;

std::size_t size_of(int bytes) { return bytes > 0 ? static_cast<std::size_t>(bytes) : 0; }

}  // namespace

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

int MPW_Send(char* sendbuf, long long int sendsize, int path) { return send_over({sendbuf, sendsize}, path); }
int MPW_Recv(char* recvbuf, long long int recvsize, int path) { return receive_over({recvbuf, recvsize}, path); }

int MPW_SendRecv(char* sendbuf, long long int sendsize, char* recvbuf, long long int recvsize, int path) {
  return send_receive_over({sendbuf, sendsize}, {recvbuf, recvsize}, path);
}

int MPW_DSendRecv(char* sendbuf, long long int sendsize, char* recvbuf, long long int maxrecvsize, int path) {
  return static_cast<int>(send_receive_unknown_over({sendbuf, sendsize}, {recvbuf, maxrecvsize}, path));
}

int MPW_Send(char* buf, long long int size, int* channels, int num_channels) {
  return send_over({buf, size}, channels, num_channels);
}

int MPW_Recv(char* buf, long long int size, int* channels, int num_channels) {
  return receive_over({buf, size}, channels, num_channels);
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
  return guarded([] {
    table().finalize();
    begun().forget_all();
  });
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
    exchange.receive(lanes, parts_of(recvbuf, recvsize, num_channels));
    exchange.send(lanes, parts_of(sendbuf, sendsize, num_channels));
    exchange.wait();
  });
}

int MPW_PSend(char** sendbuf, long long int* sendsize, int* channel, int num_channels) {
  return guarded([&] {
    Exchange exchange;
    exchange.send(lanes_of(channel, num_channels), parts_of(sendbuf, sendsize, num_channels));
    exchange.wait();
  });
}

int MPW_PRecv(char** recvbuf, long long int* recvsize, int* channel, int num_channels) {
  return guarded([&] {
    Exchange exchange;
    exchange.receive(lanes_of(channel, num_channels), parts_of(recvbuf, recvsize, num_channels));
    exchange.wait();
  });
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
    return begun().add(std::move(exchange));
  });
}

bool MPW_Has_NBE_Finished(int NBE_id) {
  return guarded([&] {
    const auto exchange = begun().find(NBE_id);
    return !exchange || exchange->test();
  });
}

void MPW_Wait(int NBE_id) {
  guarded([&] {
    const auto exchange = begun().find(NBE_id);
    if (!exchange) return;
    exchange->wait();
    begun().forget(NBE_id);
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
