// What files say of themselves that are neither HDF5 nor GADGET's binary: maps, pictures, tables.
#include <array>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
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

// ---- FITS: headers of 36 cards of 80 characters each, and data in between, all in blocks ---------------------------------------

constexpr std::size_t kBlock = 2880, kCard = 80;

struct Card {
  std::string name, value, comment;
};

std::string trimmed(const std::string& text) {
  const auto begin = text.find_first_not_of(' ');
  return begin == std::string::npos ? "" : text.substr(begin, text.find_last_not_of(' ') + 1 - begin);
}

Card card_of(const std::string& text) {
  Card card{trimmed(text.substr(0, 8)), "", ""};
  if (text.substr(8, 2) != "= ") return card;
  std::size_t end = 10;
  if (const auto quote = text.find_first_not_of(' ', 10); quote != std::string::npos && text[quote] == '\'') {
    end = std::min(text.find('\'', quote + 1), text.size());
    card.value = trimmed(text.substr(quote + 1, end - quote - 1));
  } else {
    card.value = trimmed(text.substr(10, text.find('/', 10) - 10));
  }
  if (const auto slash = text.find('/', end); slash != std::string::npos)
    card.comment = trimmed(text.substr(slash + 1));
  return card;
}

// The cards of one header, up to END.
std::vector<Card> read_cards(std::ifstream& file, const std::string& path) {
  std::vector<Card> cards;
  for (std::array<char, kBlock> block{}; file.read(block.data(), kBlock);) {
    for (std::size_t at = 0; at < kBlock; at += kCard) {
      cards.push_back(card_of({block.data() + at, kCard}));
      if (cards.back().name == "END") return cards;
    }
  }
  throw cut_off(path, "FITS header");
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
  std::ifstream file(path, std::ios::binary);
  const std::vector<Card> first = read_cards(file, path);
  if (value_of(first, "NAXIS") != "0") {
    lines.add("format", "FITS, an image");
    return;
  }
  const std::vector<Card> cards = read_cards(file, path);
  lines.add("format", "FITS, a binary table{}", value_of(cards, "PIXTYPE") == "HEALPIX" ? ": a map of the sky" : "");
  describe_table(cards, lines);
  const auto begin = static_cast<std::uint64_t>(file.tellg());
  if (fs::file_size(path) < begin + number_of(cards, "NAXIS1") * number_of(cards, "NAXIS2"))
    throw cut_off(path, "FITS table");
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
    const std::size_t found = columns_of(line);
    if (found == 0 || (rows > 0 && found != columns)) return false;
    columns = found;
    ++rows;
  }
  if (rows == 0 || comments.empty()) return false;
  lines.add("format", "text, a table of numbers");
  lines.add("rows", "{}", rows);
  lines.add("columns", "{}: {}", columns, trimmed(comments.back()));
  comments.pop_back();
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
