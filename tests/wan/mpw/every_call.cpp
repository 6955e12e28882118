// A program as one writes it for MPWide, with every call (plain_c.c has the forms for C): two sides, each started with
// its number and the other's host.
//   every_call 0|1 HOST PORT [default-port]
// All that arrives is checked. The last argument adds MPW_Init(host), whose port is fixed. Ends with status 0.
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "MPWide.h"

namespace {

int me = 0, checks = 0;
string host;
int base = 0;

void check(bool good, const char* what) {
  ++checks;
  if (good) return;
  cout << "side " << me << ": wrong: " << what << endl;
  exit(3);
}

#define CHECK(condition) check(condition, #condition)

void stage(const char* name) {
  static const auto begun = chrono::steady_clock::now();
  cout << chrono::duration<double>(chrono::steady_clock::now() - begun).count() << " s: " << name << endl;
}

// What `side` sends as its n-th message.
vector<char> message(int side, int n, size_t size) {
  vector<char> bytes(size);
  unsigned state = 12345u + 7919u * static_cast<unsigned>(n) + 104729u * static_cast<unsigned>(side);
  for (char& byte : bytes) {
    state = state * 1664525u + 1013904223u;
    byte = static_cast<char>(state >> 24);
  }
  return bytes;
}

vector<int> channels(int first, int count) {
  vector<int> numbers;
  for (int i = 0; i < count; ++i) numbers.push_back(first + i);
  return numbers;
}

void settings_first() {
  char name[] = "localhost", address[] = "127.0.0.1";
  CHECK(MPW_DNSResolve(name) != nullptr);
  CHECK(string(MPW_DNSResolve(address)) == "127.0.0.1");
  CHECK(string(MPW_DNSResolve(string("127.0.0.1"))) == "127.0.0.1");
  CHECK(MPW_AutoTuning());
  MPW_setAutoTuning(false);
  CHECK(!MPW_AutoTuning());
  CHECK(MPW_getPacingRate() == -1);
#if PacingMode == 1
  MPW_setPacingRate(500.0 * 1024 * 1024);
  CHECK(MPW_getPacingRate() == 500.0 * 1024 * 1024);
#endif
  MPW_setChunkSize(65536, 131072);
  CHECK(MPW_NumChannels() == 0);
}

// Channels 0 to 3, 4 and 5, 6, and 7 with the port that is the library's choice.
void initialize(bool default_port) {
  MPW_Init();
  CHECK(MPW_NumChannels() == 0);
  string hosts[4] = {host, host, host, host};
  int ports[4] = {base, base + 1, base + 2, base + 3}, client_ports[4] = {base + 4, base + 5, base + 6, base + 7};
  MPW_Init(hosts, ports, client_ports, 4);
  int more[2] = {base + 11, base + 10};
  CHECK(MPW_Init(hosts, more, 2) == 0);
  MPW_Init(host, base + 20);
  if (default_port) MPW_Init(host);
  CHECK(MPW_NumChannels() == (default_port ? 8 : 7));
  MPW_Print();
}

// Sizes that do and do not divide, and one that is no small message.
void messages_over_channels() {
  for (const size_t size : {size_t{1}, size_t{3}, size_t{4096}, size_t{100001}, size_t{5000000}}) {
    auto mine = message(me, 1, size), theirs = message(1 - me, 1, size);
    vector<char> got(size);
    auto four = channels(0, 4);
    const auto bytes = static_cast<long long>(size);
    if (me == 0) {
      MPW_Send(mine.data(), bytes, four.data(), 4);
      MPW_Recv(got.data(), bytes, four.data(), 4);
    } else {
      MPW_Recv(got.data(), bytes, four.data(), 4);
      MPW_Send(mine.data(), bytes, four.data(), 4);
    }
    CHECK(got == theirs);
    fill(got.begin(), got.end(), 0);
    MPW_SendRecv(mine.data(), bytes, got.data(), bytes, four.data(), 4);
    CHECK(got == theirs);
  }
  int* first = nullptr;  // stands for channel 0
  char word[6] = "maki!", came[6] = "";
  MPW_SendRecv(word, 6, came, 6, first, 1);
  CHECK(!strcmp(came, "maki!"));
  MPW_Barrier(0);
  MPW_Barrier(6);
}

// The two sides send different amounts, one of them nothing.
void sizes_that_differ() {
  auto two = channels(4, 2);
  const size_t mine = me == 0 ? 3000001 : 17, theirs = me == 0 ? 17 : 3000001;
  const auto going = static_cast<long long>(mine), coming = static_cast<long long>(theirs);
  auto out = message(me, 2, mine);
  vector<char> in(theirs);
  MPW_SendRecv(out.data(), going, in.data(), coming, two.data(), 2);
  CHECK(in == message(1 - me, 2, theirs));
  if (me == 0) MPW_SendRecv(out.data(), going, nullptr, 0, two.data(), 2);
  if (me == 1) MPW_SendRecv(nullptr, 0, in.data(), coming, two.data(), 2);
  CHECK(in == message(1 - me, 2, theirs));

  vector<char> room(4000000);
  CHECK(MPW_DSendRecv(out.data(), going, room.data(), 4000000, two.data(), 2) == coming);
  CHECK(equal(in.begin(), in.end(), room.begin()));
  CHECK(MPW_DSendRecv(nullptr, 0, room.data(), 4000000, two.data(), 2) == 0);
}

void buffer_for_each_channel() {
  auto three = channels(0, 3);
  long long sizes[3] = {10, 200000, 1}, theirs[3] = {10, 200000, 1};
  vector<vector<char>> out, in;
  char *outs[3], *ins[3];
  for (int i = 0; i < 3; ++i) {
    out.push_back(message(me, 10 + i, static_cast<size_t>(sizes[i])));
    in.emplace_back(static_cast<size_t>(sizes[i]));
  }
  for (size_t i = 0; i < 3; ++i) outs[i] = out[i].data(), ins[i] = in[i].data();
  const auto right = [&] {
    for (int i = 0; i < 3; ++i) {
      auto& one = in[static_cast<size_t>(i)];
      if (one != message(1 - me, 10 + i, one.size())) return false;
      fill(one.begin(), one.end(), 0);
    }
    return true;
  };
  MPW_PSendRecv(outs, sizes, ins, theirs, three.data(), 3);
  CHECK(right());
  MPW_PSendRecv_c(outs, sizes, ins, theirs, three.data(), 3);
  CHECK(right());
  if (me == 0) MPW_PSend(outs, sizes, three.data(), 3);
  MPW_PRecv(ins, theirs, three.data(), 3);
  if (me == 1) MPW_PSend(outs, sizes, three.data(), 3);
  CHECK(right());

  // Cut here as the library cuts it there.
  auto whole = message(me, 20, 1000003);
  vector<char> got(1000003);
  char* pieces[3];
  long long lengths[3];
  MPW_splitBuf(whole.data(), 1000003, 3, pieces, lengths);
  CHECK(lengths[0] + lengths[1] + lengths[2] == 1000003 && pieces[1] == pieces[0] + lengths[0]);
  if (me == 0) MPW_PSend(pieces, lengths, three.data(), 3);
  if (me == 1) MPW_Recv(got.data(), 1000003, three.data(), 3);
  CHECK(me == 0 || got == message(0, 20, 1000003));
}

void cycles() {
  auto half = channels(0, 2), other = channels(2, 2);
  int* to = me == 0 ? half.data() : other.data();
  int* from = me == 0 ? other.data() : half.data();
  auto out = message(me, 30, 123457);
  vector<char> in(123457);
  MPW_Cycle(out.data(), 123457, in.data(), 123457, to, 2, from, 2);
  CHECK(in == message(1 - me, 30, 123457));
  const long long mine = me == 0 ? 99999 : 11;
  vector<char> room(200000);
  const long long came = MPW_DCycle(out.data(), mine, room.data(), 200000, to, 2, from, 2);
  CHECK(came == (me == 0 ? 11 : 99999));
  const auto sent = message(1 - me, 30, 123457);
  CHECK(equal(sent.begin(), sent.begin() + came, room.begin()));
}

void closing_and_reopening() {
  MPW_setWin(0, 1 << 20);
  auto four = channels(0, 4);
  MPW_Barrier(0);
  MPW_CloseChannels(four.data(), 4);
  MPW_ReOpenChannels(four.data(), 4);
  auto out = message(me, 40, 777777);
  vector<char> in(777777);
  MPW_SendRecv(out.data(), 777777, in.data(), 777777, four.data(), 4);
  CHECK(in == message(1 - me, 40, 777777));
  // A part of the channels, while the others stay open.
  MPW_Barrier(0);
  MPW_CloseChannels(four.data(), 2);
  MPW_Barrier(3);
  MPW_ReOpenChannels(four.data(), 2);
  MPW_SendRecv(out.data(), 777777, in.data(), 777777, four.data(), 4);
  CHECK(in == message(1 - me, 40, 777777));
}

// Several at once; one side waits for them in the other order.
void several_at_once(int path) {
  vector<vector<char>> in(4, vector<char>(300000)), out;
  vector<int> begun;
  for (int i = 0; i < 4; ++i) out.push_back(message(me, 60 + i, 300000));
  for (size_t i = 0; i < 4; ++i) begun.push_back(MPW_ISendRecv(out[i].data(), 300000, in[i].data(), 300000, path));
  for (size_t i = 0; i < 4; ++i) {
    const size_t at = me == 0 ? i : 3 - i;
    MPW_Wait(begun[at]);
    CHECK(MPW_Has_NBE_Finished(begun[at]));
    CHECK(in[at] == message(1 - me, 60 + static_cast<int>(at), 300000));
  }
  const int last = MPW_ISendRecv(out[0].data(), 300000, in[0].data(), 300000, path);
  while (!MPW_Has_NBE_Finished(last)) usleep(1000);
  MPW_Wait(last);
}

void over_paths() {
  const int path = MPW_CreatePath(host, base + 30, 3);
  CHECK(path == 0);
  MPW_setPathWin(path, 262144);
  auto out = message(me, 50, 2000003);
  vector<char> in(2000003);
  const auto theirs = message(1 - me, 50, 2000003);
  if (me == 0) MPW_Send(out.data(), 2000003, path);
  MPW_Recv(in.data(), 2000003, path);
  if (me == 1) MPW_Send(out.data(), 2000003, path);
  CHECK(in == theirs);
  fill(in.begin(), in.end(), 0);
  MPW_SendRecv(out.data(), 2000003, in.data(), 2000003, path);
  CHECK(in == theirs);
  fill(in.begin(), in.end(), 0);
  CHECK(MPW_DSendRecv(out.data(), 1999999, in.data(), 2000003, path) == 1999999);
  several_at_once(path);

  // One side waits to be called, the other calls until it is there.
  const int second = MPW_CreatePathWithoutConnect(host, base + 40, 2);
  CHECK(second == 1);
  if (me == 0) CHECK(MPW_ConnectPath(second, true) == 0);
  if (me == 1) {
    while (MPW_ConnectPath(second, false) < 0) usleep(20000);
  }
  MPW_SendRecv(out.data(), 5, in.data(), 5, second);
  CHECK(equal(in.begin(), in.begin() + 5, theirs.begin()));
  CHECK(MPW_DestroyPath(second) == 0);
  CHECK(MPW_DestroyPath(path) == 0);
}

// Side 0 passes on what side 1 sends over channel 4 to channel 5, and back, until side 1 closes them.
void relaying() {
  int one[1] = {4}, other[1] = {5};
  if (me == 0) MPW_Relay(one, other, 1);
  for (int i = 0; me == 1 && i < 10; ++i) {
    const size_t size = i % 2 == 0 ? 100 : 400000;
    const auto bytes = static_cast<long long>(size);
    auto out = message(1, 70 + i, size);
    vector<char> in(size);
    MPW_Cycle(out.data(), bytes, in.data(), bytes, one, 1, other, 1);
    CHECK(in == out);
    MPW_Cycle(out.data(), bytes, in.data(), bytes, other, 1, one, 1);
    CHECK(in == out);
  }
  MPW_CloseChannels(one, 1);
  MPW_CloseChannels(other, 1);
}

string told;
void keep(const char* text) { told = text; }

void errors() {
  CHECK(MPW_SetErrorHandler(keep) == nullptr);
  char byte = 0;
  CHECK(MPW_Send(&byte, 1, 99) < 0);
  CHECK(told.find("no path 99") != string::npos);
  int channel = 4;  // closed
  CHECK(MPW_Send(&byte, 1, &channel, 1) < 0);
  CHECK(told.find("Channel 4 is not connected") != string::npos);
  CHECK(MPW_DestroyPath(7) < 0);
  CHECK(MPW_SetErrorHandler(nullptr) == keep);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    cout << "usage: every_call 0|1 HOST PORT [default-port]" << endl;
    return 2;
  }
  me = atoi(argv[1]);
  host = argv[2];
  base = atoi(argv[3]);
  stage("begun");
  settings_first();
  initialize(argc > 4 && string(argv[4]) == "default-port");
  stage("initialized");
  MPW_setAutoTuning(true);
  messages_over_channels();
  sizes_that_differ();
  stage("messages");
  buffer_for_each_channel();
  stage("buffers");
  cycles();
  stage("cycles");
  over_paths();
  stage("paths");
  relaying();
  stage("relay");
  closing_and_reopening();
  stage("closed and opened again");
  errors();
  CHECK(MPW_Finalize() == 0);
  CHECK(MPW_NumChannels() == 0);
  cout << "side " << me << ": every call, " << checks << " checks passed" << endl;
  return 0;
}
