#include <memory>

#include "src/cli/commands.hpp"
#include "src/run/filed_run.hpp"

namespace maki {
namespace {

struct Options {
  std::string directory;
  std::vector<std::string> settings;
  std::string site;
};

void resume_simulation(const Options& given) {
  const auto run = FiledRun::resume(given.directory, given.settings, {.site = given.site});
  if (const int code = run->run()) throw CLI::RuntimeError(code);
}

}  // namespace

void add_resume_command(CLI::App& program) {
  auto options = std::make_shared<Options>();
  CLI::App* command = add_command(program, "resume", "Go on with a run that was stopped or ended by force",
                                  "maki resume output/quickstart", options, resume_simulation);
  command->add_option("DIRECTORY", options->directory, "output directory of the run, or one of the restarts in it")
      ->required();
  command->add_option("KEY=VALUE", options->settings, "settings that change from here on");
  command->add_option("--site", options->site, "which of the sites in [sites] this is, in a run over several of them")
      ->type_name("NAME");
}

}  // namespace maki
