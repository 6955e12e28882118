#include "kernels/device/async_copy.hpp"

namespace maki {

StreamMark::StreamMark() = default;
StreamMark::~StreamMark() = default;
StreamMark::StreamMark(StreamMark&&) noexcept = default;
StreamMark& StreamMark::operator=(StreamMark&&) noexcept = default;
void StreamMark::set(const Stream&) {}
bool StreamMark::reached() const { return true; }
void StreamMark::hold_back(const Stream&) const {}

}  // namespace maki
