#include "host/fft/device_messages.hpp"

#include <string_view>

#include "kernels/device/device.hpp"
#include "kernels/device/memory.hpp"

namespace maki {
namespace {

template <class Message>
std::size_t total(const std::vector<Message>& messages) {
  std::size_t bytes = 0;
  for (const Message& message : messages) bytes += message.bytes;
  return bytes;
}

}  // namespace

DeviceMessages::DeviceMessages(const Communicator& communicator) : communicator_(communicator) {}

void DeviceMessages::exchange(const Stream& stream, std::span<const Communicator::Outgoing> out,
                              std::span<const Communicator::Incoming> in, int tag) {
  if (out.empty() && in.empty()) return;
  for (const Communicator::Outgoing& message : out) {
    ++traffic_.messages;
    traffic_.bytes += message.bytes;
  }
  stream.synchronize();
  if (std::string_view(backend_name()) == "cpu") return communicator_.exchange(out, in, tag);

  std::vector<Communicator::Outgoing> outgoing(out.begin(), out.end());
  std::vector<Communicator::Incoming> incoming(in.begin(), in.end());
  out_.resize(total(outgoing));
  in_.resize(total(incoming));
  char* place = out_.data();
  for (Communicator::Outgoing& message : outgoing) {
    copy_to_host(stream, place, message.data, message.bytes);
    message.data = place;
    place += message.bytes;
  }
  place = in_.data();
  for (Communicator::Incoming& message : incoming) {
    message.data = place;
    place += message.bytes;
  }
  communicator_.exchange(outgoing, incoming, tag);
  for (std::size_t i = 0; i < in.size(); ++i) copy_to_device(stream, in[i].data, incoming[i].data, in[i].bytes);
  stream.synchronize();
}

}  // namespace maki
