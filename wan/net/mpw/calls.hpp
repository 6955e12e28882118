// What the C++ and the C forms of a call share: channel numbers from either, and the work itself. All throw.
#pragma once

#include <string>
#include <vector>

#include "wan/net/mpw/link.hpp"
#include "wan/net/mpw/transfer.hpp"

namespace maki::wan::mpw {

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
