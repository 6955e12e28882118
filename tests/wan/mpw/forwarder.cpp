// MPWide's Forwarder: passes on what comes from one network to another, and back.
//   forwarder SOURCE_HOST SOURCE_PORT DESTINATION_HOST DESTINATION_PORT CHANNELS
// Ends when one side does. ('maki wan relay' does the same without holding whole messages, for any number of peers.)
#include <cstdlib>
#include <vector>

#include "MPWide.h"

int main(int argc, char** argv) {
  if (argc != 6) {
    cout << "usage: forwarder SOURCE_HOST SOURCE_PORT DESTINATION_HOST DESTINATION_PORT CHANNELS" << endl;
    return 2;
  }
  const int count = atoi(argv[5]);
  vector<string> hosts;
  vector<int> ports, source, destination;
  for (int side = 0; side < 2; ++side) {
    for (int i = 0; i < count; ++i) {
      hosts.push_back(argv[1 + 2 * side]);
      ports.push_back(atoi(argv[2 + 2 * side]) + i);
      (side == 0 ? source : destination).push_back(side * count + i);
    }
  }
  MPW_Init(hosts.data(), ports.data(), 2 * count);
  cout << "forwarding" << endl;
  MPW_Relay(source.data(), destination.data(), count);
  MPW_Finalize();
  return 0;
}
