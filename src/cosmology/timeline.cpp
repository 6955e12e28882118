#include "src/cosmology/timeline.hpp"

#include <cmath>
#include <stdexcept>

namespace maki {

Timeline Timeline::comoving(const CosmologyParameters& parameters, const UnitSystem& units) {
  Timeline timeline;
  timeline.cosmology_.emplace(parameters, units);
  return timeline;
}

Timeline Timeline::newtonian() { return Timeline(); }

double Timeline::scale_factor(double t) const { return cosmology_ ? std::exp(t) : 1; }

double Timeline::kick_factor(double t0, double t1) const {
  return cosmology_ ? cosmology_->kick_factor(std::exp(t0), std::exp(t1)) : t1 - t0;
}

double Timeline::drift_factor(double t0, double t1) const {
  return cosmology_ ? cosmology_->drift_factor(std::exp(t0), std::exp(t1)) : t1 - t0;
}

double Timeline::growing_kick_factor(double t0, double t1, double at) const {
  return cosmology_ ? cosmology_->growing_kick_factor(std::exp(t0), std::exp(t1), std::exp(at)) : t1 - t0;
}

double Timeline::growing_drift_factor(double t0, double t1, double at) const {
  return cosmology_ ? cosmology_->growing_drift_factor(std::exp(t0), std::exp(t1), std::exp(at)) : t1 - t0;
}

double Timeline::physical_time(double t0, double t1) const {
  return cosmology_ ? cosmology_->time_between(std::exp(t0), std::exp(t1)) : t1 - t0;
}

double Timeline::hubble(double t) const { return cosmology_ ? cosmology_->hubble(std::exp(t)) : 0; }

double Timeline::time_of_redshift(double z) const {
  if (!cosmology_) throw std::logic_error("a newtonian timeline knows no redshift");
  return -std::log1p(z);
}

const Cosmology& Timeline::cosmology() const {
  if (!cosmology_) throw std::logic_error("a newtonian timeline knows no cosmology");
  return *cosmology_;
}

}  // namespace maki
