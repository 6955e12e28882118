// `wan_testbed measure`: options, the two processes.
#include "tests/testbed/measure.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include "tests/testbed/namespaces.hpp"
#include "tests/testbed/units.hpp"
#include "wan/net/error.hpp"
#include "wan/net/secure/key.hpp"

namespace maki::testbed {
namespace {

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
  program.add_option("--trace", o.trace, "file for lines of: number of the transfer, seconds, bytes received");
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
  setup.trace = o.trace;
  for (const std::string& size : {o.message, o.large, o.plain})
    setup.largest = std::max(setup.largest, static_cast<std::size_t>(parse_bytes(size)));
  return setup;
}

}  // namespace

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
