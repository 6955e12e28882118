// A stand-in for Slurm: a queue of batch jobs, run one after another, of which any can be killed as a lost node kills
// it; and moments at which a job is killed.
//
// sbatch, srun and scancel are scripts that stand before others on PATH. A job waits until those before it have ended,
// so that --dependency=afterany:JOB holds by itself; all other options are read over.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/commands.hpp"
#include "tests/places.hpp"

namespace maki::test {

class SlurmStandIn {
 public:
  // Keeps its queue in `directory`, which it makes; jobs run in `working`, with `settings` ("NAME=value ...") in their
  // environment.
  SlurmStandIn(const std::string& directory, const std::string& working, const std::string& settings)
      : directory_(directory), working_(working), settings_(settings) {
    namespace fs = std::filesystem;
    for (const char* folder : {"bin", "queue", "spool"}) fs::create_directories(directory_ + "/" + folder);
    script("sbatch", R"(while [[ $1 == --* ]]; do shift; done
exec 9> "$STAND_IN/lock"; flock 9
job=$(( $(cat "$STAND_IN/last" 2>/dev/null || echo 0) + 1 ))
echo $job > "$STAND_IN/last"
cp "$1" "$STAND_IN/spool/$job.sh"; shift
printf '%q ' "$@" > "$STAND_IN/spool/$job.arguments"
touch "$STAND_IN/queue/$job"
echo "$job;stand-in")");
    script("scancel", R"(rm "$STAND_IN/queue/$1")");
    // As Slurm from 22.05 on: cores are not taken over from sbatch.
    script("srun", R"(while [[ $1 == --* ]]; do shift; done
[[ ${SRUN_CPUS_PER_TASK:-1} == "${SLURM_CPUS_PER_TASK:-1}" ]] || { echo "srun: one core a task"; exit 9; }
exec ${STAND_IN_LAUNCHER:-} "$@")");
  }

  // What `sbatch ARGUMENTS` by hand does.
  void submit(const std::string& arguments) const {
    const std::string line = "cd " + working_ + " && " + environment("") + directory_ + "/bin/sbatch " + arguments;
    if (std::system((line + " > /dev/null").c_str()) != 0) throw std::runtime_error("cannot submit a job");
  }
  std::vector<int> queue() const {
    std::vector<int> jobs;
    for (const auto& entry : std::filesystem::directory_iterator(directory_ + "/queue"))
      jobs.push_back(std::atoi(entry.path().filename().c_str()));
    std::sort(jobs.begin(), jobs.end());
    return jobs;
  }

  struct Ended {
    int job = 0, status = -1;  // status stays where a signal ended the job
    bool killed = false;       // by us
  };
  // Runs the first job of the queue, under a launcher of `ranks` ranks, until it ends or `kill_now` is true: then all
  // its processes are killed at once. The job is put back into the queue where `again`, and where nothing else is in
  // it: a node that is lost in a job's first instant, before the next one is submitted, leads to a requeue (#SBATCH
  // --requeue).
  Ended run_next(int ranks, const std::function<bool()>& kill_now, bool again = false) {
    Ended ended{queue().front()};
    const std::string name = std::to_string(ended.job), spool = directory_ + "/spool/" + name;
    std::filesystem::remove(directory_ + "/queue/" + name);
    const std::string line = "cd " + working_ + " && exec env " + environment(ranks > 1 ? launcher(ranks) : "") +
                             "SLURM_JOB_ID=" + name + " bash " + spool + ".sh " + text_of(spool + ".arguments") +
                             " >> " + directory_ + "/said 2>&1";
    StartedCommand shell(line, "/dev/null");
    while (!shell.ended()) {
      if (!kill_now()) {
        std::this_thread::sleep_for(std::chrono::microseconds(300));
        continue;
      }
      kill_session(shell.process());
      ended.killed = true;
      if (again || queue().empty()) std::ofstream(directory_ + "/queue/" + name);
      return ended;
    }
    kill_session(shell.process());  // what it has left behind
    ended.status = shell.wait().code;
    return ended;
  }
  // All that jobs have said.
  std::string said() const { return text_of(directory_ + "/said"); }

 private:
  void script(const std::string& name, const std::string& text) const {
    const std::string path = directory_ + "/bin/" + name;
    std::ofstream(path) << "#!/bin/bash\n" << text << '\n';
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  }
  std::string environment(const std::string& launch) const {
    return "PATH=" + directory_ + "/bin:$PATH STAND_IN=" + directory_ + " STAND_IN_LAUNCHER='" + launch +
           "' SLURM_CPUS_PER_TASK=1 MAKI=" + program() + " " + settings_ + " ";
  }
  // Processes of a session, as /proc has them; a launcher gives its ranks groups of their own, but no session.
  static std::vector<pid_t> in_session(pid_t session) {
    std::vector<pid_t> found;
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      const int process = std::atoi(entry.path().filename().c_str());
      if (process > 0 && getsid(process) == session && runs(process)) found.push_back(process);
    }
    return found;
  }
  static void kill_session(pid_t session) {
    for (std::vector<pid_t> left = in_session(session); !left.empty(); left = in_session(session)) {
      for (const pid_t process : left) kill(process, SIGKILL);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  std::string directory_, working_, settings_;
};

// Decides once for each job, with whatever outcome: it may have ended before.
class Killer {
 public:
  // `directory`: that of the run.
  Killer(const std::string& directory, std::mt19937& random)
      : directory_(directory), moment_(static_cast<Moment>(random() % kMoments)), more_(1 + random() % 8),
        pause_(random() % (moment_ == kStart ? 300000 : 4000)), steps_(lines()), restarts_(restarts(true)) {}

  bool operator()() {
    if (!seen_ && has_come()) seen_ = Clock::now();
    return seen_ && Clock::now() >= *seen_ + std::chrono::microseconds(pause_);
  }
  // Whether a restart was begun and not complete at that moment.
  bool amid_restart() const { return restarts(false) > 0; }

 private:
  using Clock = std::chrono::steady_clock;
  // While a restart is written; when it has just become one; after some steps; while the job starts.
  enum Moment { kWriting, kWritten, kSteps, kStart, kMoments };

  bool has_come() const {
    switch (moment_) {
      case kWriting: return steps_ != lines() && restarts(false) > 0;
      case kWritten: return restarts(true) != restarts_;
      case kSteps: return lines() >= steps_ + more_ || lines() < steps_;
      default: return true;
    }
  }
  std::size_t lines() const {
    return static_cast<std::size_t>(std::ranges::count(text_of(directory_ + "/metrics.jsonl"), '\n'));
  }
  // A number that changes with the complete restarts; how many are not complete.
  std::size_t restarts(bool complete) const {
    std::size_t found = 0;
    std::error_code none;
    for (const auto& entry : std::filesystem::directory_iterator(directory_, none)) {
      const std::string name = entry.path().filename();
      if (!name.starts_with("restart_")) continue;
      const bool whole = std::filesystem::exists(entry.path() / "complete.toml", none);
      if (whole == complete) found += complete ? std::stoul(name.substr(8)) : 1;
    }
    return found;
  }

  std::string directory_;
  Moment moment_;
  std::size_t more_, pause_;  // microseconds
  std::size_t steps_, restarts_;
  std::optional<Clock::time_point> seen_;
};

// Every step has one line in metrics.jsonl, in order; other lines tell of beginnings, outputs and the end.
inline void expect_whole_metrics(const std::string& directory) {
  std::size_t step = 0;
  for (const std::string& line : lines_of(directory + "/metrics.jsonl")) {
    if (!line.starts_with("{\"step\": ")) continue;
    ASSERT_TRUE(line.starts_with("{\"step\": " + std::to_string(step++) + ",")) << line;
  }
  EXPECT_GT(step, 20u);
}

// The last 4000 characters.
inline std::string tail(const std::string& text) {
  return text.substr(text.size() - std::min<std::size_t>(text.size(), 4000));
}

}  // namespace maki::test
