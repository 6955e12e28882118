#include "wan/net/copy/root.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <xxhash.h>

#include <cerrno>
#include <cstring>

#include "wan/net/error.hpp"

namespace maki::wan::copy {

// ---- names ---------------------------------------------------------------------------------------------------------

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
  const bool leads_out = error_number == EXDEV;  // of openat2()
  throw FileProblem(
      fmt::format("{} '{}' ({})", what, printable(path),
                  leads_out ? "a symbolic link on the way leads out of the root" : std::strerror(error_number)));
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

// ---- folders -------------------------------------------------------------------------------------------------------

namespace {

constexpr std::size_t kKnownFolders = 64;
constexpr int kFolderFlags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;

int open_beneath(int folder, const std::string& path, int flags) {
  open_how how{};
  how.flags = static_cast<std::uint64_t>(flags);
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  // EAGAIN: a concurrent rename, after which the kernel could not be sure.
  for (int attempt = 0;; ++attempt) {
    const long result = syscall(SYS_openat2, folder, path.c_str(), &how, sizeof how);
    if (result >= 0 || errno != EAGAIN || attempt == 100) return static_cast<int>(result);
  }
}

// Whether the kernel allows openat2, asked once: some sandboxes refuse it with EPERM.
bool kernel_has_openat2() {
  static const bool there = [] {
    const Descriptor here(open_beneath(AT_FDCWD, ".", O_PATH | O_CLOEXEC));
    return here.open() || (errno != ENOSYS && errno != EPERM);
  }();
  return there;
}

}  // namespace

Root::Root(const std::string& folder, Resolve resolve) : resolve_(resolve) {
  auto root = std::make_shared<Descriptor>(::open(folder.c_str(), kFolderFlags));
  if (!root->open() && errno == EACCES)  // files whose names are known can be reached without reading the folder
    root = std::make_shared<Descriptor>(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!root->open())
    throw Error("cannot open the folder '" + printable(folder) + "'", std::strerror(errno),
                "name a folder that is there");
  root_ = root;
}

int Root::open_below(std::string_view path, int flags) const {
  const std::string name = path.empty() ? "." : std::string(path);
  if (resolve_ == Resolve::kBest && kernel_has_openat2()) return open_beneath(root_->descriptor(), name, flags);
  return open_by_parts(name, flags);
}

int Root::open_by_parts(const std::string& path, int flags) const {
  Descriptor here;
  int at = root_->descriptor();
  for (std::size_t from = 0;;) {
    const std::size_t slash = path.find('/', from);
    if (slash == std::string::npos) return openat(at, path.c_str() + from, flags | O_NOFOLLOW);
    here =
        Descriptor(openat(at, path.substr(from, slash - from).c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!here.open()) return -1;
    at = here.descriptor();
    from = slash + 1;
  }
}

Folder Root::find_folder(std::string_view path) const {
  if (path.empty()) return root_;
  {
    const std::lock_guard lock(mutex_);
    const auto found = known_.find(path);
    if (found != known_.end()) return found->second;
  }
  const int descriptor = open_below(path, kFolderFlags);
  if (descriptor < 0 && errno == ENOENT) return nullptr;
  if (descriptor < 0) throw_problem("cannot open the folder", path, errno);
  auto folder = std::make_shared<const Descriptor>(descriptor);
  const std::lock_guard lock(mutex_);
  if (known_.size() >= kKnownFolders) known_.clear();
  return known_.insert_or_assign(std::string(path), std::move(folder)).first->second;
}

Folder Root::folder(std::string_view path) const {
  Folder found = find_folder(path);
  if (!found) throw_problem("cannot open the folder", path, ENOENT);
  return found;
}

Folder Root::make_folders(std::string_view path) const {
  if (Folder there = find_folder(path)) return there;
  const Folder above = make_folders(parent_of(path));
  if (mkdirat(above->descriptor(), std::string(last_of(path)).c_str(), 0777) != 0 && errno != EEXIST)
    throw_problem("cannot make the folder", path, errno);
  return folder(path);
}

Descriptor Root::open_folder(std::string_view path) const {
  Descriptor folder(open_below(path, kFolderFlags));
  if (!folder.open()) throw_problem("cannot open the folder", path, errno);
  return folder;
}

Entries Root::entries(std::string_view path) const {
  Descriptor folder = open_folder(path);
  Entries entries(fdopendir(folder.descriptor()));
  if (!entries) throw_problem("cannot list", path, errno);
  folder.release();  // closed with the entries
  return entries;
}

Descriptor Root::open_file(std::string_view path, struct stat& status) const {
  // Checked before opening, which alone can trigger a device. Non-blocking, in case it is a pipe by then.
  if (!look(path, status)) throw_problem("cannot open", path, ENOENT);
  if (S_ISLNK(status.st_mode)) throw FileProblem("'" + printable(path) + "' is a symbolic link, which is not followed");
  if (!S_ISREG(status.st_mode)) throw FileProblem("'" + printable(path) + "' is not a regular file");
  const Folder above = folder(parent_of(path));
  Descriptor file(openat(above->descriptor(), std::string(last_of(path)).c_str(),
                         O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!file.open() || fstat(file.descriptor(), &status) != 0) throw_problem("cannot open", path, errno);
  if (!S_ISREG(status.st_mode)) throw FileProblem("'" + printable(path) + "' is not a regular file");
  return file;
}

bool Root::look(std::string_view path, struct stat& status) const {
  if (path.empty()) {
    if (fstat(root_->descriptor(), &status) != 0) throw_problem("cannot look at", path, errno);
    return true;
  }
  const Folder above = find_folder(parent_of(path));
  if (!above) return false;
  if (fstatat(above->descriptor(), std::string(last_of(path)).c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0) return true;
  if (errno != ENOENT) throw_problem("cannot look at", path, errno);
  return false;
}

}  // namespace maki::wan::copy
