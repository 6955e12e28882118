// Reading particle sets, over ranks.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "host/comm/communicator.hpp"
#include "host/comm/exact_sum.hpp"
#include "kernels/error.hpp"
#include "src/io/check_snapshot.hpp"
#include "src/io/gadget.hpp"
#include "src/io/snapshot_io.hpp"

namespace maki {

namespace {

// The texts of all ranks, each once, in the order of ranks.
std::vector<std::string> merge_notes(const Communicator& ranks, const std::vector<std::string>& notes) {
  std::vector<std::string> merged;
  for (const std::string& text : gather_texts(ranks, fmt::format("{}", fmt::join(notes, "\n")))) {
    for (std::size_t begin = 0, end = 0; begin < text.size(); begin = end + 1) {
      end = std::min(text.find('\n', begin), text.size());
      const std::string note = text.substr(begin, end - begin);
      if (std::find(merged.begin(), merged.end(), note) == merged.end()) merged.push_back(note);
    }
  }
  return merged;
}

void make_room(Snapshot& s, std::uint64_t n, const std::string& file) {
  try {
    s.positions.resize(n);
    s.velocities.resize(n);
    s.masses.resize(n);
    s.ids.resize(n);
  } catch (const std::exception&) {  // std::bad_alloc, std::length_error
    throw Error(fmt::format("cannot read '{}'", file), fmt::format("no memory for the {} particles of its header", n),
                "use a machine with more memory, or make the file again if it cannot hold that many");
  }
}

std::uint64_t rows_of(const gadget::FileSet& set) {
  std::uint64_t n = 0;
  for (const auto& header : set.headers) n += gadget::sum(header.counts);
  return n;
}

// Reads this rank's share of all rows; opens only files with rows of it.
void read_particles(const gadget::FileSet& set, Snapshot& s, std::vector<std::string>& notes,
                    const Communicator& ranks) {
  const std::uint64_t n = rows_of(set);
  const std::uint64_t begin = share_begin(n, ranks.rank(), ranks.size());
  const std::uint64_t end = share_begin(n, ranks.rank() + 1, ranks.size());
  std::vector<std::string> own_notes;
  all_succeed(ranks, [&] { make_room(s, end - begin, set.files[0]); });
  all_succeed(ranks, [&] {
    std::uint64_t file_begin = 0;
    for (std::size_t i = 0; i < set.files.size(); ++i) {
      const std::uint64_t file_rows = gadget::sum(set.headers[i].counts);
      const std::uint64_t first = std::max(begin, file_begin), last = std::min(end, file_begin + file_rows);
      const gadget::Rows rows{first - file_begin, last - file_begin, first, first - begin};
      file_begin += file_rows;
      if (first >= last) continue;
      if (set.headers[i].format.ends_with("HDF5")) {
        gadget::read_hdf5_particles(set.files[i], set.headers[i], rows, s, own_notes);
      } else {
        gadget::read_binary_particles(set.files[i], set.headers[i], rows, s);
      }
    }
  });
  notes = merge_notes(ranks, own_notes);
}

// Total mass over all ranks, exactly summed: the same for any number of ranks.
double total_mass(const Snapshot& s, const Communicator& ranks) {
  ExactSum mass;
  for (const float m : s.masses) mass.add(m);
  ExactSum::over_ranks(ranks, {&mass, 1});
  return mass.value();
}

}  // namespace

std::uint64_t count_particles(const std::string& path, const Communicator& ranks) {
  return rows_of(gadget::read_set_headers(path, ranks));
}

Snapshot read_snapshot(const std::string& path, ReadReport* report, const Communicator& ranks) {
  ReadReport own;
  ReadReport& r = report ? *report : own;
  r = {};
  gadget::FileSet set = gadget::read_set_headers(path, ranks);
  gadget::FileHeader& header = set.headers[0];
  if (header.light_cone)
    throw Error(fmt::format("'{}' is a shell of a light cone", set.files[0]),
                "its particles are of many times, and in many images of the box",
                "read it with h5py (docs/lightcones.md), or give a snapshot of the box");
  r.files = set.files;
  r.format = header.format;
  r.counts = header.totals;
  Snapshot s;
  read_particles(set, s, r.notes, ranks);
  const double mass = total_mass(s, ranks);
  gadget::complete_header(header, mass, r.notes);
  s.header = header.set;
  r.selection = header.selection;
  if (s.header.comoving && header.over_root_a) {
    const float factor = static_cast<float>(std::sqrt(s.header.time));
    for (auto& v : s.velocities) v = {v[0] * factor, v[1] * factor, v[2] * factor};
  }
  check_snapshot(s, r.files[0], r.notes, ranks);
  r.mean_density_ratio = gadget::mean_density_ratio(s.header, mass);
  if (const std::string part = text_of(header.selection, gadget::sum(header.totals)); !part.empty()) {
    r.notes.push_back(part);
  } else if (r.mean_density_ratio > 0 && std::abs(r.mean_density_ratio - 1) > 1e-3) {
    r.notes.push_back(fmt::format("the mean density is {:.6g} times what Omega0 = {} asks for", r.mean_density_ratio,
                                  s.header.omega0));
  }
  return s;
}

}  // namespace maki
