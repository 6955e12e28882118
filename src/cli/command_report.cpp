// maki report: what a run did, as one page.
#include <fmt/format.h>

#include "src/cli/commands.hpp"
#include "src/report/page.hpp"

namespace maki {

void add_report_command(CLI::App& program) {
  struct Options {
    std::string directory;
  };
  auto options = std::make_shared<Options>();
  const auto write = [](const Options& given) { fmt::print("wrote {}\n", report::write_report(given.directory)); };
  CLI::App* command =
      add_command(program, "report", "Write a page about a run: pictures, spectra, energy, time, memory",
                  "maki report output/quickstart", options, on_first_rank(write));
  command->add_option("DIRECTORY", options->directory, "output directory of a run, finished or not")->required();
}

}  // namespace maki
