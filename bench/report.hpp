// A table on the terminal and the same figures as JSON, with the machine's name: for all programs in bench/.
#pragma once

#include <fmt/format.h>
#include <sys/utsname.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "build_info.hpp"
#include "kernels/device/device.hpp"
#include "kernels/error.hpp"
#include "src/io/json.hpp"

namespace maki::bench {

class Report {
 public:
  Report(std::string name, std::string json_path) : name_(std::move(name)), json_path_(std::move(json_path)) {}

  // A value that is not finite is one that there is not: "none" in the table, null in JSON.
  void add(const std::string& what, double value, const std::string& unit) { rows_.push_back({what, value, unit}); }

  void print() const {
    const DeviceInfo device = device_info();
    fmt::print("{}: {} {}, {} units, {}\n", name_, device.backend, device.name, device.units, device.instruction_set);
    for (const Row& r : rows_)
      fmt::print("  {:<48} {:>12} {}\n", r.what, std::isfinite(r.value) ? fmt::format("{:.5g}", r.value) : "none",
                 r.unit);
    write();
  }

  // JSON only; nothing where no path was given. Throws Error where the file cannot be written.
  void write() const {
    if (!json_path_.empty()) write_json(device_info());
  }

 private:
  struct Row {
    std::string what;
    double value;
    std::string unit;
  };

  void write_json(const DeviceInfo& device) const {
    utsname machine{};
    uname(&machine);
    std::vector<std::string> results;
    for (const Row& row : rows_)
      results.push_back(JsonObject().add("what", row.what).add("value", row.value).add("unit", row.unit).text());
    const std::string text = JsonObject()
                                 .add("bench", name_)
                                 .add("version", MAKI_VERSION)
                                 .add("machine", machine.nodename)
                                 .add("system", fmt::format("{} {}", machine.sysname, machine.release))
                                 .add("backend", device.backend)
                                 .add("device", device.name)
                                 .add("instruction_set", device.instruction_set)
                                 .add("units", device.units)
                                 .add("clock_ghz", device.clock_ghz)
                                 .add("memory_gb_per_s", device.memory_gb_per_s)
                                 .add("driver", device.driver)
                                 .raw("results", json_array(results))
                                 .text();
    errno = 0;
    std::ofstream file(json_path_);
    file << text << '\n';
    file.close();
    if (!file)
      throw Error(fmt::format("'{}' cannot be written", json_path_), errno != 0 ? std::strerror(errno) : "",
                  "give --json a file in a directory that is there, on a disk with room");
  }

  std::string name_, json_path_;
  std::vector<Row> rows_;
};

// The exit code of a program that does f: what it throws is printed.
template <class F>
int run_or_say(const char* program, const F& f) {
  try {
    f();
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}: {}\n", program, error.what());
    return 1;
  }
}

}  // namespace maki::bench
