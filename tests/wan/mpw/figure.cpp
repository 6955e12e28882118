// The example of the MPWide papers (figure 1): a site's communication node takes data from a process of its own
// network, exchanges it with the other site's node over two channels, and gives what came back to that process.
//   figure node LAN_HOST LAN_PORT WAN_HOST WAN_PORT     a communication node
//   figure process NODE_HOST LAN_PORT LETTER            a process that sends its letter 100 times
// A process ends with status 0 and says what it got.
#include <cstdlib>
#include <cstring>

#include "MPWide.h"

namespace {

constexpr int kMessage = 100;  // bytes

int communication_node(char** argv) {
  const int NumChannels = 3;  // one of the local network, two of the wide area
  string Hosts[NumChannels] = {argv[2], argv[4], argv[4]};
  int Ports[NumChannels] = {atoi(argv[3]), atoi(argv[5]), atoi(argv[5]) + 1};
  MPW_Init(Hosts, Ports, NumChannels);

  int LANChannels[1] = {0};
  int WANChannels[2] = {1, 2};
  char* SendBuf = new char[kMessage];
  char* RecvBuf = new char[kMessage];
  MPW_Recv(SendBuf, kMessage, LANChannels, 1);
  MPW_SendRecv(SendBuf, kMessage, RecvBuf, kMessage, WANChannels, 2);
  MPW_Send(RecvBuf, kMessage, LANChannels, 1);

  delete[] SendBuf;
  delete[] RecvBuf;
  MPW_Finalize();
  return 0;
}

int process(char** argv) {
  MPW_Init(argv[2], atoi(argv[3]));
  int channel[1] = {0};
  char mine[kMessage], theirs[kMessage];
  memset(mine, argv[4][0], kMessage);
  MPW_Send(mine, kMessage, channel, 1);
  MPW_Recv(theirs, kMessage, channel, 1);
  MPW_Finalize();
  for (const char letter : theirs) {
    if (letter != theirs[0]) return 3;
  }
  cout << argv[4] << " got " << theirs[0] << endl;
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const string role = argc > 1 ? argv[1] : "";
  if (role == "node" && argc == 6) return communication_node(argv);
  if (role == "process" && argc == 5) return process(argv);
  cout << "usage: figure node LAN_HOST LAN_PORT WAN_HOST WAN_PORT | figure process NODE_HOST LAN_PORT LETTER" << endl;
  return 2;
}
