#include "wan/net/path/path_core.hpp"

#include <algorithm>
#include <cstring>

namespace maki::wan {

// ---- writing -------------------------------------------------------------------------------------------------------

namespace {

constexpr std::size_t kCopied = 4 << 10;     // payloads up to this size are copied next to other frames
constexpr std::size_t kGathered = 15 << 10;  // of frames copied together
constexpr std::size_t kMostWaiting = 1000;   // control frames, above which answers are dropped
constexpr std::size_t kTurn = 256 << 10;     // written before reads have their turn, with one stream

}  // namespace

Stream::Stream(PathCore& path, int number, std::unique_ptr<Channel> channel)
    : path_(path), number_(number), channel_(std::move(channel)) {}

void Stream::start() {
  path_.loop().watch(channel_->descriptor(), true, false, *this);
  watched_ = true;
  if (channel_->buffered()) read_later();  // the socket may be empty, so the loop would not call
}

void Stream::send_control(const Frame& frame, std::vector<std::byte> payload) {
  if (ended_) return;
  // A peer that does not read what it is sent gets no more pings and answers to its own.
  const bool heartbeat = frame.type == FrameType::kPing || frame.type == FrameType::kPong;
  if (heartbeat && control_.size() >= kMostWaiting) return;
  control_.push_back({frame, std::move(payload)});
}

void Stream::break_off() { ::shutdown(channel_->descriptor(), SHUT_RDWR); }

void Stream::finish() {
  if (channel_->flush() == IoStatus::kDone) channel_->finish_writing();
  stop();
}

// After this not even an event of the current batch may touch a caller's buffer, or be mistaken for one of this
// stream's successor.
void Stream::stop() {
  ended_ = true;
  let_go();
  landing_.reset();
  if (watched_) path_.loop().forget(channel_->descriptor());
  watched_ = false;
}

void Stream::want_write(bool want) {
  if (want == wants_write_ || ended_ || !watched_) return;
  wants_write_ = want;
  path_.loop().change(channel_->descriptor(), true, want);
}

void Stream::append(const Frame& frame, std::span<const std::byte> payload) {
  Frame stamped = frame;
  stamped.length = static_cast<std::uint32_t>(payload.size());
  stamped.checksum = channel_->encrypted() || payload.empty() ? 0 : checksum(payload);
  const auto header = encode(stamped);
  head_.insert(head_.end(), header.begin(), header.end());
}

// Gathers the next frames to write; false where there are none.
bool Stream::load() {
  head_.clear();
  head_done_ = body_done_ = 0;
  body_ = {};
  const auto append_whole = [&](const Frame& frame, std::span<const std::byte> payload) {
    append(frame, payload);
    head_.insert(head_.end(), payload.begin(), payload.end());
  };
  while (!control_.empty() && head_.size() < kGathered) {
    append_whole(control_.front().frame, control_.front().payload);
    control_.pop_front();
  }
  std::vector<std::byte> acknowledgement;
  if (path_.take_acknowledgement(acknowledgement)) append_whole({.type = FrameType::kAck}, acknowledgement);
  while (head_.size() < kGathered) {
    const auto chunk = path_.next_chunk(*this);
    if (!chunk) break;
    const auto payload = chunk->payload();
    if (chunk->frame.type == FrameType::kData) sent += payload.size();
    if (payload.size() <= kCopied) {
      append_whole(chunk->frame, payload);
      continue;
    }
    append(chunk->frame, payload);
    body_ = payload;
    chunk_ = chunk;
    path_.begin_writing(*chunk);
    break;
  }
  return !head_.empty();
}

void Stream::let_go() {
  if (!chunk_) return;
  body_ = {};
  const auto chunk = std::move(chunk_);
  chunk_ = nullptr;
  path_.end_writing(*chunk);
}

void Stream::pump() {
  if (ended_ || wants_write_) return;  // the loop calls when the socket is writable
  try {
    write_some();
  } catch (const Error& error) {
    end(error.what());
  }
}

void Stream::write_some() {
  // With many streams, each writes one chunk, then the others have their turn.
  const PathSettings& settings = path_.stream_settings();
  const std::size_t most = settings.streams > 1 ? 2 * kCopied : kTurn;
  std::size_t turn = 0;
  while (true) {
    // A new chunk is loaded only when the kernel has the last one: another stream may have more room for it.
    if (!writing() && (!flush() || !load())) break;
    const IoResult result =
        channel_->write(std::span<const std::byte>(head_).subspan(head_done_), body_.subspan(body_done_));
    const std::size_t of_head = std::min(result.bytes, head_.size() - head_done_);
    head_done_ += of_head;
    body_done_ += result.bytes - of_head;
    turn += result.bytes;
    written += result.bytes;
    flushed_ = false;
    if (!writing()) let_go();
    if (result.status == IoStatus::kClosed) return end("the connection was closed");
    if (result.status == IoStatus::kWantWrite || turn >= most) return want_write(true);
  }
  want_write(!flushed_);
}

// True when the kernel has all written bytes.
bool Stream::flush() {
  const IoStatus status = channel_->flush();
  flushed_ = status == IoStatus::kDone;
  if (status == IoStatus::kClosed) end("the connection was closed");
  return flushed_;
}

// ---- reading -------------------------------------------------------------------------------------------------------

namespace {

constexpr std::size_t kDirect = 2 << 10;  // from this much missing payload on, it is read directly to its place
constexpr std::size_t kWaste = 64 << 10;

}  // namespace

void Stream::on_ready(bool readable, bool writable) {
  try {
    if (readable) read_some();
    if (writable && !ended_) {
      want_write(false);
      write_some();
    }
  } catch (const Error& error) {
    end(error.what());
  }
}

void Stream::end(const std::string& why) {
  if (ended_) return;
  stop();
  path_.ended(*this, why);
}

void Stream::read_some() {
  std::size_t taken = 0;
  const std::size_t turn = path_.stream_settings().receive_chunk;
  while (!ended_ && taken < turn && read_more(taken)) {
  }
  if (ended_) return;
  if (taken > 0) path_.received_data(*this);
  if (taken >= turn && channel_->buffered()) read_later();
}

// It runs before the stream is deleted, which is posted after its end.
void Stream::read_later() {
  path_.loop().post([this] {
    if (!ended_) on_ready(true, false);
  });
}

// One read; false if there is no more data now.
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
    end("the connection was closed");
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

// Processes bytes that were read to the staging buffer.
void Stream::take(std::span<const std::byte> bytes) {
  while (!bytes.empty() && !ended_) {
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
  payload_filled_ = 0;
  landing_.reset();
  if (frame_.type == FrameType::kData) {
    if (!path_.has_received(frame_.sequence)) landing_ = path_.begin_data(frame_);
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
    path_.control(*this, frame_, control_payload_);
    return;
  }
  auto landing = std::move(landing_);
  if (!landing || !landing->wanted() || path_.has_received(frame_.sequence)) return;  // a duplicate
  if (!channel_->encrypted() && frame_.length > 0 && landing->where != nullptr &&
      checksum({landing->where, frame_.length}) != frame_.checksum)
    throw ProtocolError("A chunk came with a wrong checksum", "the network altered it", "it will be sent again");
  received += frame_.length;
  path_.finish_data(frame_, std::move(landing));
}

}  // namespace maki::wan
