// Names of files as they travel: relative, with '/' between the parts, and nothing that could lead elsewhere.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#include "wan/net/printable.hpp"

namespace maki::wan::copy {

inline constexpr std::size_t kMaxPath = 4000;  // bytes of a whole name
inline constexpr std::size_t kMaxPart = 255;   // of one part of it

// Something is wrong with one file or folder: it is reported, and the others go on.
class FileProblem : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};
// "cannot open 'a/b' (No such file or directory)"
[[noreturn]] void throw_problem(const std::string& what, std::string_view path, int error_number);

// Throws FileProblem unless `path` is relative, has no empty part, no "." or "..", no NUL, and no part with a name that
// is kept for unfinished files.
void check_path(std::string_view path);

// What a user wrote of a remote path, as a checked relative one: leading, trailing and double slashes and "." are
// dropped, so "/" is "". Throws FileProblem for "..", and whatever check_path() refuses.
std::string relative_path(std::string_view given);

// An unfinished `name` is kept beside it as ".name.maki-part" (a checksum of the name where that would be too long).
std::string part_name(std::string_view name);
bool is_part_name(std::string_view name);

std::string_view parent_of(std::string_view path);  // "" for a name without a slash
std::string_view last_of(std::string_view path);
std::string join(std::string_view folder, std::string_view name);  // either may be empty

}  // namespace maki::wan::copy
