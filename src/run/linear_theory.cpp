#include "src/run/linear_theory.hpp"

#include <utility>

namespace maki {
namespace {

CosmologyParameters parameters_of(const Config& config, const SnapshotHeader& header) {
  const Config::Cosmology& from = config.cosmology;
  CosmologyParameters parameters{header.omega0, header.omega_lambda, header.omega_baryon,
                                 header.hubble, from.sigma8,         from.n_s};
  if (!(parameters.omega_baryon > 0))
    parameters.omega_baryon = from.omega_baryon.value_or(CosmologyParameters{}.omega_baryon);
  return parameters;
}

PowerSpectrum spectrum_of(const Config& config, const SnapshotHeader& header) {
  const Config::Cosmology& from = config.cosmology;
  return PowerSpectrum({.model = from.transfer,
                        .table_file = from.transfer_table,
                        .table_redshift = from.table_redshift,
                        .power_law_index = from.power_law_index},
                       parameters_of(config, header), header.units);
}

}  // namespace

std::function<double(double)> linear_power_of(const Config& config, const SnapshotHeader& header) {
  const double growth = Cosmology(parameters_of(config, header), header.units).growth(header.time).d1;
  return [spectrum = spectrum_of(config, header), growth](double k) { return growth * growth * spectrum(k); };
}

std::unique_ptr<const MassFunction> mass_function_of(const Config& config, const SnapshotHeader& header) {
  return std::make_unique<MassFunction>(spectrum_of(config, header),
                                        Cosmology(parameters_of(config, header), header.units), header.time);
}

}  // namespace maki
