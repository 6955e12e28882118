// A peer with a key that says what it likes, over a real path.
#pragma once

#include <future>
#include <memory>

#include "tests/wan/helpers.hpp"
#include "tests/wan/net/copy/copy_fixture.hpp"
#include "wan/net/copy/message.hpp"
#include "wan/net/copy/message_channel.hpp"

namespace maki::wan::copy {

class HostilePeer {
 public:
  HostilePeer() : pair_(test::streams(2)) {
    ours_ = std::make_unique<MessageChannel>(std::move(pair_.here));
    theirs_ = std::make_unique<MessageChannel>(std::move(pair_.there));
  }
  MessageChannel& ours() { return *ours_; }
  std::unique_ptr<MessageChannel> take_ours() { return std::move(ours_); }
  MessageChannel& theirs() { return *theirs_; }
  void leave() { theirs_.reset(); }

  template <class Message>
  void say(Tag tag, const Message& message) {
    theirs_->send(tag, encode(message));
  }
  // Records, all in one message.
  template <class Write>
  void send_records(Write write) {
    RecordWriter writer(kMaxBatch, [this](Bytes message) { theirs_->send(kDataTag, std::move(message)); });
    write(writer);
    writer.flush();
  }

 private:
  test::Pair pair_;
  std::unique_ptr<MessageChannel> ours_, theirs_;
};

inline void put_file(RecordWriter& writer, std::uint64_t index, const std::string& text, std::uint32_t mode = 0644) {
  writer.put(Begin{.index = index, .size = text.size(), .mtime = 1, .mode = mode});
  std::memcpy(writer.room(text.size()).data(), text.data(), text.size());
  writer.filled(text.size());
  Digester digester;
  digester.add(std::as_bytes(std::span(text)));
  writer.put(End{digester.checksum()});
}

inline Entry file_entry(const std::string& path, std::uint64_t size, std::uint32_t mode = 0644) {
  return {.kind = Kind::kFile, .path = path, .size = size, .mtime = 1, .mode = mode};
}

inline bool has_control_characters(const std::string& text) {
  return std::any_of(text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; });
}

}  // namespace maki::wan::copy
