// maki watch: follows a running job in the terminal.
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "src/cli/commands.hpp"
#include "src/report/status.hpp"
#include "src/simulation/run_files.hpp"

namespace maki {

namespace {

struct Options {
  std::string directory;
  bool once = false;
  double interval = 0;  // seconds; 0: depends on stdout
};

// Parts of at most `width` letters, divided at spaces where there are some.
std::vector<std::string> wrapped(std::string line, std::size_t width) {
  std::vector<std::string> parts;
  while (line.size() > width) {
    const std::size_t space = line.rfind(' ', width);
    const std::size_t end = space == line.npos || space < 12 ? width : space;
    parts.push_back(line.substr(0, end));
    line = std::string(9, ' ') + line.substr(line[end] == ' ' ? end + 1 : end);
  }
  parts.push_back(line);
  return parts;
}

// Redraws lines in the place of the last ones.
class Screen {
 public:
  void show(const std::vector<std::string>& lines) {
    if (drawn_ > 0) fmt::print("\x1b[{}A", drawn_);
    drawn_ = 0;
    for (const std::string& line : lines)
      for (const std::string& part : wrapped(line, columns())) fmt::print("{}\x1b[K\n", part), ++drawn_;
    fmt::print("\x1b[J");
    std::fflush(stdout);
  }

 private:
  static std::size_t columns() {
    winsize size{};
    const bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1;
    return known ? std::max<std::size_t>(20, size.ws_col - 1u) : 200;
  }
  std::size_t drawn_ = 0;
};

std::vector<std::string> all_lines(const report::Follower& run, const std::string& directory) {
  std::vector<std::string> lines = report::status_lines(run.records(), run.signs());
  lines.push_back(report::life_text(run.records(), run.signs(), directory));
  return lines;
}

// The exit code of the run, as far as it is known; 1 where it has died.
int exit_code_of(const report::Follower& run, report::Life life) {
  if (life == report::Life::kDead) return 1;
  if (life != report::Life::kEnded) return 0;
  const report::State state = report::state_of(run.records());
  if (state == report::State::kFailed) return 1;
  return state == report::State::kSiteLost ? kExitSiteLost : state == report::State::kStopped ? kExitStopped : 0;
}

// On a terminal the lines are redrawn; elsewhere a line is printed for each change, and all lines at the end.
report::Life follow(report::Follower& run, const Options& given, bool terminal) {
  const std::chrono::duration<double> pause(given.interval > 0 ? given.interval : terminal ? 1.0 : 5.0);
  Screen screen;
  report::Life told = report::Life::kNotBegun;
  while (true) {
    const bool is_new = run.read_on();
    const report::Life life = report::life_of(run.records(), run.signs());
    const bool over = life == report::Life::kEnded || life == report::Life::kDead;
    if (terminal)
      screen.show(all_lines(run, given.directory));
    else if (is_new && !over)
      fmt::print("{}\n", report::status_line(run.records(), run.signs()));
    else if (life != told || over)
      for (const std::string& line : all_lines(run, given.directory)) fmt::print("{}\n", line);
    std::fflush(stdout);
    told = life;
    if (over) return life;
    std::this_thread::sleep_for(pause);
  }
}

void watch(const Options& given) {
  report::Follower run(given.directory);
  report::Life life = report::Life::kNotBegun;
  if (given.once) {
    run.read_on();
    for (const std::string& line : all_lines(run, given.directory)) fmt::print("{}\n", line);
    life = report::life_of(run.records(), run.signs());
  } else {
    life = follow(run, given, isatty(STDOUT_FILENO) == 1);
  }
  std::fflush(stdout);
  if (const int code = exit_code_of(run, life)) throw CLI::RuntimeError(code);
}

}  // namespace

void add_watch_command(CLI::App& program) {
  auto options = std::make_shared<Options>();
  CLI::App* command =
      add_command(program, "watch",
                  "Follow a run: where it stands, when it will end, where its time goes. Exits as the run "
                  "does, with 1 where it has died",
                  "maki watch output/quickstart", options, watch);
  command->add_option("DIRECTORY", options->directory, "output directory of a run, begun or not")->required();
  command->add_flag("--once", options->once, "say where it stands, and do not wait");
  command->add_option("--interval", options->interval, "seconds between looks; default: 1 on a terminal, else 5")
      ->check(CLI::Range(0.05, 86400.0));
}

// maki report: a run on one page.
void add_report_command(CLI::App& program) {
  struct Options {
    std::string directory;
  };
  auto options = std::make_shared<Options>();
  const auto write = [](const Options& given) { fmt::print("wrote {}\n", report::write_report(given.directory)); };
  CLI::App* command =
      add_command(program, "report", "Write a page about a run: pictures, spectra, energy, time, memory",
                  "maki report output/quickstart", options, write);
  command->add_option("DIRECTORY", options->directory, "output directory of a run, finished or not")->required();
}

}  // namespace maki
