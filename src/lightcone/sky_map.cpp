#include "src/lightcone/sky_map.hpp"

#include <chealpix.h>
#include <fitsio.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "host/comm/communicator.hpp"
#include "kernels/error.hpp"
#include "src/io/safe_file.hpp"

namespace maki {

double sky_quantum(float heaviest, double most) {
  constexpr int kMantissa = 24;  // of a float: masses of the largest exponent are exact
  const int shed = static_cast<int>(std::ceil(std::log2(std::max(most, 4.0)))) - (64 - kMantissa);  // bits; spare: < 0
  return std::ldexp(1.0, (heaviest > 0 ? std::ilogb(heaviest) : 0) - (kMantissa - 1) + shed);
}

std::uint64_t sky_pixel(int nside, const std::array<double, 3>& direction) {
  std::int64_t pixel = 0;
  vec2pix_ring64(nside, direction.data(), &pixel);
  return static_cast<std::uint64_t>(pixel);
}

std::uint64_t sky_pixels(int nside) {
  return 12 * static_cast<std::uint64_t>(nside) * static_cast<std::uint64_t>(nside);
}

void join_pixels(std::vector<PixelCount>& counts) {
  std::sort(counts.begin(), counts.end(), [](PixelCount a, PixelCount b) { return a.pixel < b.pixel; });
  std::size_t kept = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (kept > 0 && counts[kept - 1].pixel == counts[i].pixel)
      counts[kept - 1].count += counts[i].count;
    else
      counts[kept++] = counts[i];
  }
  counts.resize(kept);
}

void PixelCounts::join() {
  join_pixels(counts_);
  limit_ = std::max(many_, 2 * counts_.size());
  counts_.reserve(limit_);
  ++joinings_;
}

std::vector<PixelCount> PixelCounts::take() {
  if (joinings_ > 0) join_pixels(counts_);
  limit_ = many_, joinings_ = 0;
  return std::exchange(counts_, {});
}

SkyMap::SkyMap(const Communicator& ranks, int nside)
    : ranks_(ranks), nside_(nside), share_(share_of(sky_pixels(nside), ranks.rank(), ranks.size())),
      counts_(share_.size()) {}

std::vector<std::vector<PixelCount>> SkyMap::by_holder(const std::vector<PixelCount>& found) const {
  std::vector<std::size_t> sizes(static_cast<std::size_t>(ranks_.size()));
  for (const PixelCount& one : found) ++sizes[holder_of(one.pixel)];
  std::vector<std::vector<PixelCount>> out(sizes.size());
  for (std::size_t r = 0; r < sizes.size(); ++r) out[r].reserve(sizes[r]);
  for (const PixelCount& one : found) out[holder_of(one.pixel)].push_back(one);
  return out;
}

void SkyMap::add(std::vector<PixelCount> found) {
  std::vector<std::vector<PixelCount>> out = by_holder(found);
  std::vector<PixelCount>().swap(found);  // frees it
  for (const std::vector<PixelCount>& from : exchange_all(ranks_, std::move(out)))
    for (const PixelCount& one : from) counts_[one.pixel - share_.first] += one.count;
}

// HEALPix maps as FITS files, by CFITSIO.

namespace {

// Pixels of a row of the table, as in HEALPix's own programs where possible.
std::uint64_t row_pixels(int nside) { return sky_pixels(nside) % 1024 == 0 ? 1024 : 1; }

struct Close {
  void operator()(fitsfile* file) const {
    int ignored = 0;
    fits_close_file(file, &ignored);
  }
};

std::string error_text(int status) {
  char text[FLEN_STATUS] = "";
  fits_get_errstatus(status, text);
  fits_clear_errmsg();
  return fmt::format("CFITSIO: {}", text);
}

// The file while it is written, under its temporary name.
class FitsTable {
 public:
  FitsTable(const SkyMapFile& file, int nside)
      : path_(file.path), rows_(sky_pixels(nside) / row_pixels(nside)), row_(row_pixels(nside)),
        safe_(file.path, file.overwrite) {
    int status = 0;
    fitsfile* made = nullptr;
    std::filesystem::remove(safe_.temporary_path());  // CFITSIO makes its files itself
    fits_create_diskfile(&made, safe_.temporary_path().c_str(), &status);
    fits_.reset(made);
    check(status);
    std::string name = "MASS", form = fmt::format("{}D", row_), unit = file.mass_unit, extension = "HEALPIX";
    char *names[] = {name.data()}, *forms[] = {form.data()}, *units[] = {unit.data()};
    fits_create_tbl(fits_.get(), BINARY_TBL, static_cast<LONGLONG>(rows_), 1, names, forms, units, extension.c_str(),
                    &status);
    check(status);
    write_pixelisation(nside);
    for (const FitsKey& key : file.keys) write_key(key);
  }

  void write(std::uint64_t first, std::vector<double> values) {
    int status = 0;
    fits_write_col(fits_.get(), TDOUBLE, 1, static_cast<LONGLONG>(first / row_) + 1,
                   static_cast<LONGLONG>(first % row_) + 1, static_cast<LONGLONG>(values.size()), values.data(),
                   &status);
    check(status);
  }
  void commit() {
    int status = 0;
    fits_close_file(fits_.release(), &status);
    check(status);
    PositionedFile(safe_.temporary_path(), path_).finish();  // CFITSIO does not flush it to the disk
    safe_.commit();
  }

 private:
  void write_pixelisation(int nside) {
    write_key({"PIXTYPE", "HEALPix pixelisation", 0, "HEALPIX"});
    write_key({"ORDERING", "pixel ordering scheme", 0, "RING"});
    write_integer("NSIDE", nside, "resolution parameter");
    write_integer("FIRSTPIX", 0, "first pixel (0 based)");
    write_integer("LASTPIX", static_cast<LONGLONG>(sky_pixels(nside)) - 1, "last pixel (0 based)");
    write_key({"INDXSCHM", "indexing: all pixels in order", 0, "IMPLICIT"});
    write_key({"OBJECT", "sky coverage", 0, "FULLSKY"});
  }
  void write_integer(const char* name, LONGLONG value, const char* comment) {
    int status = 0;
    fits_update_key(fits_.get(), TLONGLONG, name, &value, comment, &status);
    check(status);
  }
  void write_key(const FitsKey& key) {
    int status = 0;
    double value = key.value;
    std::string text = key.text;
    if (text.empty())
      fits_update_key(fits_.get(), TDOUBLE, key.name.c_str(), &value, key.comment.c_str(), &status);
    else
      fits_update_key(fits_.get(), TSTRING, key.name.c_str(), text.data(), key.comment.c_str(), &status);
    check(status);
  }
  void check(int status) const {
    if (status == 0) return;
    throw Error(fmt::format("cannot write '{}'", path_), error_text(status),
                "see whether the disk is full; nothing was left behind");
  }

  std::string path_;
  std::uint64_t rows_, row_;
  SafeFile safe_;
  std::unique_ptr<fitsfile, Close> fits_;  // destroyed before the temporary file
};

std::vector<double> masses(const std::vector<std::uint64_t>& counts, double quantum) {
  std::vector<double> values;
  values.reserve(counts.size());
  for (const std::uint64_t count : counts) values.push_back(static_cast<double>(count) * quantum);
  return values;
}

// The counts of a rank, on rank 0. Collective.
std::vector<std::uint64_t> share_from(const SkyMap& map, int rank, const Communicator& ranks) {
  if (rank == 0) return map.counts();
  const bool mine = ranks.rank() == rank;
  return std::move(
      gather_lists(ranks, mine ? map.counts() : std::vector<std::uint64_t>())[static_cast<std::size_t>(rank)]);
}

}  // namespace

std::vector<double> sky_map_numbers(const std::string& path, const std::vector<std::string>& names) {
  int status = 0;
  fitsfile* opened = nullptr;
  fits_open_diskfile(&opened, path.c_str(), READONLY, &status);  // others give brackets in a name a meaning
  const std::unique_ptr<fitsfile, Close> file(opened);
  fits_movabs_hdu(file.get(), 2, nullptr, &status);
  std::vector<double> numbers(names.size());
  for (std::size_t i = 0; i < names.size(); ++i)
    fits_read_key(file.get(), TDOUBLE, names[i].c_str(), &numbers[i], nullptr, &status);
  if (status == 0) return numbers;
  throw Error(fmt::format("cannot read '{}'", path), error_text(status));
}

void write_sky_map(const SkyMapFile& file, const SkyMap& map, const Communicator& ranks) {
  std::optional<FitsTable> table;  // on rank 0
  root_succeeds(ranks, [&] { table.emplace(file, map.nside()); });
  for (int rank = 0; rank < ranks.size(); ++rank) {
    const std::vector<std::uint64_t> counts = share_from(map, rank, ranks);
    root_succeeds(ranks, [&] {
      table->write(share_begin(sky_pixels(map.nside()), rank, ranks.size()), masses(counts, file.quantum));
    });
  }
  root_succeeds(ranks, [&] { table->commit(); });
}

}  // namespace maki
