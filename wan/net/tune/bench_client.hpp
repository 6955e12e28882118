// The calling side of a measurement: a MeasuredLink over real paths to `serve_bench`.
#pragma once

#include <memory>
#include <optional>

#include "wan/net/path.hpp"
#include "wan/net/tune/bench_protocol.hpp"
#include "wan/net/tune/measured_link.hpp"

namespace maki::wan {

class BenchClient : public MeasuredLink {
 public:
  // Nothing is connected before use().
  BenchClient(const Endpoint& peer, const Security& security, const RelayRoute& relay = {});
  ~BenchClient() override;  // says bye, so that a server that serves once ends

  void use(const Trial& trial) override;
  std::vector<double> round_trips(int count) override;
  Timing transfer(Way way, std::size_t bytes) override;
  void rest(double seconds) override;
  double now() const override;
  CpuUse cpu() override;
  const KernelLimits& kernel_here() const override { return here_; }
  const KernelLimits& kernel_there() const override { return there_; }
  // Messages out, several in flight: seconds from the first's begin to the last's arrival.
  double send_many(const TransferOrder& order);
  PathStatus status() const { return path_.status(); }

 private:
  void connect(const Trial& trial);
  bool greet(const Trial& trial);  // false: call again
  void await_streams(int streams);
  void leave(const char* word);
  Words ask(const Words& order, const char* reply);
  Timing take(std::size_t bytes);
  Timing give(std::size_t bytes);
  Timing both(std::size_t bytes);
  void keep_clock();
  double of_theirs(std::uint64_t nanoseconds) const;  // a time of theirs, in seconds of our clock

  Endpoint peer_;
  Security security_;
  RelayRoute relay_;
  Path path_;
  std::optional<Trial> trial_;
  KernelLimits here_ = KernelLimits::of_this_machine(), there_;
  PayloadBuffer in_, out_;
  double offset_ = 0;        // their clock less ours, seconds
  double offset_at_ = -1e9;  // when that was found
  double round_trip_ = 0;    // the shortest so far on this connection
};

}  // namespace maki::wan
