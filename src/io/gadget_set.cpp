// The headers of a set of files, for all ranks.
#include <fmt/format.h>

#include <cstring>

#include "host/comm/agree.hpp"
#include "kernels/error.hpp"
#include "src/io/gadget.hpp"

namespace maki::gadget {

namespace {

// Throws Error where headers of one set differ in anything that the reader relies on.
void check_agreement(const std::vector<FileHeader>& headers, const std::vector<std::string>& files) {
  std::array<std::uint64_t, kTypes> found{};
  for (std::size_t i = 0; i < headers.size(); ++i) {
    if (headers[i].files != headers[0].files || headers[i].totals != headers[0].totals ||
        headers[i].set.time != headers[0].set.time) {
      throw Error(fmt::format("'{}' and '{}' do not belong together", files[0], files[i]),
                  "their headers differ in time, number of files or number of particles",
                  "put all files of one snapshot, and no other, into one directory");
    }
    for (std::size_t type = 0; type < kTypes; ++type) found[type] += headers[i].counts[type];
  }
  if (headers.size() > 1 && found != headers[0].totals) {
    throw Error(fmt::format("the snapshot '{}' is incomplete", files[0]),
                fmt::format("its {} files hold {} particles, the header promises {}", files.size(), sum(found),
                            sum(headers[0].totals)),
                "copy or make the set again");
  }
}

// The parts of a header that all ranks need, as bytes.
struct PackedHeader {
  std::array<std::uint64_t, kTypes> counts, totals;
  std::array<double, kTypes> mass_table;
  SnapshotHeader set;
  int files;
  bool has_units, says_comoving, comoving;
  char format[64];
};
static_assert(std::is_trivially_copyable_v<PackedHeader>);

PackedHeader pack(const FileHeader& header) {
  PackedHeader packed{header.counts,
                      header.totals,
                      header.mass_table,
                      header.set,
                      header.files,
                      header.has_units,
                      header.comoving.has_value(),
                      header.comoving.value_or(false),
                      {}};
  header.format.copy(packed.format, sizeof(packed.format) - 1);
  return packed;
}

FileHeader unpack(const PackedHeader& packed) {
  FileHeader header;
  header.counts = packed.counts;
  header.totals = packed.totals;
  header.mass_table = packed.mass_table;
  header.files = packed.files;
  header.set = packed.set;
  header.has_units = packed.has_units;
  if (packed.says_comoving) header.comoving = packed.comoving;
  header.format = packed.format;
  return header;
}

}  // namespace

FileSet read_set_headers(const std::string& path, const Communicator& ranks) {
  std::vector<PackedHeader> packed;
  std::string names;
  root_succeeds(ranks, [&] {
    const std::vector<std::string> files = find_files(path);
    std::vector<FileHeader> headers;
    for (const auto& file : files) headers.push_back(read_header(file));
    check_agreement(headers, files);
    for (const auto& header : headers) packed.push_back(pack(header));
    for (const auto& file : files) names += file + '\0';
  });
  names = broadcast_text(ranks, names);
  FileSet set;
  for (std::size_t begin = 0; begin < names.size(); begin += set.files.back().size() + 1) {
    set.files.emplace_back(names.c_str() + begin);
  }
  packed.resize(set.files.size());
  ranks.broadcast(packed.data(), packed.size() * sizeof(PackedHeader), 0);
  for (const auto& one : packed) set.headers.push_back(unpack(one));
  return set;
}

}  // namespace maki::gadget
