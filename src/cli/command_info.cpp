#include <fmt/format.h>

#include "src/cli/commands.hpp"
#include "src/io/snapshot_io.hpp"

namespace maki {

void add_info_command(CLI::App& program) {
  struct Options {
    std::string file;
  };
  auto options = std::make_shared<Options>();
  const auto describe = [](const Options& given) {
    for (const std::string& line : describe_file(given.file)) fmt::print("{}\n", line);
  };
  CLI::App* command = add_command(program, "info", "Say what is in a snapshot or in initial conditions",
                                  "maki info output/snapshot_003.hdf5", options, on_first_rank(describe));
  command->add_option("FILE", options->file, "HDF5 or GADGET binary; one file of a set stands for all")->required();
}

}  // namespace maki
