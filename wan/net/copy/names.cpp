#include "wan/net/copy/names.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <cstring>

namespace maki::wan::copy {
namespace {

constexpr std::string_view kPartEnd = ".maki-part";

[[noreturn]] void refuse(std::string_view path, const char* reason) {
  throw FileProblem(fmt::format("'{}' is refused ({})", printable(path, 200), reason));
}

void check_one(std::string_view path, std::string_view part) {
  if (part.empty()) refuse(path, "a name has to be relative, without empty parts");
  if (part == "." || part == "..") refuse(path, "names with '.' or '..' could lead elsewhere");
  if (part.size() > kMaxPart) refuse(path, "a part of the name has more than 255 bytes");
  if (is_part_name(part)) refuse(path, "such names are kept for unfinished files");
}

}  // namespace

void throw_problem(const std::string& what, std::string_view path, int error_number) {
  throw FileProblem(fmt::format("{} '{}' ({})", what, printable(path), std::strerror(error_number)));
}

void check_path(std::string_view path) {
  if (path.size() > kMaxPath) refuse(path, "the name has more than 4000 bytes");
  if (path.find('\0') != std::string_view::npos) refuse(path, "a name cannot hold a NUL");
  for (std::size_t from = 0;;) {
    const std::size_t slash = path.find('/', from);
    check_one(path, path.substr(from, slash == std::string_view::npos ? slash : slash - from));
    if (slash == std::string_view::npos) return;
    from = slash + 1;
  }
}

std::string relative_path(std::string_view given) {
  std::string out;
  for (std::size_t from = 0; from <= given.size();) {
    const std::size_t slash = std::min(given.find('/', from), given.size());
    const std::string_view part = given.substr(from, slash - from);
    if (!part.empty() && part != ".") out = join(out, part);
    from = slash + 1;
  }
  if (!out.empty()) check_path(out);
  return out;
}

std::string part_name(std::string_view name) {
  if (name.size() + 1 + kPartEnd.size() <= kMaxPart) return fmt::format(".{}{}", name, kPartEnd);
  const XXH128_hash_t hash = XXH3_128bits(name.data(), name.size());
  return fmt::format(".{:016x}{:016x}{}", hash.high64, hash.low64, kPartEnd);
}

bool is_part_name(std::string_view name) { return name.starts_with('.') && name.ends_with(kPartEnd); }

std::string_view parent_of(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? std::string_view() : path.substr(0, slash);
}

std::string_view last_of(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

std::string join(std::string_view folder, std::string_view name) {
  if (folder.empty() || name.empty()) return std::string(folder.empty() ? name : folder);
  return fmt::format("{}/{}", folder, name);
}

}  // namespace maki::wan::copy
