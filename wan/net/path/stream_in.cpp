// The half of Stream that reads.
#include <algorithm>
#include <cstring>

#include "wan/net/path/stream.hpp"

namespace maki::wan {
namespace {

constexpr std::size_t kDirect = 2 << 10;  // this much or more missing of a payload is read straight to its place
constexpr std::size_t kWaste = 64 << 10;

}  // namespace

void Stream::on_ready(bool readable, bool writable) {
  const auto alive = alive_;
  try {
    if (readable) read_some();
    if (*alive && writable && !ended_) {
      want_write(false);
      write_some();
    }
  } catch (const Error& error) {
    if (*alive) end(error.what());
  }
}

void Stream::end(const std::string& why) {
  if (ended_) return;
  stop();
  host_.ended(*this, why);
}

void Stream::read_some() {
  const auto alive = alive_;
  std::size_t taken = 0;
  const std::size_t turn = host_.stream_settings().receive_chunk;
  while (*alive && !ended_ && taken < turn && read_more(taken)) {
  }
  if (!*alive || ended_) return;
  if (taken > 0) host_.heard(*this);
  if (taken >= turn && channel_->buffered()) read_later();
}

void Stream::read_later() {
  host_.loop().post([this, alive = alive_] {
    if (*alive && !ended_) on_ready(true, false);
  });
}

// One read; false when there is nothing more now.
bool Stream::read_more(std::size_t& taken) {
  std::span<std::byte> into = staging_;
  const std::size_t missing = in_payload_ ? frame_.length - payload_filled_ : 0;
  const bool direct = missing >= kDirect;
  if (direct) {
    if (frame_.type != FrameType::kData) {
      into = std::span<std::byte>(control_payload_).subspan(payload_filled_, missing);
    } else if (!landing_ || landing_->where == nullptr) {
      waste_.resize(kWaste);
      into = std::span<std::byte>(waste_).first(std::min(kWaste, missing));
    } else {
      into = {landing_->where + payload_filled_, missing};
    }
  }
  const IoResult result = channel_->read(into);
  if (result.status == IoStatus::kClosed) {
    end(peer_retired_ ? "" : "the connection was closed");
    return false;
  }
  if (result.bytes == 0) {
    if (result.status == IoStatus::kWantWrite) want_write(true);
    return false;
  }
  taken += result.bytes;
  if (direct) {
    payload_filled_ += result.bytes;
    if (payload_filled_ == frame_.length) finish_frame();
  } else {
    take(into.first(result.bytes));
  }
  return true;
}

// Takes bytes that were read to the staging place.
void Stream::take(std::span<const std::byte> bytes) {
  const auto alive = alive_;
  while (!bytes.empty() && *alive && !ended_) {
    if (!in_payload_) {
      const std::size_t part = std::min(bytes.size(), kFrameBytes - header_filled_);
      std::memcpy(header_.data() + header_filled_, bytes.data(), part);
      header_filled_ += part;
      bytes = bytes.subspan(part);
      if (header_filled_ == kFrameBytes) begin_frame();
      continue;
    }
    const std::size_t part = std::min<std::size_t>(bytes.size(), frame_.length - payload_filled_);
    if (frame_.type != FrameType::kData) {
      std::memcpy(control_payload_.data() + payload_filled_, bytes.data(), part);
    } else if (landing_ && landing_->where != nullptr) {
      std::memcpy(landing_->where + payload_filled_, bytes.data(), part);
    }
    payload_filled_ += part;
    bytes = bytes.subspan(part);
    if (payload_filled_ == frame_.length) finish_frame();
  }
}

void Stream::begin_frame() {
  header_filled_ = 0;
  frame_ = decode_frame(header_);
  if (peer_retired_) throw ProtocolError("Frames came after the last one of a stream");
  payload_filled_ = 0;
  landing_.reset();
  if (frame_.type == FrameType::kData) {
    if (!host_.has_received(frame_.sequence)) landing_ = host_.begin_data(frame_);
  } else {
    control_payload_.resize(frame_.length);
  }
  in_payload_ = true;
  if (frame_.length == 0) finish_frame();
}

void Stream::finish_frame() {
  in_payload_ = false;
  if (frame_.type != FrameType::kData) {
    if (!channel_->encrypted() && frame_.length > 0 && checksum(control_payload_) != frame_.checksum)
      throw ProtocolError("A control frame came with a wrong checksum");
    if (frame_.type == FrameType::kRetire) peer_retired_ = true;
    host_.control(*this, frame_, control_payload_);
    return;
  }
  auto landing = std::move(landing_);
  if (!landing || !landing->wanted() || host_.has_received(frame_.sequence)) return;  // it came twice
  if (!channel_->encrypted() && frame_.length > 0 && landing->where != nullptr &&
      checksum({landing->where, frame_.length}) != frame_.checksum)
    throw ProtocolError("A chunk came with a wrong checksum", "the network altered it", "it will be sent again");
  received += frame_.length;
  host_.finish_data(frame_, std::move(landing));
}

}  // namespace maki::wan
