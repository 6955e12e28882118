// The lines of `maki info`, and the files among those that Maki writes that hold no particles.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace maki {

class DescriptionLines {
 public:
  template <class... Arguments>
  void add(const std::string& label, fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    text_.push_back(fmt::format("{:<12} {}", label, fmt::format(format, std::forward<Arguments>(arguments)...)));
  }
  std::vector<std::string> take() { return std::move(text_); }
  void add_line(const std::string& line) { text_.push_back(line); }
  void add_block(const std::string& text) {
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t end = std::min(text.find('\n', begin), text.size());
      text_.push_back("  " + text.substr(begin, end - begin));
      begin = end + 1;
    }
  }
  // Name and size.
  void add_file(const std::string& path, std::size_t more_files, double bytes);

 private:
  std::vector<std::string> text_;
};

// Describes a map of the sky (FITS), a picture (PNG) or a table (text), told by their first bytes; false where the file is none
// of them. Throws Error for a restart and for other text, which is there to be read as it stands, and for files that are cut off.
bool describe_plain_file(const std::string& path, DescriptionLines& lines);

}  // namespace maki
