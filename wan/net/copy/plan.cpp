#include "wan/net/copy/plan.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace maki::wan::copy {
namespace {

constexpr std::size_t kMaxWanted = 1 << 20;  // far beyond what an honest sender lists ahead

}  // namespace

Plan::Plan(const Root& root, Claims& claims, const Destination& destination, Progress& progress, Fail fail)
    : root_(root), claims_(claims), progress_(progress), fail_(std::move(fail)), checksum_(destination.checksum) {
  folder_ = relative_path(destination.path);
  if (destination.sole_file && !folder_.empty() && !destination.path.ends_with('/')) {
    struct stat status;
    // A link counts as what it leads to, which open_folder() finds out without leaving the root.
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

Answers Plan::answer(const Piece& piece) {
  if (piece.first != next_) throw ProtocolError("a list of the copy is not the one that was due");
  Answers answers;
  answers.first = next_;
  for (const Entry& entry : piece.entries) answers.answers.push_back(answer(entry, next_++));
  if (piece.last) progress_.listed = true;
  return answers;
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
  if (answer.wish == Wish::kNothing) {
    const std::lock_guard lock(mutex_);
    ++counts_.skipped;
    counts_.skipped_bytes += entry.size;
    ++progress_.skipped;
    return answer;
  }
  wanted.wish = answer.wish;
  ++progress_.files;
  progress_.bytes += entry.size;
  const std::lock_guard lock(mutex_);
  if (wanted_.size() >= kMaxWanted) throw ProtocolError("the peer lists files and does not send them");
  wanted_.emplace(index, std::move(wanted));
  return answer;
} catch (const FileProblem& problem) {
  fail_(index, problem.what());
  return {};
}

void Plan::make_folder(const Entry& entry, const std::string& path) {
  const Folder folder = root_.make_folders(path);
  struct stat status;
  // Of an earlier copy, perhaps with a mode that lets nothing in.
  if (fstat(folder->number(), &status) == 0 && (status.st_mode & 0700) != 0700)
    fchmod(folder->number(), (status.st_mode & 0777) | 0700);
  made_.push_back({path, entry.mtime, entry.mode});
  const std::lock_guard lock(mutex_);
  ++counts_.folders;
}

Answer Plan::decide(const Entry& entry, Wanted& wanted) {
  const Folder folder = root_.make_folders(parent_of(wanted.path));
  struct stat status, above;
  if (fstat(folder->number(), &above) != 0) throw_problem("cannot look at the folder of", wanted.path, errno);
  const auto claim = [&] {
    wanted.claim = claims_.take(above.st_dev, above.st_ino, std::string(last_of(wanted.path)));
  };
  if (root_.look(wanted.path, status)) {
    if (S_ISDIR(status.st_mode))
      throw FileProblem("'" + shown(wanted.path) + "' is a folder, and would become a file: remove it first");
    if (!S_ISREG(status.st_mode) && !S_ISLNK(status.st_mode))
      throw FileProblem("'" + shown(wanted.path) + "' is a special file, which is not replaced");
    if (S_ISREG(status.st_mode) && static_cast<std::uint64_t>(status.st_size) == entry.size) {
      if (!checksum_ && mtime_of(status) == entry.mtime) {
        if ((status.st_mode & 0777) != entry.mode) set_properties(folder, wanted.path, entry.mtime, entry.mode);
        return {};
      }
      Answer answer;
      if (entry.size > 0 && compare(wanted.path, entry.size, answer)) {
        claim();  // should it turn out to be another, it is written anew
        return answer;
      }
    }
  }
  claim();
  if (entry.size > 0) wanted.partial = read_partial(folder, wanted.path);
  if (!wanted.partial) return {.wish = Wish::kSend};
  return {.wish = Wish::kContinue, .size = wanted.partial->size, .checksum = wanted.partial->digester.checksum()};
}

// The checksum of a file that is there; false where it cannot be read.
bool Plan::compare(const std::string& path, std::uint64_t size, Answer& answer) const try {
  struct stat status;
  const Descriptor file = root_.open_file(path, status);
  Digester digester;
  std::vector<std::byte> block(1 << 20);
  std::uint64_t read_bytes = 0;
  for (;;) {
    const ssize_t got = read(file.number(), block.data(), block.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return false;
    if (got == 0) break;
    digester.add({block.data(), static_cast<std::size_t>(got)});
    read_bytes += static_cast<std::uint64_t>(got);
  }
  answer = {.wish = Wish::kCompare, .size = size, .checksum = digester.checksum()};
  return read_bytes == size;
} catch (const FileProblem&) {
  return false;
}

std::optional<Wanted> Plan::take(std::uint64_t index) {
  const std::lock_guard lock(mutex_);
  auto node = wanted_.extract(index);
  if (node.empty()) return {};
  return std::move(node.mapped());
}

void Plan::finish_folders() {
  for (auto made = made_.rbegin(); made != made_.rend(); ++made) try {
      const Folder folder = root_.folder(made->path);
      const timespec times[2] = {{.tv_sec = 0, .tv_nsec = UTIME_OMIT}, time_of(made->mtime)};
      if (futimens(folder->number(), times) != 0 || fchmod(folder->number(), made->mode) != 0)
        throw_problem("cannot set time and mode of the folder", made->path, errno);
    } catch (const FileProblem& problem) {
      fail_(next_, problem.what());
    }
}

Counts Plan::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

}  // namespace maki::wan::copy
