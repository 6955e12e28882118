// The channels and paths of a program with MPWide's calls: their numbers, connections and settings.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "wan/net/mpw/meeting.hpp"
#include "wan/net/mpw/transfer.hpp"

namespace maki::wan::mpw {

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
  void remove_path(int path);  // closes its channels
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
