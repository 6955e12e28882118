// Units, headers and particle sets in memory.
#include "src/io/snapshot.hpp"

#include <fmt/format.h>
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>

#include "host/comm/job.hpp"
#include "kernels/error.hpp"
#include "src/config/quantity.hpp"
#include "src/io/safe_file.hpp"
#include "src/io/snapshot_io.hpp"
#include "src/python/bind.hpp"

namespace maki::python {
namespace {

std::string describe(const UnitSystem& units) {
  if (pure_numbers(units)) return "<maki.Units: pure numbers>";
  return fmt::format("<maki.Units: {}, {}, {}>", unit_name(units, Dimension::kLength),
                     unit_name(units, Dimension::kMass), unit_name(units, Dimension::kVelocity));
}

std::string describe(const Snapshot& set) {
  const SnapshotHeader& header = set.header;
  const std::string moment = header.comoving
                                 ? fmt::format("z = {:.4g}", header.redshift)
                                 : "t = " + time_text(header.time, {1, unit_name(header.units, Dimension::kTime)});
  return fmt::format("<maki.Snapshot: {} particles, {}>", set.size(), moment);
}

void require_length(std::size_t given, std::size_t wanted, const char* name) {
  if (given == wanted) return;
  throw Error(fmt::format("{} has {} rows", name, given), fmt::format("there are {} particles", wanted),
              "give one row for each particle");
}

using Ids = std::optional<Numbers<std::uint64_t>>;

Snapshot make_snapshot(const Vectors<double>& positions, const Vectors<double>& velocities,
                       const Numbers<double>& masses, const Ids& ids, const SnapshotHeader& header) {
  const std::size_t n = positions.shape(0);
  require_length(velocities.shape(0), n, "velocities");
  require_length(masses.shape(0), n, "masses");
  if (ids) require_length(ids->shape(0), n, "ids");
  Snapshot set;
  set.header = header;
  set.positions = to_vectors<double>(positions);
  set.velocities = to_vectors<float>(velocities);
  set.masses.assign(masses.data(), masses.data() + n);
  set.ids.resize(n);
  if (ids)
    std::copy_n(ids->data(), n, set.ids.begin());
  else
    std::iota(set.ids.begin(), set.ids.end(), std::uint64_t{1});
  return set;
}

// Arrays of a set keep their memory, as numpy has views of it: other numbers of rows are refused.
template <class T>
void put(std::vector<std::array<T, 3>>& into, const Vectors<double>& from, const char* name) {
  require_length(from.shape(0), into.size(), name);
  const auto values = to_vectors<T>(from);
  std::copy(values.begin(), values.end(), into.begin());
}
template <class T, class Given>
void put(std::vector<T>& into, const Given& from, const char* name) {
  require_length(from.shape(0), into.size(), name);
  std::transform(from.data(), from.data() + into.size(), into.begin(),
                 [](auto value) { return static_cast<T>(value); });
}

// Indices of particles in the order of ids. Ids are mostly n successive numbers, and then give the place directly.
std::vector<std::size_t> order_of(const std::vector<std::uint64_t>& ids) {
  std::vector<std::size_t> order(ids.size(), ids.size());
  if (ids.empty()) return order;
  const std::uint64_t least = *std::min_element(ids.begin(), ids.end());
  bool in_a_row = true;
  for (std::size_t i = 0; i < ids.size() && in_a_row; ++i) {
    const std::uint64_t place = ids[i] - least;
    in_a_row = place < ids.size() && order[place] == ids.size();
    if (in_a_row) order[place] = i;
  }
  if (in_a_row) return order;
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return ids[a] < ids[b]; });
  return order;
}

template <class T>
void reorder(std::vector<T>& values, const std::vector<std::size_t>& order) {
  const std::vector<T> before = values;
  std::ranges::transform(order, values.begin(), [&](std::size_t i) { return before[i]; });
}

// Objects of all these fields can be copied and pickled.
template <class T, class... Owners, class... Fields>
void pickle(nb::class_<T>& type, Fields Owners::*... fields) {
  type.def("__getstate__", [fields...](const T& object) { return std::tuple<Fields...>(object.*fields...); });
  type.def("__setstate__", [fields...](T& object, const std::tuple<Fields...>& state) {
    new (&object) T;
    std::apply([&](const Fields&... values) { ((object.*fields = values), ...); }, state);
  });
}

// Throws Error where numbers of the header mean nothing.
void check_header(const SnapshotHeader& header) {
  if (header.comoving && !(header.box_size > 0))
    throw Error("a comoving set needs a box", fmt::format("header.box_size is {}", header.box_size),
                "set header.box_size, or header.comoving = False");
  if (header.comoving && !(header.time > 0 && std::isfinite(header.time)))
    throw Error("a comoving set needs a scale factor", fmt::format("header.time is {}", header.time),
                "set header.time or header.redshift");
  if (!std::isfinite(header.time)) throw Error(fmt::format("header.time is {}", header.time), "", "set it to a time");
  const double g = header.gravitational_constant;
  if (!(g >= 0 && std::isfinite(g)))
    throw Error(fmt::format("header.gravitational_constant is {}", g), "", "give 0 (that of the units) or more");
  for (const double unit : {header.units.length_cgs, header.units.mass_cgs, header.units.velocity_cgs})
    if (!(unit > 0 && std::isfinite(unit)))
      throw Error(fmt::format("header.units has a unit of {}", unit), "cm, g or cm/s", "give numbers above 0");
}

// Throws Error where ranks have the same particles, such as a whole set on each. Collective.
void require_shares(const Snapshot& share, const Communicator& ranks) {
  if (ranks.size() == 1) return;
  Checksum sum;
  sum.add(share.positions.data(), share.size() * sizeof share.positions[0]);
  sum.add(share.ids.data(), share.size() * sizeof share.ids[0]);
  std::vector<std::string> sums = gather_texts(ranks, share.size() == 0 ? "" : sum.text());
  std::erase(sums, "");
  std::ranges::sort(sums);
  if (std::ranges::adjacent_find(sums) == sums.end()) return;
  throw Error("several ranks were given the same particles", "each rank gives its own share of a set",
              "give each particle on one rank, as maki.read() and maki.initial_conditions() do");
}

}  // namespace

void require_whole_sets(const std::string& what) {
  require_one_process(what + " is for", "each has its share of the set", "start Python without mpirun for it");
}

Snapshot checked(Snapshot set, std::vector<std::string>& notes, const Communicator& ranks) {
  check_header(set.header);
  require_shares(set, ranks);
  check_snapshot(set, "the given particles", notes, ranks);
  return set;
}

void sort_by_id(Snapshot& set) {
  const std::vector<std::size_t> order = order_of(set.ids);
  reorder(set.positions, order);
  reorder(set.velocities, order);
  reorder(set.masses, order);
  reorder(set.ids, order);
}

void bind_units(nb::module_& module) {
  const auto name = [](Dimension dimension) {
    return [dimension](const UnitSystem& units) { return unit_name(units, dimension); };
  };
  nb::class_<UnitSystem> type(module, "Units",
                              "What the numbers of a set are in; 1 everywhere and without h: pure numbers.");
  pickle(type, &UnitSystem::length_cgs, &UnitSystem::mass_cgs, &UnitSystem::velocity_cgs, &UnitSystem::with_h);
  type.def(
          "__init__",
          [](UnitSystem* self, double length, double mass, double velocity, bool with_h) {
            new (self) UnitSystem{length, mass, velocity, with_h};
          },
          "length_cgs"_a = UnitSystem{}.length_cgs, "mass_cgs"_a = UnitSystem{}.mass_cgs,
          "velocity_cgs"_a = UnitSystem{}.velocity_cgs, "with_h"_a = true)
      .def_rw("length_cgs", &UnitSystem::length_cgs, "The unit of length in cm.")
      .def_rw("mass_cgs", &UnitSystem::mass_cgs, "The unit of mass in g.")
      .def_rw("velocity_cgs", &UnitSystem::velocity_cgs, "The unit of velocity in cm/s.")
      .def_rw("with_h", &UnitSystem::with_h, "Whether lengths and masses carry 1/h.")
      .def_prop_ro("length", name(Dimension::kLength), "The name of the unit of length: 'Mpc/h'; '' of pure numbers.")
      .def_prop_ro("mass", name(Dimension::kMass), "'1e10 Msun/h'")
      .def_prop_ro("velocity", name(Dimension::kVelocity), "'km/s'")
      .def_prop_ro("pure", &pure_numbers, "Whether these are pure numbers.")
      .def_prop_ro("gravitational_constant", &UnitSystem::gravitational_constant, "Newton's constant in these units.")
      .def("__repr__", [](const UnitSystem& units) { return describe(units); });
}

void bind_snapshot(nb::module_& module) {
  module.def("require_whole_sets", &require_whole_sets, "what"_a);
  using Header = SnapshotHeader;
  nb::class_<Header> type(module, "Header", "What is known of a set besides its particles.");
  pickle(type, &Header::comoving, &Header::time, &Header::redshift, &Header::box_size, &Header::omega0,
         &Header::omega_lambda, &Header::omega_baryon, &Header::hubble, &Header::omega_radiation, &Header::w0,
         &Header::wa, &Header::gravitational_constant, &Header::units);
  type.def(nb::init<>())
      .def_rw("comoving", &SnapshotHeader::comoving, "Of a periodic box in an expanding universe; False: isolated.")
      .def_prop_rw(
          "time", [](const SnapshotHeader& header) { return header.time; },
          [](SnapshotHeader& header, double time) {
            header.time = time;
            if (header.comoving && time > 0) header.redshift = 1 / time - 1;
          },
          "Scale factor where comoving, which the redshift follows; else the time.")
      .def_prop_rw(
          "redshift", [](const SnapshotHeader& header) { return header.redshift; },
          [](SnapshotHeader& header, double redshift) {
            header.redshift = redshift;
            if (header.comoving) header.time = 1 / (1 + redshift);
          },
          "Where comoving, with the scale factor that belongs to it.")
      .def_rw("box_size", &SnapshotHeader::box_size, "Comoving side of the box; 0: none.")
      .def_rw("omega0", &SnapshotHeader::omega0, "All matter, today.")
      .def_rw("omega_lambda", &SnapshotHeader::omega_lambda)
      .def_rw("omega_baryon", &SnapshotHeader::omega_baryon, "0 where unknown.")
      .def_rw("omega_radiation", &SnapshotHeader::omega_radiation, "Photons and massless neutrinos, today.")
      .def_rw("w0", &SnapshotHeader::w0, "Of dark energy, w = w0 + wa (1 - a).")
      .def_rw("wa", &SnapshotHeader::wa)
      .def_rw("hubble", &SnapshotHeader::hubble, "h")
      .def_rw("gravitational_constant", &SnapshotHeader::gravitational_constant, "0: that of the units.")
      .def_rw("units", &SnapshotHeader::units)
      .def("newton", &SnapshotHeader::newton, "Newton's constant as it holds for the set.");
  nb::class_<Snapshot>(module, "Snapshot", nb::dynamic_attr(), "A set of particles at one time.")
      .def(
          "__init__",
          [](Snapshot* self, const Vectors<double>& positions, const Vectors<double>& velocities,
             const Numbers<double>& masses, const Ids& ids, const SnapshotHeader& header) {
            new (self) Snapshot(make_snapshot(positions, velocities, masses, ids, header));
          },
          "positions"_a, "velocities"_a, "masses"_a, "ids"_a = nb::none(), "header"_a)
      .def_rw("header", &Snapshot::header)
      .def_prop_rw(
          "positions", view_of(&Snapshot::positions),
          [](Snapshot& s, const Vectors<double>& values) { put(s.positions, values, "positions"); },
          "n x 3, in length units, comoving; the memory of the set itself.")
      .def_prop_rw(
          "velocities", view_of(&Snapshot::velocities),
          [](Snapshot& s, const Vectors<double>& values) { put(s.velocities, values, "velocities"); },
          "n x 3, peculiar, a dx/dt in velocity units.")
      .def_prop_rw(
          "masses", view_of(&Snapshot::masses),
          [](Snapshot& s, const Numbers<double>& values) { put(s.masses, values, "masses"); }, "n, in mass units.")
      .def_prop_rw("ids", view_of(&Snapshot::ids),
                   [](Snapshot& s, const Numbers<std::uint64_t>& values) { put(s.ids, values, "ids"); })
      .def("sort", &sort_by_id, "Puts the particles into the order of their ids.")
      .def("copy", [](const Snapshot& set) { return Snapshot(set); })
      .def("__len__", &Snapshot::size)
      .def("__repr__", [](const Snapshot& set) { return describe(set); });
}

}  // namespace maki::python
