#include <fmt/format.h>

#include "kernels/error.hpp"
#include "src/cli/commands.hpp"
#include "src/cli/device_set.hpp"

namespace maki {
namespace {

struct Options {
  std::string snapshot, output;
  std::string axis = "z", width, depth;
  PictureOptions picture;
  bool overwrite = false;
};

double length_of(const std::string& text, const SnapshotHeader& header) {
  if (text.empty()) return 0;
  const double length =
      in_units(parse_quantity(text, Dimension::kLength), Dimension::kLength, "", header.units, header.hubble);
  if (!(length > 0)) throw Error(fmt::format("'{}' is no length", text), "", "give one above 0, such as \"10 Mpc/h\"");
  return length;
}

void write_picture(const Options& given) {
  const LoadedSet loaded(given.snapshot);
  const DeviceSet set = loaded.set();
  PictureOptions picture = given.picture;
  picture.axis = given.axis[0] - 'x';
  picture.width = length_of(given.width, set.header);
  picture.depth = length_of(given.depth, set.header);
  if (picture.width == 0 && !set.frame.periodic)
    picture.width = set.frame.side / 2;  // the middle half, where the set lies
  write_picture_of(loaded.ranks(), set, picture, given.output, loaded.provenance(), given.overwrite);
  if (loaded.ranks().rank() == 0) fmt::print("wrote {}\n", given.output);
}

}  // namespace

void add_image_command(CLI::App& program) {
  auto options = std::make_shared<Options>();
  CLI::App* command =
      add_command(program, "image", "Draw the projected density of a snapshot as PNG",
                  "maki image output/quickstart/snapshot_003.hdf5 -o slab.png --depth \"5 Mpc/h\" --axis x", options,
                  write_picture);
  command->add_option("SNAPSHOT", options->snapshot, "HDF5 or GADGET binary")->required();
  command->add_option("-o,--output", options->output, "PNG file to write")->required();
  command->add_option("--pixels", options->picture.pixels, "along a side")
      ->check(CLI::Range(16, 16384))
      ->capture_default_str();
  command->add_option("--axis", options->axis, "line of sight")
      ->check(CLI::IsMember({"x", "y", "z"}))
      ->capture_default_str();
  command->add_option("--width", options->width, "of the part about the middle that is shown; default: all");
  command->add_option("--depth", options->depth, "of the slab about the middle that is projected; default: all");
  command->add_option("--low", options->picture.low, "lower end of the colour scale, in units of the mean");
  command->add_option("--high", options->picture.high, "upper end");
  command->add_flag("--overwrite", options->overwrite, "replace the file where it exists");
}

}  // namespace maki
