#include "src/run/linear_theory.hpp"

#include <fmt/format.h>

#include "kernels/error.hpp"
#include "src/config/parse.hpp"
#include "src/cosmology/nonlinear.hpp"
#include "src/io/snapshot_io.hpp"

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

PowerTheory power_theory_of(const Config& config, const SnapshotHeader& header) {
  const Cosmology cosmology(parameters_of(config, header), header.units);
  const PowerSpectrum spectrum = spectrum_of(config, header);
  const double growth = cosmology.growth(header.time).d1;
  return {[spectrum, growth](double k) { return growth * growth * spectrum(k); },
          HalofitPower(spectrum, cosmology, header.time)};
}

std::unique_ptr<const MassFunction> mass_function_of(const Config& config, const SnapshotHeader& header) {
  return std::make_unique<MassFunction>(spectrum_of(config, header),
                                        Cosmology(parameters_of(config, header), header.units), header.time);
}

std::optional<Config> spectrum_config(const std::string& config, const std::string& snapshot) {
  if (!config.empty()) {
    const Config given = load_config(config);
    if (given.run.kind == RunKind::kCosmology) return given;
    throw Error(fmt::format("'{}' has no power spectrum", config), "it is of an isolated set",
                "give the configuration of a cosmological run");
  }
  const std::string text = read_configuration(snapshot);
  if (text.find("[cosmology]") == std::string::npos) return {};
  const Config own = parse_config(text, snapshot);
  return own.initial.kind == InitialKind::kLpt ? std::optional(own) : std::nullopt;
}

PowerTheory power_theory_of_file(const std::string& config, const std::string& snapshot, const SnapshotHeader& header,
                                 const std::function<void(const std::string&)>& say) {
  try {
    if (const std::optional<Config> known = spectrum_config(config, snapshot)) return power_theory_of(*known, header);
    say("the snapshot does not say which linear spectrum it came from: no theory (--config gives one)");
  } catch (const Error& error) {
    if (!config.empty()) throw;
    say(fmt::format("{}: no theory (--config gives a spectrum)", error.what()));
  }
  return {};
}

}  // namespace maki
