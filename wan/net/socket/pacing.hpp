// Pacing of a stream by the kernel, beside that of the whole path (path/path_traffic.cpp). The kernel spaces what it sends by
// the stream's window: good for long transfers, whose windows grow further that way (64 MB over 270 ms in 0.80 s instead of
// 0.97), but what sets out after a pause takes a quarter of a round trip to leave, and more.
#pragma once

namespace maki::wan {

// Whether the kernel paces this TCP socket in any case: BBR, in each of its versions.
bool is_paced(int descriptor);

// Makes the kernel pace a socket, at `rate` bytes a second at most: that of the whole path, as how its streams share it
// changes from moment to moment. 0: no bound; but a socket that was paced stays so.
void bound_pacing(int descriptor, double rate);

}  // namespace maki::wan
