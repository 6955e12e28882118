#include "kernels/device/stream.hpp"

namespace maki {

Stream::Stream(StreamPriority) {}
Stream::~Stream() = default;
void Stream::synchronize() const {}
void set_stream_waiter(StreamWaiter) {}  // nothing is ever queued
void Stream::wait_for(const Stream&) const {}

StreamMark::StreamMark() = default;
StreamMark::~StreamMark() = default;
StreamMark::StreamMark(StreamMark&&) noexcept = default;
StreamMark& StreamMark::operator=(StreamMark&&) noexcept = default;
void StreamMark::set(const Stream&) {}
bool StreamMark::reached() const { return true; }
void StreamMark::hold_back(const Stream&) const {}

}  // namespace maki
