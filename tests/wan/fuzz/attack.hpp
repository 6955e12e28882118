// The hostile end of a path, and the program at the honest end, which must get nothing but what was sent.
#pragma once

#include <list>
#include <map>
#include <memory>
#include <vector>

#include "tests/wan/fuzz/frame_maker.hpp"
#include "tests/wan/net/path/raw_peer.hpp"
#include "tests/wan/net/secure/service.hpp"

namespace maki::wan::fuzz {

// Streams by hand that send what a FrameMaker makes, are cut in the middle of it, and come again.
class Attack {
 public:
  Attack(Random& random, const Security& security) : random_(random), frames_(random), security_(security) {}
  virtual ~Attack() = default;
  void act();               // one frame on one stream
  virtual void open() = 0;  // one more stream, where that can be
  void end() { streams_.clear(), left_.clear(); }
  bool anything() const { return !streams_.empty(); }
  std::uint64_t frames() const { return sent_; }

 protected:
  using Number = std::uint32_t;
  void add(Number number, std::unique_ptr<test::HandMadeStream> stream);
  Random& random_;
  FrameMaker frames_;
  Security security_;

 private:
  using Streams = std::map<Number, std::unique_ptr<test::HandMadeStream>>;
  void leave(Streams::iterator at);
  Streams streams_;
  std::list<std::unique_ptr<test::HandMadeStream>> left_;  // replaced, and still open
  std::uint64_t sent_ = 0;
};

class HostileCaller : public Attack {
 public:
  HostileCaller(Random& random, const Security& security, const Endpoint& victim)
      : Attack(random, security), victim_(victim) {}
  void open() override;

 private:
  Endpoint victim_;
  SessionId session_{};
  std::map<Number, unsigned> epochs_;
};

class HostileListener : public Attack {
 public:
  using Attack::Attack;
  Endpoint address() const { return listener_.endpoint(); }
  void open() override;  // takes in who has called

 private:
  Welcome welcome();
  test::RawListener listener_;
  SessionId session_{};
};

// Uses a path in every way, and checks what it is given.
class User {
 public:
  User(Random& random, Path path) : random_(random), path_(std::move(path)) {}
  ~User() { path_.close(0); }
  void act();
  bool over() const { return over_; }

 private:
  struct Use {
    std::vector<std::byte> buffer;
    Request request;
    bool receives = false, any = false;
  };
  void start();
  void change();
  bool settled(Use& use);

  Random& random_;
  std::list<Use> uses_;  // of buffers that the path has until it is closed
  Path path_;
  bool over_ = false;
};

}  // namespace maki::wan::fuzz
