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

}  // namespace maki
