// MPWide's calls that are C++ only (mpw/calls_c.cpp has those that C sees too).
#include "wan/net/mpw.h"

#include <vector>

#include "wan/net/mpw/calls.hpp"
#include "wan/net/mpw/error_boundary.hpp"
#include "wan/net/mpw/table.hpp"

namespace mpw = maki::wan::mpw;

namespace {

constexpr int kDefaultPort = 6000;

}  // namespace

int MPW_Init(std::string* url, int* server_side_ports, int*, int num_channels) {
  return MPW_Init(url, server_side_ports, num_channels);
}

int MPW_Init(std::string* url, int* server_side_ports, int num_channels) {
  return mpw::guarded([&] {
    const auto hosts =
        num_channels > 0 ? std::vector<std::string>(url, url + num_channels) : std::vector<std::string>{};
    mpw::init(hosts, server_side_ports, num_channels);
    return 0;
  });
}

int MPW_Init(std::string url, int port) { return MPW_Init(&url, &port, 1); }
int MPW_Init(std::string url) { return MPW_Init(url, kDefaultPort); }
int MPW_Init() { return MPW_Init(nullptr, nullptr, 0); }

int MPW_CreatePath(std::string host, int server_side_base_port, int num_streams) {
  return mpw::reported([&] { return mpw::create_path(host, server_side_base_port, num_streams); });
}

int MPW_CreatePathWithoutConnect(std::string host, int server_side_base_port, int streams_in_path) {
  return mpw::reported([&] { return mpw::Table::get().add_path(host, server_side_base_port, streams_in_path); });
}

int MPW_Send(char* sendbuf, long long int sendsize, int path) {
  return mpw::guarded([&] { return mpw::send(mpw::lanes_of_path(path), sendbuf, sendsize), 0; });
}

int MPW_Recv(char* recvbuf, long long int recvsize, int path) {
  return mpw::guarded([&] { return mpw::receive(mpw::lanes_of_path(path), recvbuf, recvsize), 0; });
}

int MPW_SendRecv(char* sendbuf, long long int sendsize, char* recvbuf, long long int recvsize, int path) {
  return mpw::guarded([&] {
    const auto lanes = mpw::lanes_of_path(path);
    return mpw::send_receive(lanes, sendbuf, sendsize, lanes, recvbuf, recvsize), 0;
  });
}

int MPW_DSendRecv(char* sendbuf, long long int sendsize, char* recvbuf, long long int maxrecvsize, int path) {
  return mpw::guarded([&] {
    const auto lanes = mpw::lanes_of_path(path);
    return static_cast<int>(mpw::send_receive_unknown(lanes, sendbuf, sendsize, lanes, recvbuf, maxrecvsize));
  });
}

int MPW_Send(char* buf, long long int size, int* channels, int num_channels) {
  return mpw::guarded([&] { return mpw::send(mpw::lanes_of(channels, num_channels), buf, size), 0; });
}

int MPW_Recv(char* buf, long long int size, int* channels, int num_channels) {
  return mpw::guarded([&] { return mpw::receive(mpw::lanes_of(channels, num_channels), buf, size), 0; });
}

int MPW_SendRecv(char* sendbuf, long long int sendsize, char* recvbuf, long long int recvsize, int* channel,
                 int num_channels) {
  return mpw::guarded([&] {
    const auto lanes = mpw::lanes_of(channel, num_channels);
    return mpw::send_receive(lanes, sendbuf, sendsize, lanes, recvbuf, recvsize), 0;
  });
}

long long int MPW_DSendRecv(char* sendbuf, long long int sendsize, char* recvbuf, long long int maxrecvsize,
                            int* channel, int num_channels) {
  return mpw::guarded([&] {
    const auto lanes = mpw::lanes_of(channel, num_channels);
    return mpw::send_receive_unknown(lanes, sendbuf, sendsize, lanes, recvbuf, maxrecvsize);
  });
}

char* MPW_DNSResolve(std::string host) { return MPW_DNSResolve(host.data()); }
