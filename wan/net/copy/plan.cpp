#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>

#include "wan/net/copy/receiver.hpp"

namespace maki::wan::copy {

namespace {

// Wanted files ahead of the data: enough for the smallest files on the longest link.
constexpr std::size_t kWantedAhead = 1 << 15;
constexpr std::size_t kWantedNames = 8 << 20;
// Folders whose times are kept: their names are held until the end.
constexpr std::size_t kMostFolders = 1 << 19;
constexpr std::size_t kFolderNames = 48 << 20;

}  // namespace

Plan::Plan(const Root& root, Leases& leases, const Destination& destination, Progress& progress, Fail fail, Check check)
    : root_(root), leases_(leases), progress_(progress), fail_(std::move(fail)), check_(std::move(check)),
      destination_(destination) {
  folder_ = relative_path(destination.path);
  if (destination.sole_file && !folder_.empty() && !destination.path.ends_with('/')) {
    struct stat status;
    // A link counts as its target, which open_folder() finds without leaving the root.
    bool is_folder = root_.look(folder_, status) && S_ISDIR(status.st_mode);
    if (!is_folder && S_ISLNK(status.st_mode)) try {
        is_folder = root_.open_folder(folder_).open();
      } catch (const FileProblem&) {
      }
    if (!is_folder) {
      new_name_ = last_of(folder_);
      folder_ = parent_of(folder_);
    }
  }
  root_.make_folders(folder_);
}

std::string Plan::place_of(const Entry& entry) const {
  check_path(entry.path);
  std::string path = join(folder_, new_name_.empty() ? entry.path : new_name_);
  check_path(path);
  return path;
}

// A peer that sends something else is no honest server: nothing more is accepted from it.
void Plan::check_asked(const Entry& entry) const {
  const bool sole = destination_.sole_file;
  const std::string_view path = entry.path, name = sole ? path : path.substr(0, path.find('/'));
  const bool one = !sole || (next_ == 0 && entry.kind == Kind::kFile);
  if (one && (destination_.asked.empty() || destination_.asked.contains(name))) return;
  throw ProtocolError(fmt::format("the peer sends '{}'", printable(path)), "it was not asked for",
                      "nothing more is taken from it");
}

std::uint32_t Plan::mode_of(Kind kind, std::uint32_t given, std::optional<std::uint32_t> there) const {
  if (destination_.perms) return given & 0777;
  if (kind == Kind::kFolder)
    return (given & 0755) | (there.value_or(0) & 07022);  // an interrupted copy may have made it
  return there ? *there : given & 0644;
}

Answers Plan::answer(const Piece& piece) {
  if (piece.first != next_) throw ProtocolError("a list of the copy is not the one that was due");
  Answers answers;
  answers.first = next_;
  for (const Entry& entry : piece.entries) {
    check_();
    check_asked(entry);
    answers.answers.push_back(answer(entry, next_++));
  }
  if (piece.last) progress_.listed = true;
  return answers;
}

void Plan::wait_for_room() {
  std::unique_lock lock(mutex_);
  while (wanted_.size() >= kWantedAhead || wanted_names_ >= kWantedNames) {
    check_();
    changed_.wait(lock);
  }
}

void Plan::wake() {
  const std::lock_guard lock(mutex_);
  changed_.notify_all();
}

Answer Plan::answer(const Entry& entry, std::uint64_t index) try {
  Wanted wanted;
  wanted.path = place_of(entry);
  wanted.size = entry.size;
  if (entry.kind == Kind::kFolder) {
    make_folder(entry, wanted.path);
    return {};
  }
  const Answer answer = decide(entry, wanted);
  if (answer.request == FileRequest::kNothing) {
    const std::lock_guard lock(mutex_);
    ++counts_.skipped;
    counts_.skipped_bytes += entry.size;
    ++progress_.skipped;
    return answer;
  }
  wanted.request = answer.request;
  ++progress_.files;
  progress_.bytes += entry.size;
  const std::lock_guard lock(mutex_);
  wanted_names_ += wanted.path.size();
  wanted_.emplace(index, std::move(wanted));
  return answer;
} catch (const FileProblem& problem) {
  fail_(index, problem.what());
  return {};
}

void Plan::make_folder(const Entry& entry, const std::string& path) {
  struct stat status;
  std::optional<std::uint32_t> there;
  if (root_.look(path, status) && S_ISDIR(status.st_mode)) there = status.st_mode & 07777;
  const Folder folder = root_.make_folders(path);
  // From an earlier copy, possibly with a mode that prevents access.
  if (fstat(folder->descriptor(), &status) == 0 && (status.st_mode & 0700) != 0700)
    fchmod(folder->descriptor(), (status.st_mode & 0777) | 0700);
  const std::uint32_t mode = mode_of(entry.kind, entry.mode, there);
  if (made_.size() < kMostFolders && made_names_ < kFolderNames) {
    made_.push_back({path, entry.mtime, mode});
    made_names_ += path.size();
  } else if (fchmod(folder->descriptor(), mode | 0700) != 0) {
    throw_problem("cannot set the mode of the folder", path, errno);
  }
  const std::lock_guard lock(mutex_);
  ++counts_.folders;
}

Answer Plan::decide(const Entry& entry, Wanted& wanted) {
  const Folder folder = root_.make_folders(parent_of(wanted.path));
  struct stat status, above;
  if (fstat(folder->descriptor(), &above) != 0) throw_problem("cannot look at the folder of", wanted.path, errno);
  const auto lease = [&] {
    wanted.lease = leases_.take(above.st_dev, above.st_ino, std::string(last_of(wanted.path)));
  };
  if (root_.look(wanted.path, status)) {
    if (S_ISDIR(status.st_mode))
      throw FileProblem("'" + printable(wanted.path) + "' is a folder, and would become a file: remove it first");
    if (!S_ISREG(status.st_mode) && !S_ISLNK(status.st_mode))
      throw FileProblem("'" + printable(wanted.path) + "' is a special file, which is not replaced");
    if (S_ISREG(status.st_mode)) wanted.mode = status.st_mode & 0777;
    if (S_ISREG(status.st_mode) && static_cast<std::uint64_t>(status.st_size) == entry.size) {
      if (!destination_.checksum && mtime_of(status) == entry.mtime) {
        const std::uint32_t mode = mode_of(entry.kind, entry.mode, wanted.mode);
        if (mode != wanted.mode) set_properties(folder, wanted.path, entry.mtime, mode);
        return {};
      }
      Answer answer;
      if (entry.size > 0 && compare(wanted.path, entry.size, answer)) {
        lease();  // if it turns out to differ, it is rewritten
        return answer;
      }
    }
  }
  lease();
  if (entry.size > 0) wanted.partial = read_partial(folder, wanted.path, check_);
  if (!wanted.partial) return {.request = FileRequest::kSend};
  return {.request = FileRequest::kContinue,
          .size = wanted.partial->size,
          .checksum = wanted.partial->digester.checksum()};
}

// The checksum of an existing file; false where it cannot be read.
bool Plan::compare(const std::string& path, std::uint64_t size, Answer& answer) const try {
  struct stat status;
  const Descriptor file = root_.open_file(path, status);
  if (static_cast<std::uint64_t>(status.st_size) != size) return false;
  Digester digester;
  if (digest_file(file.descriptor(), size, digester, check_) != size) return false;
  answer = {.request = FileRequest::kCompare, .size = size, .checksum = digester.checksum()};
  return true;
} catch (const FileProblem&) {
  return false;
}

std::optional<Wanted> Plan::take(std::uint64_t index) {
  const std::lock_guard lock(mutex_);
  auto node = wanted_.extract(index);
  if (node.empty()) return {};
  wanted_names_ -= node.mapped().path.size();
  changed_.notify_all();
  return std::move(node.mapped());
}

bool Plan::all_taken() const {
  const std::lock_guard lock(mutex_);
  return wanted_.empty();
}

void Plan::finish_folders() {
  for (auto made = made_.rbegin(); made != made_.rend(); ++made) try {
      check_();
      const Folder folder = root_.folder(made->path);
      const timespec times[2] = {{.tv_sec = 0, .tv_nsec = UTIME_OMIT}, time_of(made->mtime)};
      if (futimens(folder->descriptor(), times) != 0 || fchmod(folder->descriptor(), made->mode) != 0)
        throw_problem("cannot set time and mode of the folder", made->path, errno);
    } catch (const FileProblem& problem) {
      fail_(kNoEntry, problem.what());
    }
}

Counts Plan::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

}  // namespace maki::wan::copy
