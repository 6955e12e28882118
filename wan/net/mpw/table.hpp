// Behind MPWide's calls: messages over channels (the paths that channels share, and buffers cut into parts); channels
// and paths of a program, with their numbers, connections and settings.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "wan/net/mpw/meeting.hpp"
#include "wan/net/path.hpp"

namespace maki::wan::mpw {

// One path to another program, and the channels that share it. Thread-safe.
class Link {
 public:
  Link(Path path, std::shared_ptr<SharedListener> listener, int channels)
      : shared_listener_(std::move(listener)), path_(std::make_shared<Path>(std::move(path))),
        open_channels_(channels) {}

  // The path is closed with the last channel, and freed after its last call. Throws PathError then.
  std::shared_ptr<Path> path() {
    const std::lock_guard lock(mutex_);
    if (!path_) throw PathError("The path is closed", "its channels were closed here");
    return path_;
  }
  bool live();   // neither closed nor lost
  void leave();  // one channel fewer; the last one closes the path, once all is acknowledged
  void come_back() { ++open_channels_; }

 private:
  std::shared_ptr<SharedListener> shared_listener_;
  std::mutex mutex_;  // guards path_
  std::shared_ptr<Path> path_;
  std::atomic<int> open_channels_;
};

// A channel as calls use it: a tag of a path.
struct Lane {
  std::shared_ptr<Link> link;
  Tag tag = 0;
  int channel = 0;
};

// Data of MPWide's calls: one buffer cut into parts, each part a message of its channel.
struct Part {
  char* data = nullptr;
  std::size_t size = 0;
};

// Parts that differ by at most one byte, longer ones first. Throws Error for a negative size or no parts.
std::vector<Part> split(char* buffer, long long size, int parts);
// One part for each buffer.
std::vector<Part> parts_of(char** buffers, const long long* sizes, int count);

// Sends and receives in progress, one lane a part. Empty parts are neither sent nor waited for.
class Exchange {
 public:
  void send(const std::vector<Lane>& lanes, const std::vector<Part>& parts);
  // Each receives one message, which must be as long as the part.
  void receive(const std::vector<Lane>& lanes, const std::vector<Part>& parts);
  // Throws as soon as one has failed: Error where a message has another size, PathError.
  void wait();
  bool test();

 private:
  struct One {
    Request request;
    std::size_t expected = 0;  // bytes to receive; 0: it sends
    int channel = 0;
  };
  static void check(One& one);
  std::vector<One> all_;
};

// For sizes that only the senders know: each channel carries a size, then the data. Sends `parts`, and puts the
// received data into `buffer`, channel after channel. Throws Error if they do not fit. Returns the bytes received.
std::size_t exchange_unknown(const std::vector<Lane>& to, const std::vector<Part>& parts, const std::vector<Lane>& from,
                             Part buffer);

// Returns when the peer has called it for this channel too.
void barrier(const Lane& lane);

// Passes every message of a lane on to its partner, both ways, until a path ends (orderly: returns; else throws
// PathError). Messages keep their order, have at most `limit` bytes each, and are passed on when complete. For a flow
// of bytes there is relay/relay.hpp.
void relay(const std::vector<Lane>& one, const std::vector<Lane>& other, std::size_t limit);

// Channels and paths are numbered from 0; freed numbers are reused, lowest first. Calls throw Error for an unknown
// channel or path. Thread-safe.
class Table {
 public:
  static Table& get();
  ~Table();

  const Environment& environment();  // read at first use. Throws what read_environment() throws.

  // New channels, not yet connected, with successive numbers.
  std::vector<int> add_channels(const std::vector<std::string>& hosts, const std::vector<int>& ports);
  int add_path(const std::string& host, int base_port, int channels);
  void remove_channels(const std::vector<int>& channels);  // closes them
  void remove_path(int path);                              // with its channels
  std::vector<int> channels_of(int path);
  int channel_count();

  // Connects channels to those of their peers, all hosts at once. `wait_as_server` false: see MPW_ConnectPath.
  void connect(const std::vector<int>& channels, bool wait_as_server = true);
  void close(const std::vector<int>& channels);
  void reopen(const std::vector<int>& channels);
  void finalize();

  Lane lane(int channel);
  std::vector<Lane> lanes(const std::vector<int>& channels);
  std::string describe();  // a line for each channel

  // Exchanges that were begun and not waited for, numbered from 0. begun: null if it has ended.
  int add_exchange(std::shared_ptr<Exchange> exchange);
  std::shared_ptr<Exchange> begun(int exchange);
  void forget(int exchange);

  // Settings: apply to all paths from now on.
  void set_window(const std::vector<int>& channels, std::size_t bytes);
  void set_chunks(std::size_t sending, std::size_t receiving);
  void set_pacing(double rate);  // of a channel; <= 0: none
  double pacing() const { return pacing_; }
  void set_autotuning(bool on) { autotuning_ = on; }
  bool autotuning() const { return autotuning_; }

 private:
  struct Channel {
    std::string host;
    int port = 0;
    std::size_t window = 0;
    std::shared_ptr<Link> link;
    Tag tag = 0;
    bool open = false;
  };

  Table();
  Channel& channel(int number);
  int reserve(std::size_t count);
  void join_host(const std::string& host, std::vector<int> channels, bool wait_as_server);
  MeetingPlan plan_for(const std::string& host, const std::vector<int>& channels, bool wait_as_server);
  void assign(std::vector<int>& channels, Met met);
  PathSettings settings_for(const std::vector<int>& channels);
  void apply();

  std::mutex mutex_;
  std::optional<Environment> environment_;
  std::vector<std::optional<Channel>> channels_;
  std::vector<std::optional<std::vector<int>>> paths_;
  std::map<int, std::shared_ptr<Exchange>> exchanges_;
  int next_exchange_ = 0;
  std::size_t send_chunk_ = 0, receive_chunk_ = 0;  // 0: the environment's
  std::atomic<double> pacing_ = -1;
  std::atomic<bool> autotuning_ = true;
};

}  // namespace maki::wan::mpw
