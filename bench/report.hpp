// A table on the terminal and the same figures as JSON, with the machine's name: for all programs in bench/.
#pragma once

#include <fmt/format.h>
#include <sys/utsname.h>

#include <fstream>
#include <string>
#include <vector>

#include "build_info.hpp"
#include "kernels/device/device.hpp"

namespace maki::bench {

class Report {
 public:
  Report(std::string name, std::string json_path) : name_(std::move(name)), json_path_(std::move(json_path)) {}

  void add(const std::string& what, double value, const std::string& unit) { rows_.push_back({what, value, unit}); }

  void print() const {
    const DeviceInfo device = device_info();
    fmt::print("{}: {} {}, {} units, {}\n", name_, device.backend, device.name, device.units, device.instruction_set);
    for (const Row& r : rows_) fmt::print("  {:<48} {:>12.5g} {}\n", r.what, r.value, r.unit);
    write();
  }

  // JSON only; nothing where no path was given.
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
    std::ofstream out(json_path_);
    out << fmt::format(
        "{{\n  \"bench\": \"{}\",\n  \"version\": \"{}\",\n  \"machine\": \"{}\",\n  \"system\": \"{} {}\",\n"
        "  \"backend\": \"{}\",\n  \"device\": \"{}\",\n  \"instruction_set\": \"{}\",\n  \"units\": {},\n"
        "  \"clock_ghz\": {},\n  \"memory_gb_per_s\": {},\n  \"driver\": \"{}\",\n  \"results\": [\n",
        name_, MAKI_VERSION, machine.nodename, machine.sysname, machine.release, device.backend, device.name,
        device.instruction_set, device.units, device.clock_ghz, device.memory_gb_per_s, device.driver);
    for (std::size_t i = 0; i < rows_.size(); ++i)
      out << fmt::format("    {{\"what\": \"{}\", \"value\": {:.9g}, \"unit\": \"{}\"}}{}\n", rows_[i].what,
                         rows_[i].value, rows_[i].unit, i + 1 < rows_.size() ? "," : "");
    out << "  ]\n}\n";
  }

  std::string name_, json_path_;
  std::vector<Row> rows_;
};

}  // namespace maki::bench
