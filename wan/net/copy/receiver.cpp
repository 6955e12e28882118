#include "wan/net/copy/receiver.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>

#include "wan/net/copy/message_channel.hpp"

namespace maki::wan::copy {

// ---- decisions -----------------------------------------------------------------------------------------------------

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
  return {FileRequest::kContinue, wanted.partial->size, wanted.partial->digester.checksum()};
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

// ---- writing -------------------------------------------------------------------------------------------------------

namespace {

[[noreturn]] void out_of_order() { throw ProtocolError("records of the copy are out of order"); }

}  // namespace

Receiver::Receiver(MessageChannel& channel, const Root& root, Leases& leases, const Destination& destination,
                   Progress& progress, OnNote on_note)
    : channel_(channel), root_(root), progress_(progress), notes_(std::move(on_note)),
      plan_(
          root, leases, destination, progress,
          [this](std::uint64_t index, const std::string& text) { fail(index, text); }, [this] { channel_.check(); }),
      commit_(
          [this](const Commit::Item&) {
            ++committed_;
            ++progress_.files_done;
          },
          [this](const Commit::Item& item, const std::string& text) { fail(item.index, text); }) {}

Counts Receiver::run() {
  Workers workers(channel_);
  workers.on_failure = [this] { plan_.wake(); };
  workers.start([this] { answer_all(); });
  workers.run([this] { write_all(); });
  workers.finish();
  if (!plan_.all_taken()) throw ProtocolError("the peer ended the copy before all files had come");
  end();
  return counts_;
}

void Receiver::answer_all() {
  for (bool last = false; !last;) {
    plan_.wait_for_room();
    const Bytes message = channel_.receive(kPlanTag);
    const Piece piece = decode_piece(message.view());
    const Answers answers = plan_.answer(piece);
    const std::lock_guard lock(telling_);
    channel_.send(kBackTag, encode(answers));
    send_failures();
    last = piece.last;
  }
}

void Receiver::write_all() {
  for (bool more = true; more;) {
    const Bytes message = channel_.receive(kDataTag);
    more = take_message(message.view());
    const std::lock_guard lock(telling_);
    send_failures();
  }
}

bool Receiver::take_message(std::span<const std::byte> message) {
  RecordReader records(message);
  bool finished = false;
  while (auto record = records.next()) {
    if (finished) out_of_order();
    std::visit(
        [&](const auto& it) {
          if constexpr (std::is_same_v<std::decay_t<decltype(it)>, Finish>) {
            if (begun_) out_of_order();
            finished = true;
          } else {
            take(it);
          }
        },
        *record);
  }
  return !finished;
}

// Applies `work` to the current file; on failure the rest of the file is skipped.
template <class Work>
void Receiver::try_current(Work work) {
  try {
    work();
  } catch (const FileProblem& problem) {
    file_.reset();
    fail(index_, problem.what());
  }
}

void Receiver::take(const Begin& begin) {
  if (begun_) out_of_order();
  auto wanted = plan_.take(begin.index);
  if (!wanted) throw ProtocolError("the peer sends a file that was not asked for");
  if (begin.same && (wanted->request != FileRequest::kCompare || begin.size != wanted->size)) out_of_order();
  const bool continued = begin.offset > 0 && !begin.same;
  if (continued && (!wanted->partial || begin.offset != wanted->partial->size)) out_of_order();
  begun_ = true;
  index_ = begin.index;
  listed_ = wanted->size;
  size_ = begin.size;
  at_ = 0;
  advance(begin.offset, false);
  try_current([&] { open(begin, std::move(*wanted)); });
}

void Receiver::open(Begin begin, Wanted wanted) {
  begin.mode = plan_.mode_of(Kind::kFile, begin.mode, wanted.mode);
  const Folder folder = root_.make_folders(parent_of(wanted.path));
  if (begin.same) {
    set_properties(folder, wanted.path, begin.mtime, begin.mode);
    ++counts_.skipped;
    counts_.skipped_bytes += begin.size;
    ++progress_.files_done;
    return;
  }
  file_ = std::make_unique<IncomingFile>(folder, wanted.path, wanted.lease, begin,
                                         begin.offset > 0 ? std::move(wanted.partial) : std::nullopt);
}

// Progress counts bytes as listed, even if the file has another size by now.
void Receiver::advance(std::uint64_t bytes, bool moved) {
  at_ += bytes;
  progress_.bytes_done += bytes;
  if (moved) progress_.moved += bytes;
}

void Receiver::take(const Content& content) {
  if (!begun_ || content.bytes.size() > size_ - at_) out_of_order();
  advance(content.bytes.size(), true);
  counts_.bytes += content.bytes.size();
  if (file_) try_current([&] { file_->write(content.bytes); });
}

void Receiver::take(const Hole& hole) {
  if (!begun_ || hole.length > size_ - at_) out_of_order();
  advance(hole.length, false);
  if (file_) try_current([&] { file_->skip(hole.length); });
}

void Receiver::take(const End& end) {
  if (!begun_ || at_ != size_) out_of_order();
  begun_ = false;
  progress_.bytes += size_ - listed_;
  if (!file_) return;
  try_current([&] {
    file_->complete(end.checksum);
    commit_.add({index_, std::move(file_)});
  });
}

void Receiver::take(const Abandon& abandon) {
  if (begun_ && abandon.index != index_) out_of_order();
  if (begun_) {
    begun_ = false;
    file_.reset();
    progress_.bytes -= listed_;
    progress_.bytes_done -= at_;
  } else if (auto wanted = plan_.take(abandon.index)) {
    progress_.bytes -= wanted->size;
  } else {
    throw ProtocolError("the peer gives up a file that was not asked for");
  }
  if (!abandon.reason.empty()) notes_.add(true, printable(abandon.reason));
}

void Receiver::take(const Note& note) { notes_.add(note.failed, printable(note.text)); }

void Receiver::fail(std::uint64_t index, const std::string& text) {
  notes_.add(true, text);
  const std::lock_guard lock(mutex_);
  failures_.push_back({index, text});
}

// With telling_ held.
void Receiver::send_failures() {
  for (;;) {
    Results results;
    {
      const std::lock_guard lock(mutex_);
      const std::size_t count = std::min(failures_.size(), kMaxFailures);
      if (count == 0) return;
      results.failures.assign(failures_.begin(), failures_.begin() + static_cast<std::ptrdiff_t>(count));
      failures_.erase(failures_.begin(), failures_.begin() + static_cast<std::ptrdiff_t>(count));
    }
    channel_.send(kBackTag, encode(results));
  }
}

void Receiver::end() {
  try {
    commit_.finish();
  } catch (const FileProblem& problem) {
    fail(kNoEntry, problem.what());
  }
  plan_.finish_folders();
  const Counts planned = plan_.counts();
  counts_.files = committed_;
  counts_.folders = planned.folders;
  counts_.skipped += planned.skipped;
  counts_.skipped_bytes += planned.skipped_bytes;
  counts_.failed = notes_.failed();
  const std::lock_guard lock(telling_);
  send_failures();
  channel_.send(kBackTag, encode(Results{.failures = {}, .done = true, .counts = counts_}));
  channel_.flush();
}

}  // namespace maki::wan::copy
