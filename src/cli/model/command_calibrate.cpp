// maki model calibrate: the machine file of this machine, measured.
#include <filesystem>
#include <optional>

#include "host/comm/job.hpp"
#include "kernels/device/device.hpp"
#include "kernels/error.hpp"
#include "src/cli/commands.hpp"
#include "src/io/safe_file.hpp"
#include "src/run/calibrate.hpp"
#include "src/run/start_run.hpp"

namespace maki {
namespace {

struct CalibrateOptions {
  std::string output;
  int particles = 0;
  bool overwrite = false;
};

void calibrate_here(const CalibrateOptions& given) {
  std::optional<SafeFile> file;  // refused before the measurement, not after
  if (!given.overwrite && std::filesystem::exists(given.output))
    throw Error(fmt::format("'{}' exists already", given.output), "", "choose another --output, or give --overwrite");
  if (!given.output.empty()) file.emplace(given.output, given.overwrite);
  select_device(usual_device(), usual_threads());
  const std::string text = calibrate(given.particles, [](const std::string& line) { say_now(line); });
  fmt::print("\n{}", text);
  if (!file) return;
  file->write(text);
  file->commit();
}

}  // namespace

void add_model_calibrate(CLI::App& model) {
  auto options = std::make_shared<CalibrateOptions>();
  CLI::App* command = add_command(
      model, "calibrate",
      "Measure what Maki takes on this machine, in a minute, as a machine for the other commands (without its network)",
      "maki model calibrate -o desk.toml", options, calibrate_here);
  command->add_option("-o,--output", options->output, "write it to this file too")->type_name("FILE");
  command->add_flag("--overwrite", options->overwrite, "replace the file where it exists");
  command
      ->add_option("--particles", options->particles,
                   "along a side of the largest run, rounded to a multiple of 8; else 128, on a GPU 256")
      ->check(CLI::Range(64, 512));
}

}  // namespace maki
