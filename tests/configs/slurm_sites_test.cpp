// configs/slurm.sh at two sites, each with a queue of its own: jobs are killed at either, stopped by either's time limit, and
// wait for each other; the run ends with the bits of the run that was left alone.
#include <atomic>
#include <cstdio>
#include <thread>

#include "tests/configs/killer.hpp"
#include "tests/configs/slurm_stand_in.hpp"
#include "tests/src/cli/sites/two_programs.hpp"

namespace maki::test {
namespace {

class SlurmSites : public TwoPrograms {
 protected:
  static constexpr const char* kSettings =
      "run.restart_steps=3 run.deterministic=true gravity.reuse=1 time.max_dlna=0.01 output.redshifts=[7] "
      "output.power_spectrum=false output.image=false sites.path.patience=1s sites.wait=60s ";
  static constexpr std::array<const char*, 2> kSites = {"a", "b"};

  std::string output(std::size_t site) const { return path(std::string("out/") + kSites[site]); }
  SlurmStandIn submitted(std::size_t site, const std::string& settings) const {
    const std::string name = kSites[site];
    SlurmStandIn in(path("slurm_" + name), directory_.string(), "MAKI_ATTEMPTS=1000 MAKI_OUTPUT=" + output(site));
    in.submit(source_directory() + "/configs/slurm.sh " + config() + " --site " + name + " " + kSettings + settings);
    return in;
  }
  // Runs a site's jobs until its queue is empty. Of `kills_` each site takes as its jobs come.
  void run_site(std::size_t site, SlurmStandIn& in) {
    std::mt19937 random(seed_ + static_cast<unsigned>(site));
    while (!in.queue().empty()) {
      Killer killer(output(site), random);
      const int ranks = kills_ > 0 && random() % 4 == 0 ? 2 : 1;
      const auto now = [&] { return kills_ > 0 && killer(); };
      if (!in.run_next(ranks, now, random() % 4 == 0).killed()) continue;
      --kills_;
      ++killed_[site];
      if (killer.amid_restart()) ++amid_;
    }
  }
  void run_both(const std::string& at_a, const std::string& at_b) {
    std::array<SlurmStandIn, 2> in = {submitted(0, at_a), submitted(1, at_b)};
    std::thread first([&] { run_site(0, in[0]); });
    run_site(1, in[1]);
    first.join();
    for (const SlurmStandIn& one : in) said_.push_back(one.said());
  }
  void expect_the_bits(const std::string& settings) {
    const std::string run = "run " + config() + " " + kSettings + settings;
    for (const Result& result : both(run, run)) expect_end(result, 0);
    for (std::size_t site = 0; site < 2; ++site) {
      SCOPED_TRACE("seed " + std::to_string(seed_) + ", site " + kSites[site] + "\n" + tail(said_[site]));
      ASSERT_TRUE(fs::exists(output(site) + "/done"));
      expect_whole_metrics(output(site));
    }
    for (const char* name : {"snapshot_000", "snapshot_001"}) {
      const ById whole = particles_in(collect(name));
      EXPECT_EQ(whole.size(), 4096u);
      EXPECT_TRUE(particles_in(collect(name, "out/a", "out/b")) == whole) << name;
    }
  }
  void expect_the_bits_after(int kills, const std::string& settings) {
    kills_ = kills;
    run_both(settings, settings);
    std::printf("  %d kills at a, %d at b, %d of them while a restart was written\n", killed_[0].load(),
                killed_[1].load(), amid_.load());
    if (kills >= 50) {
      EXPECT_LE(kills_, kills / 4) << "the run was over too soon";
    }
    expect_the_bits(settings);
  }

  const unsigned seed_ = std::random_device()();
  std::atomic<int> kills_{0}, amid_{0};
  std::array<std::atomic<int>, 2> killed_{};
  std::vector<std::string> said_;
};

TEST_F(SlurmSites, KilledJobsEndWithTheBitsOfTheRunLeftAlone) { expect_the_bits_after(4, "end_redshift=5"); }

class FullSlurmSites : public SlurmSites {};
TEST_F(FullSlurmSites, FiftyKilledJobsEndWithTheBitsOfTheRunLeftAlone) {
  expect_the_bits_after(50, "end_redshift=0 time.max_dlna=0.004");
}

// The first site's time is up again and again; the second keeps its job, and waits.
TEST_F(SlurmSites, ASiteWhoseTimeIsUpStopsAllAndTheyGoOnTogether) {
  run_both("end_redshift=6 run.time_limit=0.3s", "end_redshift=6");
  expect_words({0, said_[0]}, {"stopped by the time limit", "Resumed from", "maki: done"});
  expect_words({0, said_[1]},
               {"Stopped by another site", "goes on as soon as the others do", "Resumed from", "maki: done"});
  EXPECT_FALSE(fs::exists(path("slurm_b/spool/3.sh"))) << "one job, and the next one that was cancelled";
  expect_the_bits("end_redshift=6");
}

}  // namespace
}  // namespace maki::test
