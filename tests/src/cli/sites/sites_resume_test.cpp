// Runs at two sites of which one is lost, asked to stop, or cut off for a moment: `maki resume` at both ends where the
// run that was left alone ends.
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <iterator>
#include <optional>
#include <thread>

#include "src/io/run_directory.hpp"
#include "src/simulation/step_log.hpp"
#include "tests/small_disk.hpp"
#include "tests/src/cli/sites/two_programs.hpp"
#include "tests/src/lightcone/cone_reader.hpp"
#include "tests/wan/net/proxy.hpp"

namespace maki::test {
namespace {

constexpr int kExitStopped = 3, kExitSiteLost = 4;

// Silence after which a site is lost: the first is waited for, and is longer than a busy machine puts a thread off.
const std::string kSoon = "sites.path.patience=8s ", kLate = "sites.path.patience=60s ";

// The first thread of a process, held while all others go on: as in a call to a file system that hangs.
class HeldThread {
 public:
  explicit HeldThread(pid_t process) : process_(process) {
    held_ = ptrace(PTRACE_SEIZE, process, nullptr, nullptr) == 0 &&
            ptrace(PTRACE_INTERRUPT, process, nullptr, nullptr) == 0 && waitpid(process, nullptr, __WALL) == process;
  }
  ~HeldThread() {
    if (held_) ptrace(PTRACE_DETACH, process_, nullptr, nullptr);
  }
  HeldThread(const HeldThread&) = delete;
  HeldThread& operator=(const HeldThread&) = delete;
  explicit operator bool() const { return held_; }

 private:
  const pid_t process_;
  bool held_ = false;
};

struct End {
  std::uint64_t steps = 0;
  ById particles;
  std::vector<ReadParticle> cone;  // both sites' part of a light cone
  std::vector<double> maps;        // of both, one after the other
};

class SitesResume : public TwoPrograms {
 protected:
  SitesResume() {
    settings_ =
        " time.end_redshift=3 run.restart_steps=7 sites.max_boundary_move=0 output.power_spectrum=false"
        " output.image=false 'box.size=1000 Mpc/h' 'lightcone.observers=[0, 500, 999]' lightcone.opening_angle=20"
        " 'lightcone.edges=[3, 4, 6]' lightcone.nside=4 time.max_dlna=0.02 gravity.reuse=1"
        " run.deterministic=true sites.b.listen=127.0.0.1:" +
        std::to_string(port_) + " sites.b.address=" + proxy_.address().text() + " ";
  }

  StartedCommand start(const std::string& site, const std::string& more = "") const {
    return {"cd " + directory_.string() + " && exec env OMP_NUM_THREADS=1 " + program() + " run " + config() +
                settings_ + more + " --site " + site,
            path(site + ".log")};
  }
  Results resume(const std::string& more = "") const {
    return both("resume output/two/a " + more, "resume output/two/b " + more);
  }
  // Names of those that are complete.
  std::vector<std::string> restarts_of(const std::string& site) const {
    std::vector<std::string> names;
    std::error_code none_yet;
    for (const auto& entry : fs::directory_iterator(path("output/two/" + site), none_yet))
      if (fs::exists(entry.path() / "complete.toml")) names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    return names;
  }
  std::size_t restarts(const std::string& site) const { return restarts_of(site).size(); }
  // Nothing passes any more once `now` is true: the sites wait for each other from then on.
  template <class Condition>
  void stall_once(Condition now) {
    proxy_.before_each([this, now] {
      if (stalled_ || !now()) return;
      proxy_.stall(true);
      stalled_ = true;
    });
  }
  void stall_after_restarts() {
    stall_once([this] { return restarts("a") >= 2 && restarts("b") >= 2; });
  }
  template <class Look>
  void wait_for_stall(StartedCommand& a, StartedCommand& b, const Look& look) const {
    for (int i = 0; i < 30000 && !stalled_ && !a.ended() && !b.ended(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      look();
    }
    ASSERT_TRUE(stalled_) << a.said() << b.said();
  }
  void wait_for_stall(StartedCommand& a, StartedCommand& b) const {
    wait_for_stall(a, b, [] {});
  }

  static std::uint64_t steps_of(const Result& result) {
    const auto end = result.output.rfind(" steps, ");
    const auto begin = result.output.rfind('\n', end) + 1;
    return end == std::string::npos ? 0 : std::stoull(result.output.substr(begin, end - begin));
  }
  End end_of(const Results& results) const {
    expect_end(results, 0);
    EXPECT_EQ(steps_of(results[0]), steps_of(results[1]));
    End end{steps_of(results[0]), particles_in(collect("snapshot_000")), {}, {}};
    for (const std::string site : {"a/lightcone_00/", "b/lightcone_00/"}) {
      for (const std::string shell : {"000", "001"}) {
        const std::string folder = path("output/two/" + site), part = site[0] == 'a' ? ".0" : ".1";
        const auto particles = read_shell(folder + "conesnap_" + shell + part + ".hdf5");
        end.cone.insert(end.cone.end(), particles.begin(), particles.end());
        const auto map = read_sky_map(folder + "map_" + shell + part + ".fits");
        end.maps.insert(end.maps.end(), map.begin(), map.end());
      }
    }
    EXPECT_GT(end.cone.size(), 10000u);
    EXPECT_EQ(end.particles.size(), 4096u);
    return end;
  }
  // Of the run that is left alone.
  const End& undisturbed() {
    static std::optional<End> end;
    if (end) return *end;
    StartedCommand a = start("a"), b = start("b");
    end = end_of({a.wait(), b.wait()});
    for (const char* what : {"output", "snapshot_000.0.hdf5", "snapshot_000.1.hdf5"}) fs::remove_all(path(what));
    return *end;
  }
  void expect_same(const End& end) {
    EXPECT_EQ(end.steps, undisturbed().steps);
    EXPECT_TRUE(undisturbed().particles == end.particles) << "to the last bit";
    EXPECT_TRUE(undisturbed().cone == end.cone) << "with each particle of the light cone";
    EXPECT_EQ(undisturbed().maps, end.maps);
  }

  // Both sites, once site b was asked to stop after some restarts.
  Results stopped_at_b() {
    undisturbed();
    stall_after_restarts();
    StartedCommand a = start("a"), b = start("b");
    wait_for_stall(a, b);
    b.send(SIGTERM);
    proxy_.stall(false);
    return {a.wait(), b.wait()};
  }

  // Seen by the thread of the proxy, which is gone before them.
  std::atomic<bool> stalled_{false}, full_{false};
  std::atomic<std::size_t> cuts_{0};
  const std::uint16_t port_ = wan::test::free_ports(1)[0];
  std::string settings_;
  wan::test::Proxy proxy_{{"127.0.0.1", port_}};
};

// Where the disk of a site is full, both go on, and the other one writes restarts, but keeps the one that both have.
TEST_F(SitesResume, AfterTheDiskOfASiteWasFull) {
  const SmallDisk disk(path("output/two/b"), 16);
  if (!disk) GTEST_SKIP() << "mounting a small file system needs root";
  const auto cone = settings_.find(" 'lightcone");  // whose spools would find no room either
  settings_.erase(cone, settings_.find(" time.max_dlna") - cone);
  const auto newer = [this] {
    const std::vector<std::string> names = restarts_of("a");
    return names.end() - std::upper_bound(names.begin(), names.end(), restarts_of("b").back());
  };
  stall_once([this, newer] { return full_ ? newer() >= 4 : restarts("a") >= 2 && restarts("b") >= 2; });
  const std::string more = "run.restart_steps=2 ";
  StartedCommand a = start("a", more + kSoon), b = start("b", more);
  wait_for_stall(a, b);
  // A restart that cannot be completed leaves room.
  bool under_way = true;
  for (int i = 0; i < 500 && under_way; ++i) {
    under_way = restarts_in(path("output/two/b")).size() > restarts("b");
    disk.fill();
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  full_ = true;
  stalled_ = false;
  proxy_.stall(false);
  wait_for_stall(a, b, [&] { disk.fill(); });
  b.send(SIGKILL);
  b.wait();
  const Result left = expect_end(a.wait(), kExitSiteLost);
  EXPECT_GE(newer(), 4) << left.output;
  // Site b may have completed another one since, when a had removed its own of that step.
  std::vector<std::string> common;
  std::ranges::set_intersection(restarts_of("a"), restarts_of("b"), std::back_inserter(common));
  ASSERT_FALSE(common.empty());
  disk.clear();
  proxy_.stall(false);
  expect_end(resume(kLate), 0, {common.back() + ": step"});
}

TEST_F(SitesResume, AfterASiteWasLost) {
  undisturbed();
  stall_after_restarts();
  StartedCommand a = start("a", kSoon), b = start("b");
  wait_for_stall(a, b);
  const std::size_t had = restarts("a");
  b.send(SIGKILL);
  EXPECT_EQ(b.wait().code, -1);
  const Result left = expect_end(a.wait(), kExitSiteLost, {"Stopped by the loss of another site", "maki resume"});
  EXPECT_GT(restarts("a"), had) << "of its last long steps";
  EXPECT_LT(steps_of(left), undisturbed().steps);
  proxy_.stall(false);
  expect_same(end_of(resume(kLate)));
}

// Long before the patience of their path is over.
TEST_F(SitesResume, SitesThatAreAskedToStopWhileTheirPathIsDown) {
  undisturbed();
  stall_after_restarts();
  StartedCommand a = start("a", "sites.path.patience=1000s"), b = start("b", "sites.path.patience=1000s");
  wait_for_stall(a, b);
  for (const StartedCommand* one : {&a, &b}) one->send(SIGTERM);
  expect_end(a.wait(), kExitSiteLost, {"site b is lost", "the path is down, and the run is asked to stop"});
  expect_end(b.wait(), kExitSiteLost, {"site a is lost"});
  proxy_.stall(false);
  expect_same(end_of(resume(kLate)));
}

// Its path is up all the time, and its job does nothing.
TEST_F(SitesResume, ASiteThatIsAskedToStopWhileAnotherOneHangs) {
  undisturbed();
  stall_after_restarts();
  StartedCommand a = start("a", kSoon), b = start("b");
  wait_for_stall(a, b);
  {
    const HeldThread hanging(b.process());
    if (!hanging) GTEST_SKIP() << "threads of other processes cannot be held here";
    proxy_.stall(false);
    std::this_thread::sleep_for(std::chrono::seconds(3));
    const std::size_t had = restarts("a");
    a.send(SIGTERM);
    expect_end(a.wait(), kExitSiteLost,
               {"site b is lost (seen by site a: waiting for ", " of site b for ", "and the run is asked to stop",
                "Stopped by the loss of another site"});
    EXPECT_GT(restarts("a"), had) << "of its last long steps";
  }
  expect_end(b.wait(), kExitSiteLost, {"site b is lost (seen by site a: waiting for "});
  expect_same(end_of(resume(kLate)));
}

// A person who stops a run wants no more jobs of a chain, which go on where a site was lost.
TEST_F(SitesResume, AStopFileWhileThePathIsDownEndsWithItsOwnCode) {
  stall_after_restarts();
  StartedCommand a = start("a", "sites.path.patience=1000s"), b = start("b", "sites.path.patience=1000s");
  wait_for_stall(a, b);
  for (const std::string site : {"a", "b"}) write("output/two/" + site + "/stop", "");
  for (StartedCommand* const one : {&a, &b}) expect_end(one->wait(), kExitStopped, {"Stopped by a file named stop"});
}

TEST_F(SitesResume, ASiteLostBeforeTheFirstStepIsAnErrorOfTheSameCode) {
  stall_once([this] { return text_of(path("a.log")).find("path to b") != std::string::npos; });
  StartedCommand a = start("a", kSoon), b = start("b");
  wait_for_stall(a, b);
  b.send(SIGKILL);
  b.wait();
  expect_end(a.wait(), kExitSiteLost, {"maki: error: site b is lost"});
  EXPECT_EQ(restarts("a"), 0u);
}

TEST_F(SitesResume, AfterOneSiteWasAskedToStop) {
  const Results stopped = stopped_at_b();
  expect_end(stopped[0], kExitStopped, {"Stopped by another site"});
  expect_end(stopped[1], kExitStopped, {"Stopped by SIGTERM"});
  EXPECT_EQ(steps_of(stopped[0]), steps_of(stopped[1]));
  EXPECT_LT(steps_of(stopped[0]), undisturbed().steps);
  expect_same(end_of(resume()));
  expect_end(call("resume output/two/a --site a sites.wait='1 s'"), 1,
             {"The run in 'output/two/a' has ended", "site b did not come within 1 s"});
}

// The newest restart is damaged at one of the sites: all take the one before.
TEST_F(SitesResume, ARestartThatIsDamagedAtOneSiteServesNone) {
  expect_end(stopped_at_b(), kExitStopped);
  const std::vector<std::string> there = restarts_of("b");
  ASSERT_GE(there.size(), 2u);
  fs::resize_file(path("output/two/b/" + there.back() + "/rank_0.hdf5"), 5000);
  const Results resumed = resume();
  expect_same(end_of(resumed));
  for (const Result& result : resumed)
    expect_words(result, {"is damaged at site b", "the one before has to serve", there[there.size() - 2] + ": step"});
}

// Site b was lost before its first restart was complete, and site a was not: both begin anew by maki run --resume.
TEST_F(SitesResume, WithoutAFirstRestartAtOneSiteTheRunBeginsAnew) {
  undisturbed();
  stall_after_restarts();
  StartedCommand a = start("a"), b = start("b");
  wait_for_stall(a, b);
  for (StartedCommand* one : {&a, &b}) one->send(SIGKILL), one->wait();
  proxy_.stall(false);
  for (const std::string& name : restarts_of("b")) fs::remove_all(path("output/two/b/" + name));
  const std::string again = "run " + config() + settings_ + " run.overwrite=true gravity.theta=auto --resume";
  expect_end(both(again), 1, {"restarts of the run in", "are gone"});
  EXPECT_GE(restarts("a"), 2u);
  std::string metrics = text_of(path("output/two/b/metrics.jsonl"));
  for (std::size_t at; (at = metrics.find("{\"restart\"")) != metrics.npos;)
    metrics.erase(at, metrics.find('\n', at) + 1 - at);
  write("output/two/b/metrics.jsonl", metrics);
  const auto expect_anew = [&](const Results& results) {
    expect_same(end_of(results));
    for (const Result& result : results) expect_lacks(result.output, {"Resumed from"});
  };
  expect_anew(both(again));
  // Both were killed as they began anew: b had removed its restarts, a had not, and neither had named the new run.
  note_overwriting(path("output/two/b"));
  remove_restarts(path("output/two/b"));
  write("output/two/b/stopped.hdf5", "");
  expect_anew(both(again));
  fs::remove_all(path("output/two/b"));
  expect_end(both(again), 1, {"site a holds restarts of a run, and site b nothing of that run"});
}

// Site a is lost while it makes the last picture of all particles, for which site b waits.
TEST_F(SitesResume, AfterASiteWasLostDuringTheLastOutput) {
  const std::string more =
      "output.power_spectrum=true output.power_mesh=32 output.image=true output.image_pixels=8192 ";
  stall_once([this] { return fs::exists(path("output/two/a/power_000.txt")); });
  StartedCommand a = start("a", more), b = start("b", more + kSoon);
  wait_for_stall(a, b);
  const std::string last = restarts_of("b").back();
  a.send(SIGKILL);
  a.wait();
  const Result left = expect_end(b.wait(), kExitSiteLost, {"Stopped by the loss of another site", "maki resume"});
  EXPECT_GT(restarts_of("b").back(), last) << "of its last long steps";
  expect_lacks(left.output, {"goes on without it"});
  proxy_.stall(false);
  expect_end(resume(kLate + "output.image_pixels=64"), 0, {"Resumed from"});
}

// A run that has ended at both sites stays as it is, also where the restarts of one of them are gone.
TEST_F(SitesResume, ARunThatHasEndedIsNotMadeAgain) {
  StartedCommand a = start("a"), b = start("b");
  for (StartedCommand* const one : {&a, &b}) expect_end(one->wait(), 0);
  const auto made = [&] { return fs::last_write_time(path("output/two/a/snapshot_000.0.hdf5")); };
  const auto when = made();
  const std::string again = "run " + config() + settings_ + " run.overwrite=true --resume";
  expect_end(resume(), 0, {"has come to its end"});
  expect_end(both(again), 0, {"has come to its end"});
  for (const std::string& name : restarts_of("a")) fs::remove_all(path("output/two/a/" + name));
  expect_end(both(again), 0, {"has come to its end"});
  const std::string later = again + " time.end_redshift=2.9";
  expect_end(both(later), 1, {"ended at site a, which has no restart of it"});
  EXPECT_EQ(made(), when);
}

// After settings were changed a site is lost before it has a new restart: both go on from the last common one, with the
// settings of that.
TEST_F(SitesResume, SettingsOfTheCommonRestartHold) {
  expect_end(stopped_at_b(), kExitStopped);
  const auto lines = [this] {
    const std::string metrics = text_of(path("output/two/a/metrics.jsonl"));
    return std::ranges::count(metrics, '\n');
  };
  const std::string last = restarts_of("b").back();
  stalled_ = false;
  stall_once([lines, before = lines()] { return lines() > before + 8; });
  const auto changed = [&](const std::string& site) {
    return "cd " + directory_.string() + " && exec env OMP_NUM_THREADS=1 " + program() + " resume output/two/" + site +
           " --site " + site + " time.eta=0.3 time.end_redshift=2.9 run.restart_steps=0 " + kSoon;
  };
  StartedCommand a(changed("a"), path("a.log")), b(changed("b"), path("b.log"));
  wait_for_stall(a, b);
  b.send(SIGKILL);
  b.wait();
  expect_end(a.wait(), kExitSiteLost);
  EXPECT_GT(restarts_of("a").back(), last);
  EXPECT_EQ(restarts_of("b").back(), last);
  proxy_.stall(false);
  expect_end(both("resume output/two/a time.eta=0.2", "resume output/two/b time.eta=0.1"), 1,
             {"the sites cannot run together", "time.eta is 0.2 at site a and 0.1 at site b"});
  const Results resumed = resume(kLate);
  for (const Result& result : resumed) expect_words(result, {"Resumed from", last});
  expect_same(end_of(resumed));
}

// All connections are cut whenever site a has written a restart: to the last bit nothing has happened.
TEST_F(SitesResume, CutConnectionsChangeNothing) {
  undisturbed();
  proxy_.before_each([this] {
    if (restarts("a") <= cuts_ || cuts_ == 3) return;
    ++cuts_;
    proxy_.cut();
  });
  StartedCommand a = start("a"), b = start("b");
  const End end = end_of({a.wait(), b.wait()});
  EXPECT_EQ(cuts_, 3u);
  EXPECT_GT(proxy_.connections(), 4);
  expect_same(end);
}

}  // namespace
}  // namespace maki::test
