// maki: the program. Exit codes: 0 done, 1 an error that the message explains, 2 wrong usage, 3 a run stopped early on
// request, 4 a run over several sites that lost one of them; both can be resumed (4 with an error: begun anew).
#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "host/comm/communicator.hpp"
#include "host/comm/job.hpp"
#include "kernels/error.hpp"
#include "src/cli/commands.hpp"
#include "src/config/text.hpp"
#include "src/run/build.hpp"
#include "src/simulation/run_files.hpp"
#include "wan/sites/ring.hpp"

namespace {

constexpr int kFailed = 1;
constexpr int kUsage = 2;

// libgomp's threads spin for milliseconds at a barrier before they sleep. On a core shared with another program, this
// keeps the thread that all wait for from running: a small run took fifty times as long (bench/NOTES.md). This function
// sets GOMP_SPINCOUNT, which libgomp reads before main(), and replaces the process by a new start of the program. It
// returns where the user has set GOMP_SPINCOUNT or OMP_WAIT_POLICY, and where the program cannot be started again (its
// threads then spin as usual). It has to be the first call of main().
void bound_spinning(char** argv) {
  constexpr const char* variable = "GOMP_SPINCOUNT";
  if (std::getenv(variable) != nullptr || std::getenv("OMP_WAIT_POLICY") != nullptr) return;
  // A privileged program would lose its privileges or could be tricked. If the dynamic linker was started by name, the
  // running file is the linker.
  if (getauxval(AT_SECURE) != 0 || getauxval(AT_BASE) == 0) return;
  // The real path, for process lists; there is none without /proc, or where the file has been replaced.
  std::error_code failure;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", failure);
  if (failure || setenv(variable, "2000", 1) != 0) return;
  // With OMP_PROC_BIND libgomp has bound this thread to one place already, and the new start would find no other.
  const maki::CoreSet cores = maki::own_cores();
  sched_setaffinity(0, sizeof cores, reinterpret_cast<const cpu_set_t*>(cores.data()));
  execv(program.c_str(), argv);
  unsetenv(variable);
}

// Keeps files and sockets out of the places of standard streams that were closed, whose text would go into them.
// Writing to such a stream still fails.
void fill_standard_streams() {
  int descriptor = 0;
  while (descriptor >= 0 && descriptor <= STDERR_FILENO) descriptor = open("/dev/null", O_RDONLY);
  if (descriptor >= 0) close(descriptor);
}

int report(const char* message, int exit_code = kFailed) {
  if (maki::under_mpi()) maki::abort_job(message, exit_code);  // else the other ranks would wait for this one
  std::fflush(stdout);
  std::fprintf(stderr, "maki: error: %s\n", message);  // fmt::print() throws where stderr is closed
  return exit_code;
}

int report_lost_text(const char* reason) {
  return report(
      fmt::format("stdout did not take all of the text ({}): give it a file on a disk with room", reason).c_str());
}

// The exit code where the command is done: a failure where stdout has not taken all of its text.
int end_of_text() {
  const bool written = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  return written ? 0 : report_lost_text(std::strerror(errno));
}

// The ranks that carry out the command together. Wide-area tools, checks of sites and models run as one process, and
// start no MPI under any launcher.
maki::Communicator those_of(int argc, char** argv) {
  const std::string_view command = argc > 1 ? argv[1] : "";
  const bool alone =
      command == "wan" || command == "sites" || command == "model" || command == "report" || command == "watch";
  return alone ? maki::Communicator::self() : maki::Communicator::world();
}

// Message about a wrong command line; for an unknown command, with the nearest known one.
std::string usage_error(const CLI::App& program, const CLI::ParseError& error) {
  const CLI::App* group = &program;
  while (!group->get_subcommands().empty()) group = group->get_subcommands().back();
  std::vector<std::string> names;
  for (const CLI::App* command : group->get_subcommands({})) names.push_back(command->get_name());
  const std::vector<std::string> words = group->remaining();
  const auto is_option = [](const std::string& word) { return word.starts_with('-'); };
  const auto word = std::find_if_not(words.begin(), words.end(), is_option);
  if (word != words.end() && *word == "help") return "help is an option";
  if (names.empty() || word == words.end()) return error.what();
  return fmt::format("there is no command '{}': did you mean '{}'?", *word, maki::nearest_name(names, *word));
}

// All ranks find wrong usage: the first prints it, and the others wait for that, as a launcher ends all ranks when one
// exits.
int report_usage(const std::string& error, const maki::Communicator& ranks) {
  if (ranks.rank() == 0)
    std::fprintf(stderr, "maki: error: %s (maki --help, or maki COMMAND --help, says what there is)\n", error.c_str());
  ranks.barrier();
  return kUsage;
}

}  // namespace

int main(int argc, char** argv) {
  bound_spinning(argv);
  fill_standard_streams();
  std::signal(SIGXFSZ, SIG_IGN);  // a file over the limit on file sizes is an error of the write, with a message
  CLI::App program("Maki: gravitational N-body simulations, from a desk to many sites.", "maki");
  program.set_version_flag("--version", [] { return maki::version_text(); });
  program.require_subcommand(1);
  program.footer("\nStart here:\n  maki run configs/quickstart.toml\n  maki COMMAND --help\n");
  maki::add_run_command(program);
  maki::add_resume_command(program);
  maki::add_ic_command(program);
  maki::add_forces_command(program);
  maki::add_power_command(program);
  maki::add_bispectrum_command(program);
  maki::add_image_command(program);
  maki::add_groups_command(program);
  maki::add_links_command(program);
  maki::add_info_command(program);
  maki::add_report_command(program);
  maki::add_watch_command(program);
  maki::add_config_command(program);
  maki::add_wan_commands(program);
  maki::add_sites_commands(program);
  maki::add_model_commands(program);
  try {
    those_of(argc, argv);
    program.parse(argc, argv);
  } catch (const CLI::Success& help) {  // --help, --version
    if (those_of(argc, argv).rank() == 0) program.exit(help);
    return end_of_text();
  } catch (const CLI::RuntimeError& stopped) {  // a command's own exit code
    return stopped.get_exit_code() != 0 ? stopped.get_exit_code() : end_of_text();
  } catch (const CLI::ParseError& error) {
    return report_usage(usage_error(program, error), those_of(argc, argv));
  } catch (const std::bad_alloc&) {
    return report("out of memory: use fewer particles or a smaller mesh ('maki run CONFIG --estimate' tells how much)");
  } catch (const maki::sites::SiteLost& lost) {  // before there was a state to keep
    return report(lost.what(), maki::kExitSiteLost);
  } catch (const std::exception& error) {
    return std::ferror(stdout) != 0 ? report_lost_text(error.what()) : report(maki::message_of(error).c_str());
  }
  return end_of_text();
}
