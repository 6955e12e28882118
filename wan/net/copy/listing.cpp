#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "wan/net/copy/incoming_file.hpp"
#include "wan/net/copy/sender.hpp"

namespace maki::wan::copy {
namespace {

constexpr std::size_t kNamesAtOnce = 1024;  // read and sorted at a time
constexpr std::size_t kDeepest = 128;       // each level holds a folder open

}  // namespace

Source local_source(const std::string& given) {
  std::error_code error;
  const std::string path = std::filesystem::canonical(given, error);
  if (error)
    throw Error(fmt::format("cannot copy '{}'", printable(given)), error.message(),
                "name a file or folder that is there");
  const std::string name(last_of(given));
  const bool contents = name.empty() || name == "." || name == "..";
  struct stat status;
  if (stat(path.c_str(), &status) != 0)
    throw Error(fmt::format("cannot copy '{}'", printable(given)), std::strerror(errno));
  if (S_ISDIR(status.st_mode)) return {std::make_shared<Root>(path), "", contents ? "" : name};
  if (!S_ISREG(status.st_mode))
    throw Error(fmt::format("cannot copy '{}'", printable(given)), "it is neither a file nor a folder");
  const std::string parent(parent_of(path));
  return {std::make_shared<Root>(parent.empty() ? "/" : parent), std::string(last_of(path)), name};
}

Source served_source(const std::shared_ptr<const Root>& root, const std::string& given) {
  const std::string path = relative_path(given);
  const std::string_view end = last_of(given);
  const bool contents = end.empty() || end == ".";
  struct stat status;
  if (!root->look(path, status)) throw_problem("cannot copy", given, ENOENT);
  if (S_ISREG(status.st_mode)) return {root, path, std::string(last_of(path))};
  // A folder, or a link to one that stays below the root.
  if (!S_ISDIR(status.st_mode) && !S_ISLNK(status.st_mode))
    throw FileProblem(fmt::format("cannot copy '{}' (it is neither a file nor a folder)", printable(given)));
  try {
    root->open_folder(path);
  } catch (const FileProblem& problem) {
    if (!S_ISLNK(status.st_mode)) throw;
    throw FileProblem(fmt::format("cannot follow the symbolic link '{}', as is done to folders below the root: {}",
                                  printable(given), problem.what()));
  }
  return {root, path, contents ? "" : std::string(last_of(path)), true};
}

Listing::Listing(std::vector<Source> sources, Notes& notes) : sources_(std::move(sources)), notes_(notes) {
  sole_file_ = sources_.size() == 1 && !sources_[0].path.empty() && !sources_[0].folder;
}

Listing::~Listing() = default;

std::vector<Listed> Listing::next(std::size_t most, std::size_t bytes) {
  std::vector<Listed> out;
  std::size_t size = 0;
  while (out.size() < most) {
    if (!held_) held_ = step();
    if (!held_) break;
    size += encoded_size(held_->entry);
    if (size > bytes && !out.empty()) break;
    out.push_back(std::move(*held_));
    held_.reset();
  }
  return out;
}

std::optional<Listed> Listing::begin(const Source& source) {
  // The target of a link is treated as a root of its own.
  root_ = source.folder ? std::make_shared<Root>(source.root->folder(source.path)) : source.root;
  const std::string path = source.folder ? "" : source.path;
  struct stat status;
  if (!root_->look(path, status)) throw_problem("cannot copy", source.name, ENOENT);
  return take(root_, path, source.name, status);
}

// Leaves none at the end of the folder, or after an error in reading it.
void Listing::read_names(Level& level) {
  if (!level.stream) return;
  errno = 0;
  while (level.names.size() < kNamesAtOnce) {
    const dirent* item = readdir(level.stream.get());
    if (!item) break;
    const std::string_view name = item->d_name;
    if (name != "." && name != ".." && !is_part_name(name)) level.names.emplace_back(name);
  }
  std::sort(level.names.begin(), level.names.end(), std::greater<>());
  if (!level.names.empty() || errno == 0) return;
  level.stream.reset();
  throw_problem("cannot list", level.name, errno);
}

// The next entry; nothing at the end.
std::optional<Listed> Listing::step() {
  for (;;) try {
      if (levels_.empty()) {
        if (source_ == sources_.size()) return {};
        if (auto found = begin(sources_[source_++])) return found;
        continue;
      }
      Level& level = levels_.back();
      if (level.names.empty()) read_names(level);
      if (level.names.empty()) {
        levels_.pop_back();
        continue;
      }
      const std::string last = std::move(level.names.back());
      level.names.pop_back();
      const std::string path = join(level.path, last), name = join(level.name, last);
      struct stat status;
      if (fstatat(dirfd(level.stream.get()), last.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
        if (errno == ENOENT) continue;  // removed since
        throw_problem("cannot look at", path, errno);
      }
      if (auto found = take(root_, path, name, status)) return found;
    } catch (const FileProblem& problem) {
      notes_.add(true, problem.what());
    }
}

std::optional<Listed> Listing::take(const std::shared_ptr<const Root>& root, const std::string& path,
                                    const std::string& name, const struct stat& status) {
  if (!name.empty()) check_path(name);
  Entry entry{.path = name, .mtime = mtime_of(status), .mode = status.st_mode & 0777};
  if (S_ISDIR(status.st_mode)) {
    enter(path, name);
    if (name.empty()) return {};
    entry.kind = Kind::kFolder;
  } else if (S_ISREG(status.st_mode)) {
    entry.size = static_cast<std::uint64_t>(status.st_size);
  } else {
    notes_.add(false, fmt::format("'{}' left out ({})", printable(name),
                                  S_ISLNK(status.st_mode) ? "a symbolic link" : "not a regular file"));
    return {};
  }
  return Listed{std::move(entry), root, path};
}

void Listing::enter(const std::string& path, const std::string& name) {
  if (levels_.size() >= kDeepest)
    throw FileProblem(fmt::format("'{}' is left out (it lies more than {} folders deep)", printable(name), kDeepest));
  levels_.push_back({root_->entries(path), path, name, {}});
}

}  // namespace maki::wan::copy
