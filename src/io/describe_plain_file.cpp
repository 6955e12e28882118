// What files say of themselves that are neither HDF5 nor GADGET's binary: maps, pictures, tables.
#include <fitsio.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <sstream>
#include <string_view>

#include "kernels/error.hpp"
#include "src/io/description.hpp"

namespace maki {

namespace {

namespace fs = std::filesystem;

Error cut_off(const std::string& path, const char* kind) {
  return Error(fmt::format("cannot read '{}'", path), fmt::format("the {} is cut off", kind), "copy or make it again");
}

// ---- FITS, by CFITSIO ----------------------------------------------------------------------------------------------------------

struct Card {
  std::string name, value, comment;
};

std::string trimmed(const std::string& text) {
  const auto begin = text.find_first_not_of(' ');
  return begin == std::string::npos ? "" : text.substr(begin, text.find_last_not_of(' ') + 1 - begin);
}

struct Close {
  void operator()(fitsfile* file) const {
    int status = 0;
    fits_close_file(file, &status);
  }
};

// The cards of the present header.
std::vector<Card> cards_of(fitsfile* file, int& status) {
  int count = 0;
  fits_get_hdrspace(file, &count, nullptr, &status);
  std::vector<Card> cards;
  for (int i = 1; i <= count && status == 0; ++i) {
    char name[FLEN_KEYWORD] = {}, value[FLEN_VALUE] = {}, comment[FLEN_COMMENT] = {};
    fits_read_keyn(file, i, name, value, comment, &status);
    std::string text = value;
    if (text.size() > 1 && text.front() == '\'') text = trimmed(text.substr(1, text.size() - 2));
    cards.push_back({name, text, comment});
  }
  return cards;
}

std::string value_of(const std::vector<Card>& cards, const std::string& name) {
  for (const Card& card : cards)
    if (card.name == name) return card.value;
  return "";
}

std::uint64_t number_of(const std::vector<Card>& cards, const std::string& name) {
  std::uint64_t number = 0;
  for (const char digit : value_of(cards, name)) {
    if (digit < '0' || digit > '9' || number > 1'000'000'000'000) return 0;
    number = 10 * number + static_cast<std::uint64_t>(digit - '0');
  }
  return number;
}

// Cards of the pixels and of the table's layout, which other lines tell.
bool is_told(const std::string& name) {
  for (const char* one :
       {"XTENSION", "BITPIX", "NAXIS", "PCOUNT", "GCOUNT", "TFIELDS", "TTYPE", "TFORM", "TUNIT", "EXTNAME", "FIRSTPIX",
        "LASTPIX", "COMMENT", "PIXTYPE", "ORDERING", "NSIDE", "OBJECT", "INDXSCHM", "END"})
    if (name.starts_with(one)) return true;
  return name.empty();
}

void describe_table(const std::vector<Card>& cards, DescriptionLines& lines) {
  const std::uint64_t nside = number_of(cards, "NSIDE");
  if (value_of(cards, "PIXTYPE") == "HEALPIX")
    lines.add("map", "HEALPix, {} order, {} pixels (NSIDE {})", value_of(cards, "ORDERING"), 12 * nside * nside, nside);
  lines.add("rows", "{}", number_of(cards, "NAXIS2"));
  for (std::uint64_t i = 1; i <= std::min<std::uint64_t>(number_of(cards, "TFIELDS"), 999); ++i) {
    const std::string unit = value_of(cards, fmt::format("TUNIT{}", i));
    lines.add("column", "{:<28} {:<8} {}", value_of(cards, fmt::format("TTYPE{}", i)),
              value_of(cards, fmt::format("TFORM{}", i)), unit);
  }
  for (const Card& card : cards)
    if (!is_told(card.name)) lines.add(card.name, "{}{}{}", card.value, card.comment.empty() ? "" : "  ", card.comment);
}

void describe_fits(const std::string& path, DescriptionLines& lines) {
  int status = 0, axes = 0, count = 0;
  fitsfile* opened = nullptr;
  fits_open_diskfile(&opened, path.c_str(), READONLY, &status);
  const std::unique_ptr<fitsfile, Close> file(opened);
  if (status == 0) fits_get_img_dim(opened, &axes, &status);
  if (status == 0 && axes > 0) return lines.add("format", "FITS, an image");
  if (status == 0) fits_get_num_hdus(opened, &count, &status);
  if (status != 0 || count < 2) throw cut_off(path, "FITS file");
  LONGLONG end = 0;
  fits_movabs_hdu(opened, 2, nullptr, &status);
  fits_get_hduaddrll(opened, nullptr, nullptr, &end, &status);
  const std::vector<Card> cards = status == 0 ? cards_of(opened, status) : std::vector<Card>{};
  if (status != 0 || fs::file_size(path) < static_cast<std::uint64_t>(end)) throw cut_off(path, "FITS file");
  lines.add("format", "FITS, a binary table{}", value_of(cards, "PIXTYPE") == "HEALPIX" ? ": a map of the sky" : "");
  describe_table(cards, lines);
}

// ---- PNG: chunks of a length, a name, the bytes and a checksum -----------------------------------------------------------------

constexpr std::string_view kPng = "\x89PNG\r\n\x1a\n";
constexpr std::uint32_t kLongestText = 1 << 20;

std::optional<std::uint32_t> read_number(std::ifstream& file) {
  std::array<unsigned char, 4> bytes{};
  if (!file.read(reinterpret_cast<char*>(bytes.data()), 4)) return std::nullopt;
  return std::uint32_t{bytes[0]} << 24 | std::uint32_t{bytes[1]} << 16 | std::uint32_t{bytes[2]} << 8 | bytes[3];
}

void describe_text_chunk(const std::string& text, DescriptionLines& lines) {
  const auto end = text.find('\0');
  if (end == std::string::npos) return;
  const std::string label = text.substr(0, end), value = text.substr(end + 1);
  if (value.find('\n') == std::string::npos) return lines.add(label, "{}", value);
  lines.add_line(label);
  lines.add_block(value);
}

void describe_png(const std::string& path, DescriptionLines& lines) {
  std::ifstream file(path, std::ios::binary);
  file.seekg(kPng.size());
  while (const auto length = read_number(file)) {
    std::string name(4, ' ');
    file.read(name.data(), 4);
    const std::streamoff next = std::streamoff{file.tellg()} + *length + 4;
    if (name == "IEND") return;
    if (name == "IHDR") {
      const auto width = read_number(file), height = read_number(file);
      lines.add("format", "PNG, a picture of {} x {} pixels", width.value_or(0), height.value_or(0));
    } else if (name == "tEXt" && *length <= kLongestText) {
      std::string text(*length, ' ');
      file.read(text.data(), *length);
      describe_text_chunk(text, lines);
    }
    file.seekg(next);
  }
  throw cut_off(path, "picture");
}

// ---- tables: comments, then rows of numbers ------------------------------------------------------------------------------------

std::size_t columns_of(const std::string& row) {
  std::istringstream words(row);
  std::size_t columns = 0;
  for (std::string word; words >> word; ++columns) {
    char* end = nullptr;
    std::strtod(word.c_str(), &end);
    if (*end != '\0') return 0;
  }
  return columns;
}

// False where this is other text.
bool describe_text_table(const std::string& path, DescriptionLines& lines) {
  std::ifstream file(path);
  std::vector<std::string> comments;
  std::size_t rows = 0, columns = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('#')) {
      comments.push_back(line.substr(std::min<std::size_t>(line.size(), line.starts_with("# ") ? 2 : 1)));
      continue;
    }
    if (trimmed(line).empty()) continue;
    const std::size_t found = columns_of(line);
    if (found == 0 || (rows > 0 && found != columns)) return false;
    columns = found;
    ++rows;
  }
  if (rows == 0) return false;
  lines.add("format", "text, a table of numbers");
  lines.add("rows", "{}", rows);
  lines.add("columns", "{}{}", columns, comments.empty() ? "" : ": " + trimmed(comments.back()));
  if (!comments.empty()) comments.pop_back();
  for (const std::string& comment : comments) lines.add_line(comment);
  return true;
}

// Whether the beginning is what people read: no bytes that steer anything but lines and tabs.
bool is_text(const std::string& beginning) {
  return !beginning.empty() && std::all_of(beginning.begin(), beginning.end(), [](unsigned char c) {
    return c >= 0x20 ? c != 0x7f : c == '\n' || c == '\t' || c == '\r';
  });
}

void refuse_restart(const std::string& path) {
  const fs::path folder = fs::is_directory(path) ? fs::path(path) : fs::path(path).parent_path();
  if (!fs::exists(folder / "complete.toml")) return;
  throw Error(fmt::format("'{}' is {}a restart", path, fs::is_directory(path) ? "" : "part of "),
              "it holds the state of a run's memory, which is no snapshot",
              fmt::format("'maki resume' goes on from it; '{}' is text and has its step and configuration",
                          (folder / "complete.toml").string()));
}

}  // namespace

void DescriptionLines::add_file(const std::string& path, std::size_t more_files, double bytes) {
  add("file", "{}{}, {:.1f} MiB", path, more_files > 0 ? fmt::format(" and {} more", more_files) : "",
      bytes / 1048576.0);
}

bool describe_plain_file(const std::string& path, DescriptionLines& lines) {
  std::error_code unreadable;
  if (fs::exists(path, unreadable)) refuse_restart(path);
  if (!fs::is_regular_file(path, unreadable)) return false;
  std::ifstream file(path, std::ios::binary);
  std::string beginning(512, '\0');
  file.read(beginning.data(), static_cast<std::streamsize>(beginning.size()));
  beginning.resize(static_cast<std::size_t>(file.gcount()));
  const bool fits = beginning.starts_with("SIMPLE  ="), png = beginning.starts_with(kPng);
  if (!fits && !png && !is_text(beginning)) return false;
  lines.add_file(path, 0, static_cast<double>(fs::file_size(path)));
  if (fits) describe_fits(path, lines);
  if (png) describe_png(path, lines);
  if (fits || png || describe_text_table(path, lines)) return true;
  throw Error(fmt::format("there is nothing to tell of '{}'", path), "it is text, and no table of numbers",
              "read it as it is");
}

}  // namespace maki
