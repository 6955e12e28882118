// The commands of `maki`. Each adds itself to the program; its work is done while the command line is parsed. User
// errors leave as maki::Error, wrong usage as CLI::ParseError; main() turns both into a message and an exit code.
#pragma once

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "host/comm/communicator.hpp"
#include "kernels/error.hpp"
#include "src/io/safe_file.hpp"

namespace maki {

void add_run_command(CLI::App& program);
void add_resume_command(CLI::App& program);
void add_ic_command(CLI::App& program);
void add_forces_command(CLI::App& program);
void add_power_command(CLI::App& program);
void add_bispectrum_command(CLI::App& program);
void add_image_command(CLI::App& program);
void add_groups_command(CLI::App& program);
void add_links_command(CLI::App& program);
void add_info_command(CLI::App& program);
void add_report_command(CLI::App& program);
void add_watch_command(CLI::App& program);
void add_config_command(CLI::App& program);

// Prints a line at once, for readers of a log that is otherwise silent.
inline void say(const std::string& line) {
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

// Throws Error where the file exists and may not be replaced, is one of the files to be read, or cannot be made. A
// missing folder in which inputs lie too is left to their readers. "": there is no file.
inline void check_output(const std::string& output, bool overwrite, const std::vector<std::string>& inputs = {}) {
  if (output.empty()) return;
  std::error_code unknown;
  for (const std::string& input : inputs)
    if (std::filesystem::equivalent(output, input, unknown))
      throw Error(fmt::format("'{}' is to be read and written", output), "its contents would be lost",
                  "choose another --output");
  if (!overwrite && std::filesystem::exists(output))
    throw Error(fmt::format("'{}' exists already", output), "", "choose another name, or give --overwrite");
  const std::filesystem::path folder = std::filesystem::path(output).parent_path();
  for (const std::string& input : inputs)
    if (std::filesystem::path(input).parent_path() == folder && !folder.empty() &&
        !std::filesystem::exists(folder, unknown))
      return;
  const SafeFile place(output, overwrite);  // throws where none can be made
}

// The options of a command that writes one file.
inline void add_output_options(CLI::App& command, std::string& output, bool& overwrite, const std::string& meaning) {
  command.add_option("-o,--output", output, meaning)->required();
  command.add_flag("--overwrite", overwrite, "replace the file where it exists");
}

// Accepts finite numbers above 0.
inline CLI::Validator above_zero() {
  const auto check = [](std::string& text) {
    double number = 0;
    return CLI::detail::lexical_cast(text, number) && number > 0 && std::isfinite(number)
               ? ""
               : fmt::format("'{}' is no number above 0", text);
  };
  return {check, "POSITIVE"};
}

// Accepts numbers from `least` to `most`; CLI::Range accepts NaN too.
inline CLI::Validator within(double least, double most) {
  const auto check = [=](std::string& text) {
    double number = 0;
    return CLI::detail::lexical_cast(text, number) && number >= least && number <= most
               ? ""
               : fmt::format("'{}' is no number from {} to {}", text, least, most);
  };
  return {check, fmt::format("FROM {} TO {}", least, most)};
}

// From here on SIGINT and SIGTERM only make the returned call true.
inline std::function<bool()> end_on_signals() {
  static volatile std::sig_atomic_t interrupted = 0;
  for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, [](int) { interrupted = 1; });
  return [] { return interrupted != 0; };
}

// Restricts `run` to rank 0, for work that one process does.
template <class Run>
auto on_first_rank(Run run) {
  return [run](const auto& options) {
    if (Communicator::world().rank() == 0) run(options);
  };
}

// A subcommand with an example below its help. `run` is called after its options are read.
template <class Options, class Run>
CLI::App* add_command(CLI::App& program, const char* name, const char* meaning, const char* example,
                      std::shared_ptr<Options> options, Run run) {
  CLI::App* command = program.add_subcommand(name, meaning);
  command->footer(std::string("\nExample:\n  ") + example + "\n");
  command->callback([options, run] { run(*options); });
  return command;
}

// The commands of `maki model`.
void add_model_commands(CLI::App& program);

// The commands of `maki sites`.
void add_sites_commands(CLI::App& program);

// The commands of `maki wan`: tools that join sites. Each runs as one process and starts no MPI.
void add_wan_commands(CLI::App& program);

void add_wan_keygen(CLI::App& wan);
void add_wan_bench(CLI::App& wan);
void add_wan_copy(CLI::App& wan);
void add_wan_serve(CLI::App& wan);
void add_wan_sync(CLI::App& wan);
void add_wan_relay(CLI::App& wan);

}  // namespace maki
