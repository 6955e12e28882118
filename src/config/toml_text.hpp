// TOML as text, with the errors of the application.
#pragma once

#include <fmt/format.h>
#include <toml++/toml.h>

#include <string>

#include "kernels/error.hpp"

namespace maki {

// `name` stands for the file in messages. Throws Error, with the line, where the text is no TOML.
inline toml::table parse_toml(const std::string& text, const std::string& name) {
  try {
    return toml::parse(text, name);
  } catch (const toml::parse_error& error) {
    throw Error(fmt::format("{} line {}: not valid TOML", name, error.source().begin.line),
                std::string(error.description()));
  }
}

// Whether TOML can hold a text. Names of files may be of any bytes.
inline bool is_utf8(std::string text) {
  for (char& byte : text)
    if ((static_cast<unsigned char>(byte) & 0x80u) == 0) byte = ' ';
  try {
    (void)toml::parse("#" + text);
    return true;
  } catch (const toml::parse_error&) {
    return false;
  }
}

}  // namespace maki
