// `wan_testbed measure`: options, the processes, and site 0 of a measurement: orders, clock, table.
#include "tests/testbed/measure.hpp"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>

#include "tests/testbed/namespaces.hpp"
#include "wan/net/error.hpp"
#include "wan/net/secure/key.hpp"
#include "wan/net/settings.hpp"

namespace maki::testbed {
namespace {

// Plain TCP: `bytes` over a new connection in one stream, as a stock program sends them.
void plain_send(const std::string& address, std::uint16_t port, const std::string& congestion,
                std::span<const std::byte> bytes) {
  const wan::Address peer = wan::resolve_local({address, port});
  const wan::Socket s(socket(peer.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!congestion.empty() && setsockopt(s.descriptor(), IPPROTO_TCP, TCP_CONGESTION, congestion.data(),
                                        static_cast<socklen_t>(congestion.size())) != 0)
    throw wan::Error("no congestion control " + congestion, std::strerror(errno));
  if (connect(s.descriptor(), reinterpret_cast<const sockaddr*>(&peer.storage), peer.length) != 0)
    throw wan::Error("no plain stream to " + address, std::strerror(errno));
  constexpr std::size_t kBlock = 128 << 10;  // iperf3's
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t n = send(s.descriptor(), bytes.data() + done, std::min(kBlock, bytes.size() - done), MSG_NOSIGNAL);
    if (n <= 0) throw wan::Error("the plain stream broke", std::strerror(errno));
    done += static_cast<std::size_t>(n);
  }
  shutdown(s.descriptor(), SHUT_WR);
  char last;
  while (recv(s.descriptor(), &last, 1, 0) > 0) {
  }
}

struct Row {
  std::string what, unit;
  std::vector<double> values;
  double median() const {
    std::vector<double> sorted = values;
    std::sort(sorted.begin(), sorted.end());
    const std::size_t n = sorted.size();
    return n % 2 ? sorted[n / 2] : 0.5 * (sorted[n / 2 - 1] + sorted[n / 2]);
  }
};

class Measurement {
 public:
  // `relay`: the one on the way, if any.
  Measurement(const MeasureOptions& options, const MeasureSetup& setup, const MeasuredLink& link, const Wire& wire,
              const RelaySite* relay)
      : options_(options), setup_(setup), link_(link), wire_(wire), relay_(relay), payload_(setup.largest),
        buffer_(setup.largest) {
    plain_port_ = wire_.get<std::uint16_t>();
    if (!setup.with_path) return;
    const std::uint16_t port = wire_.get<std::uint16_t>();
    path_ = wan::Path::connect({setup.address, port}, setup.security, setup.settings, {"measure", setup.relay});
    // The others follow the first; a path that is in use has them all.
    for (const double patience = now() + 20; path_.status().streams_up < setup.settings.streams && now() < patience;)
      wait_until(now() + 0.01);
    fmt::print("{} of {} streams up\n", path_.status().streams_up, setup.settings.streams);
  }

  void run() {
    const std::size_t bytes = wan::parse_size(options_.message);
    if (path_.valid()) {
      if (options_.wants("echo")) echo();
      if (options_.wants("first")) repeat("one way, new path", 2, 0, [&] { return one_way(bytes); });
      if (options_.wants("warm")) repeat("one way, warm", options_.repeat, 0, [&] { return one_way(bytes); });
      if (options_.wants("silent"))
        repeat(fmt::format("one way, after {} s of silence", options_.silence), options_.repeat_silent,
               options_.silence, [&] { return one_way(bytes); });
      if (options_.wants("both")) {
        repeat("both ways, the way back new", 2, 0, [&] { return both_ways(bytes); });
        repeat("both ways at once", options_.repeat, 0, [&] { return both_ways(bytes); });
      }
      if (options_.wants("large")) large();
      if (options_.wants("echo")) echo();
      fmt::print("sent again: {:.3f} MB, reconnections: {}\n", static_cast<double>(path_.status().sent_again) / 1e6,
                 path_.status().reconnections);
    }
    if (options_.wants("plain")) plain();
    wire_.put(Order{Order::kEnd, 0, 0, 0});
    if (!options_.json.empty()) write_json();
  }

 private:
  template <class Work>
  void repeat(const std::string& what, int times, double silence, Work work) {
    Row row{fmt::format("{} {}", options_.message, what), "s", {}};
    for (int i = 0; i < times; ++i) {
      if (silence > 0) wait_until(now() + silence);
      row.values.push_back(work());
    }
    add(row);
  }

  double finish(double start) {
    const Reply reply = wire_.get<Reply>();
    if (!reply.intact) throw wan::Error("what arrived is not what was sent");
    return reply.time - start;
  }

  double one_way(std::size_t bytes) {
    const std::span<const std::byte> message = payload_.message(++number_, bytes);
    wire_.put(Order{Order::kReceive, number_, bytes, 0});
    wire_.get<Reply>();
    const double start = now();
    path_.send(number_, message);
    return finish(start);
  }

  double both_ways(std::size_t bytes) {
    const std::span<const std::byte> message = payload_.message(++number_, bytes);
    const double start = now() + 0.1;
    wire_.put(Order{Order::kBoth, number_, bytes, start});
    wait_until(start);
    path_.send_receive(number_, message, {buffer_.data(), bytes});
    const double own = now() - start;
    if (std::memcmp(buffer_.data(), message.data(), bytes) != 0) throw wan::Error("what arrived is not what was sent");
    return std::max(own, finish(start));
  }

  double usage_of_peer() {
    wire_.put(Order{Order::kUsage, 0, 0, 0});
    return wire_.get<Reply>().time;
  }

  void large() {
    const std::size_t bytes = wan::parse_size(options_.large);
    Row time{options_.large + " one way", "s", {}}, rate{options_.large + " one way", "% of the line", {}},
        cpu{options_.large + " CPU of both ends", "s/GB", {}},
        relayed{options_.large + " CPU of the relay", "s/GB", {}};
    for (int i = 0; i < options_.repeat_large; ++i) {
      const double before = cpu_seconds() + usage_of_peer(), relay_before = relay_ ? relay_->cpu_seconds() : 0;
      const double t = one_way(bytes);
      time.values.push_back(t);
      rate.values.push_back(100 * 8 * static_cast<double>(bytes) / t / link_.rate);
      cpu.values.push_back((cpu_seconds() + usage_of_peer() - before) / static_cast<double>(bytes) * 1e9);
      if (relay_) relayed.values.push_back((relay_->cpu_seconds() - relay_before) / static_cast<double>(bytes) * 1e9);
    }
    for (const Row& row : {time, rate, cpu}) add(row);
    if (relay_) add(relayed);
  }

  void echo() {
    Row row{"8 bytes, there and back", "ms", {}}, over{"8 bytes, beyond the round trip", "ms", {}};
    for (int i = 0; i < options_.repeat_echo; ++i) {
      const std::span<const std::byte> message = payload_.message(++number_, 8);
      wire_.put(Order{Order::kEcho, number_, 8, 0});
      wait_until(now() + 0.02);
      const double start = now();
      path_.send(number_, message);
      path_.receive(number_, {buffer_.data(), 8});
      row.values.push_back(1e3 * (now() - start));
      over.values.push_back(row.values.back() - 1e3 * link_.rtt * options_.to);  // sites in a line
      finish(start);
    }
    add(row);
    add(over);
  }

  void plain() {
    const std::size_t bytes = wan::parse_size(options_.plain);
    Row row{options_.plain + " in one plain stream", "s", {}},
        rate{options_.plain + " in one plain stream", "Mbit/s", {}};
    for (int i = 0; i < options_.repeat_plain; ++i) {
      const std::span<const std::byte> message = payload_.message(++number_, bytes);
      wire_.put(Order{Order::kPlain, number_, bytes, 0});
      wire_.get<Reply>();
      const double start = now();
      plain_send(setup_.address, plain_port_, options_.settings.congestion, message);
      row.values.push_back(finish(start));
      rate.values.push_back(8e-6 * static_cast<double>(bytes) / row.values.back());
    }
    add(row);
    add(rate);
  }

  void add(const Row& row) {
    const auto [least, most] = std::minmax_element(row.values.begin(), row.values.end());
    fmt::print("  {:<38} {:>9.4g} {:<14} ({:.4g} to {:.4g}, {} times)\n", row.what, row.median(), row.unit, *least,
               *most, row.values.size());
    std::fflush(stdout);
    rows_.push_back(row);
  }

  void write_json() const {
    utsname machine{};
    uname(&machine);
    const wan::PathSettings& s = options_.settings;
    std::ofstream out(options_.json);
    out << fmt::format(
        "{{\"rtt_s\": {}, \"rate_bit_per_s\": {}, \"queue_bytes\": {}, \"loss\": {}, \"system\": \"{} {}\",\n"
        " \"congestion\": \"{}\", \"streams\": {}, \"send_chunk\": {}, \"receive_chunk\": {}, \"window\": {},\n"
        " \"pacing_bytes_per_s\": {}, \"tls\": {}, \"results\": [\n",
        link_.rtt, link_.rate, link_.queue, link_.loss, machine.sysname, machine.release, s.congestion, s.streams,
        s.send_chunk, s.receive_chunk, s.window, s.pacing_rate, !options_.insecure);
    for (std::size_t i = 0; i < rows_.size(); ++i)
      out << fmt::format("  {{\"what\": \"{}\", \"unit\": \"{}\", \"median\": {:.6g}, \"values\": [{:.6g}]}}{}\n",
                         rows_[i].what, rows_[i].unit, rows_[i].median(), fmt::join(rows_[i].values, ", "),
                         i + 1 < rows_.size() ? "," : "");
    out << "]}\n";
  }

  const MeasureOptions& options_;
  const MeasureSetup& setup_;
  const MeasuredLink link_;
  const Wire& wire_;
  const RelaySite* relay_;
  Payload payload_;
  std::vector<std::byte> buffer_;
  std::uint16_t plain_port_ = 0;
  std::uint32_t number_ = 0;
  wan::Path path_;
  std::vector<Row> rows_;
};

std::string environment(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  if (!value)
    throw wan::Error("this is no testbed", name + " is not set", "wan_testbed [OPTIONS] -- wan_testbed measure");
  return value;
}

double number_of(const std::string& name) { return std::strtod(environment(name).c_str(), nullptr); }

void add_options(CLI::App& program, MeasureOptions& o) {
  program.option_defaults()->take_last();  // a script's choice can be overruled behind it
  program.add_option("--streams", o.settings.streams)->capture_default_str();
  program.add_option("--chunk", o.settings.send_chunk, "bytes")->capture_default_str();
  program.add_option("--receive-chunk", o.settings.receive_chunk, "bytes")->capture_default_str();
  program.add_option("--window", o.settings.window, "bytes; 0: the kernel's tuning")->capture_default_str();
  program.add_option("--pacing", o.pacing, "as a part of the line's rate; 0: none");
  program.add_option("--congestion", o.settings.congestion, "TCP_CONGESTION of each stream, and of the plain one");
  program.add_flag("--insecure", o.insecure, "plain in place of TLS");
  program.add_flag("--ipv6", o.six);
  program.add_option("--to", o.to, "the other site")->capture_default_str();
  program.add_option("--relay", o.relay,
                     "site of a relay that the other one is hidden behind; plain streams go without it");
  program.add_option("--cases", o.cases, "of first, warm, silent, both, large, echo, plain")
      ->delimiter(',')
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  program.add_option("--message", o.message)->capture_default_str();
  program.add_option("--large", o.large)->capture_default_str();
  program.add_option("--plain-bytes", o.plain)->capture_default_str();
  program.add_option("--repeat", o.repeat, "of the warm and both-ways transfers")->capture_default_str();
  program.add_option("--repeat-silent", o.repeat_silent)->capture_default_str();
  program.add_option("--repeat-large", o.repeat_large)->capture_default_str();
  program.add_option("--repeat-plain", o.repeat_plain)->capture_default_str();
  program.add_option("--silence", o.silence, "seconds")->capture_default_str();
  program.add_option("--json", o.json, "file to write");
}

// A key for this measurement, in a folder that goes with it.
class TemporaryKey {
 public:
  TemporaryKey()
      : folder_(fmt::format("{}/maki-measure-{}", std::filesystem::temp_directory_path().string(), getpid())) {
    std::filesystem::create_directory(folder_);
    wan::write_key(wan::Key::make(), file());
  }
  ~TemporaryKey() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  std::string file() const { return folder_ + "/key"; }

 private:
  std::string folder_;
};

std::string address_of(const MeasureOptions& o, int site) {
  return environment(fmt::format("MAKI_ADDR{}_{}", o.six ? "6" : "", site));
}

MeasureSetup setup_of(MeasureOptions& o, const MeasuredLink& link, const TemporaryKey& key) {
  MeasureSetup setup;
  setup.space[0] = environment("MAKI_NS_0");
  setup.space[1] = environment(fmt::format("MAKI_NS_{}", o.to));
  setup.address = address_of(o, o.to);
  setup.security.insecure = o.insecure;
  if (!o.insecure) setup.security.key_files = {key.file()};
  o.settings.pacing_rate = o.pacing * link.rate / 8;
  setup.settings = o.settings;
  setup.with_path = std::any_of(o.cases.begin(), o.cases.end(), [](const std::string& c) { return c != "plain"; });
  for (const std::string& size : {o.message, o.large, o.plain})
    setup.largest = std::max(setup.largest, wan::parse_size(size));
  return setup;
}

}  // namespace

void run_measurement(const MeasureOptions& options, const MeasureSetup& setup, const MeasuredLink& link,
                     const Wire& wire, const RelaySite* relay) {
  Measurement(options, setup, link, wire, relay).run();
}

int measure(int argc, char** argv) {
  CLI::App program(
      "A path between sites 0 and 1 (or another, or through a relay) of the testbed around this: what it carries how fast.",
      "wan_testbed measure");
  MeasureOptions options;
  add_options(program, options);
  CLI11_PARSE(program, argc, argv);
  const MeasuredLink link{number_of("MAKI_LINK_RATE"), number_of("MAKI_LINK_RTT"), number_of("MAKI_LINK_QUEUE"),
                          number_of("MAKI_LINK_LOSS")};
  const TemporaryKey key;
  MeasureSetup setup = setup_of(options, link, key);
  std::optional<RelaySite> relay;
  if (options.relay >= 0) {
    const std::string address = address_of(options, options.relay);
    relay.emplace(environment(fmt::format("MAKI_NS_{}", options.relay)), address, key.file(),
                  options.settings.congestion);
    setup.relay = {{address, relay->port()}, key.file(), "measure"};
  }
  const SiteProcess other("site 1", [&](const Wire& wire) { respond(setup, wire); });
  enter_namespace(setup.space[0]);
  run_measurement(options, setup, link, other.wire(), relay ? &*relay : nullptr);
  return other.wait();
}

}  // namespace maki::testbed
