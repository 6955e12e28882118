// What Maki's HDF5 files have beside their numbers, so that any reader finds units and origin: the attributes of GADGET-4
// (a_scaling ... to_cgs), of GADGET-3 as EAGLE has it (VarDescription ... CGSConversionFactor), and SWIFT's /Units. yt
// takes units from a file only where it also finds GADGET-3's /Constants and Header/Time_GYR.
#pragma once

#include "src/io/hdf5_file.hpp"
#include "src/io/snapshot.hpp"

namespace maki::gadget {

// Attributes of /Header and /Parameters: box, cosmology, time in Gyr.
void write_cosmology(hid_t group, const SnapshotHeader& header);

// The groups /Parameters, /Units, /Constants, and /Maki with the provenance.
void write_metadata(hid_t file, const SnapshotHeader& header, const Provenance& provenance);

// Exponents and factor by which a dataset's numbers become physical cgs: value * to_cgs * a^a h^h, to_cgs = length^l
// mass^m velocity^v.
struct Scaling {
  const char* description;
  double a, h, length, mass, velocity;
};

void write_scaling(hid_t dataset, const Scaling& scaling, const UnitSystem& units);

}  // namespace maki::gadget
