#include "wan/net/copy/sender.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <functional>

#include "wan/net/copy/incoming_file.hpp"

namespace maki::wan::copy {
namespace {

constexpr std::uint64_t kWorthAHole = 64 << 10;

// A file being sent: read into messages, as long as it stays unchanged.
class OutgoingFile {
 public:
  OutgoingFile(RecordWriter& writer, Progress& progress, std::uint64_t index, const Listed& listed);
  // Sends Begin to End. `stop` is called between blocks, and leads to an Abandon without a reason. Throws what `check`
  // throws, and FileProblem, after which an Abandon is due (begun or not): the file vanished, cannot be read, or
  // changed meanwhile.
  void send(const Answer& answer, const std::function<bool()>& stop, const Check& check);

 private:
  std::uint64_t start_at(const Answer& answer, const Check& check);
  bool matches(const Answer& answer, const Check& check);
  void send_hole(std::uint64_t to);
  void send_block(std::uint64_t to);
  std::size_t read_at(std::span<std::byte> into, std::uint64_t position);
  void check_unchanged();
  [[noreturn]] void throw_shorter() const;

  RecordWriter& writer_;
  Progress& progress_;
  std::uint64_t index_;
  const Listed& listed_;
  Descriptor file_;
  struct stat status_ {};
  std::uint64_t size_ = 0, position_ = 0;
  Digester digester_;
};

OutgoingFile::OutgoingFile(RecordWriter& writer, Progress& progress, std::uint64_t index, const Listed& listed)
    : writer_(writer), progress_(progress), index_(index), listed_(listed) {
  file_ = listed.root->open_file(listed.path, status_);
  size_ = static_cast<std::uint64_t>(status_.st_size);
}

void OutgoingFile::send(const Answer& answer, const std::function<bool()>& stop, const Check& check) {
  posix_fadvise(file_.descriptor(), 0, 0, POSIX_FADV_SEQUENTIAL);
  Begin begin{.index = index_, .size = size_, .mtime = mtime_of(status_), .mode = status_.st_mode & 0777};
  begin.offset = start_at(answer, check);
  begin.same = answer.request == FileRequest::kCompare && begin.offset > 0;
  writer_.put(begin);
  progress_.bytes += size_ - listed_.entry.size;
  progress_.bytes_done += begin.offset;
  const bool sparse = static_cast<std::uint64_t>(status_.st_blocks) * 512 < size_;
  std::uint64_t data_end = sparse ? position_ : size_;
  while (position_ < size_) {
    if (stop()) return writer_.put(Abandon{index_, ""});
    if (position_ < data_end) {
      send_block(data_end);
      continue;
    }
    const Extent data = next_data(file_.descriptor(), position_, size_);
    if (data.begin - position_ >= kWorthAHole) send_hole(data.begin);
    data_end = data.end;
  }
  check_unchanged();
  writer_.put(End{digester_.checksum()});
}

// The bytes that the receiver already has; digester_ includes them.
std::uint64_t OutgoingFile::start_at(const Answer& answer, const Check& check) {
  const bool possible = answer.request == FileRequest::kCompare ? answer.size == size_ : answer.size <= size_;
  if (answer.request != FileRequest::kSend && possible && matches(answer, check)) return position_ = answer.size;
  digester_ = Digester();
  return position_ = 0;
}

bool OutgoingFile::matches(const Answer& answer, const Check& check) {
  if (answer.size > (1 << 20)) writer_.flush();  // this takes a while
  if (digest_file(file_.descriptor(), answer.size, digester_, check) == answer.size)
    return digester_.checksum() == answer.checksum;
  if (errno != 0) throw_problem("cannot read", listed_.entry.path, errno);
  throw_shorter();
}

void OutgoingFile::throw_shorter() const {
  throw FileProblem("'" + printable(listed_.entry.path) + "' became shorter while it was read: copy it again");
}

std::size_t OutgoingFile::read_at(std::span<std::byte> into, std::uint64_t position) {
  for (;;) {
    const ssize_t got = pread(file_.descriptor(), into.data(), into.size(), static_cast<off_t>(position));
    if (got > 0) return static_cast<std::size_t>(got);
    if (got == 0) throw_shorter();
    if (errno != EINTR) throw_problem("cannot read", listed_.entry.path, errno);
  }
}

void OutgoingFile::send_hole(std::uint64_t to) {
  const std::uint64_t length = to - position_;
  writer_.put(Hole{length});
  digester_.add_zeros(length);
  progress_.bytes_done += length;
  position_ = to;
}

void OutgoingFile::send_block(std::uint64_t to) {
  constexpr std::uint64_t kLeast = 4096;
  const auto room = writer_.room(static_cast<std::size_t>(std::min(kLeast, to - position_)));
  const auto block = room.first(static_cast<std::size_t>(std::min<std::uint64_t>(room.size(), to - position_)));
  const std::size_t got = read_at(block, position_);
  digester_.add(block.first(got));
  writer_.filled(got);
  position_ += got;
  progress_.bytes_done += got;
  progress_.moved += got;
}

void OutgoingFile::check_unchanged() {
  struct stat now;
  if (fstat(file_.descriptor(), &now) != 0) throw_problem("cannot look at", listed_.entry.path, errno);
  if (now.st_size != status_.st_size || mtime_of(now) != mtime_of(status_))
    throw FileProblem("'" + printable(listed_.entry.path) + "' changed while it was read: copy it again");
}

constexpr std::size_t kPiecesInHand = 16;
constexpr std::size_t kPieceBytes = 1 << 20;

}  // namespace

Sender::Sender(MessageChannel& channel, std::vector<Source> sources, Progress& progress, OnNote on_note,
               std::size_t batch)
    : channel_(channel), progress_(progress), notes_(std::move(on_note)),
      listing_notes_([this](bool failed, const std::string& text) {
        notes_.add(failed, text);
        const std::lock_guard lock(unsent_mutex_);
        unsent_notes_.push_back({failed, text});
      }),
      listing_(std::move(sources), listing_notes_),
      writer_(std::min(batch, kMaxBatch), [this](Bytes message) { channel_.send(kDataTag, std::move(message)); }) {}

Counts Sender::run() {
  {
    Workers workers(channel_);
    workers.on_failure = [this] {
      const std::lock_guard lock(mutex_);
      failed_ = true;
      changed_.notify_all();
    };
    workers.start([this] { list_all(); });
    workers.start([this] { receive_all(); });
    workers.run([this] { send_all(); });
    workers.finish();
  }
  return counts_;
}

void Sender::list_all() {
  std::uint64_t first = 0;
  for (bool last = false; !last;) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return in_hand_ < kPiecesInHand || failed_; });
      if (failed_) return;
    }
    Work work{.first = first, .files = listing_.next(kMaxEntries, kPieceBytes), .answers = {}};
    Piece piece{.first = first, .last = work.files.empty(), .entries = {}};
    for (const Listed& file : work.files) piece.entries.push_back(file.entry);
    first += work.files.size();
    last = piece.last;
    {
      const std::lock_guard lock(mutex_);
      listed_.push_back(std::move(work));
      entries_ = first;
      ++in_hand_;
      all_listed_ = last;
    }
    channel_.send(kPlanTag, encode(piece));
  }
  changed_.notify_all();
}

void Sender::receive_all() {
  while (!done_) {
    const Bytes message = channel_.receive(kBackTag);
    if (is_results(message.view()))
      take(decode_results(message.view()));
    else
      take(decode_answers(message.view()));
  }
}

void Sender::take(Answers answers) {
  const std::lock_guard lock(mutex_);
  if (listed_.empty() || listed_.front().first != answers.first ||
      listed_.front().files.size() != answers.answers.size())
    throw ProtocolError("answers of the copy do not belong to a list");
  Work work = std::move(listed_.front());
  listed_.pop_front();
  work.answers = std::move(answers.answers);
  for (std::size_t i = 0; i < work.files.size(); ++i) {
    const Entry& entry = work.files[i].entry;
    if (entry.kind == Kind::kFolder) {
      if (work.answers[i].request != FileRequest::kNothing)
        throw ProtocolError("the contents of a folder were asked for");
    } else if (work.answers[i].request != FileRequest::kNothing) {
      ++progress_.files;
      progress_.bytes += entry.size;
    }
  }
  answered_.push_back(std::move(work));
  if (all_listed_ && listed_.empty()) progress_.listed = true;
  changed_.notify_all();
}

void Sender::take(const Results& results) {
  for (const Failure& failure : results.failures) {
    check_failure(failure);
    // The receiver knows it already.
    notes_.add(true, printable(failure.text));
  }
  if (!results.done) return;
  const std::lock_guard lock(mutex_);
  if (!all_sent_) throw ProtocolError("the peer ended the copy before all was sent");
  counts_ = results.counts;
  done_ = true;
}

// Checks a failure against the list: an entry fails at most once, a folder once more when its time is set.
void Sender::check_failure(const Failure& failure) {
  const std::lock_guard lock(mutex_);
  if (failure.index != kNoEntry && failure.index >= entries_)
    throw ProtocolError("the peer tells of a failure of a file that was not listed");
  if (++failures_ > 2 * entries_ + 1) throw ProtocolError("the peer tells of more failures than there are files");
  if (failure.index == kNoEntry || failure.index < entries_done_) return;
  unwanted_.insert(failure.index);
  some_unwanted_ = true;
}

// The next answered piece; false when there are no more.
bool Sender::next(Work& work) {
  std::unique_lock lock(mutex_);
  const auto ready = [this] { return failed_ || !answered_.empty() || (all_listed_ && listed_.empty()); };
  if (!ready()) {
    lock.unlock();
    writer_.flush();  // nothing stays unsent while we wait
    lock.lock();
    changed_.wait(lock, ready);
  }
  if (failed_ || answered_.empty()) return false;
  work = std::move(answered_.front());
  answered_.pop_front();
  return true;
}

void Sender::send_all() {
  for (Work work; next(work);) {
    send(work);
    const std::lock_guard lock(mutex_);
    entries_done_ = work.first + work.files.size();
    unwanted_.erase(unwanted_.begin(), unwanted_.lower_bound(entries_done_));
    --in_hand_;
    changed_.notify_all();
  }
  send_notes();
  {
    const std::lock_guard lock(mutex_);
    all_sent_ = true;
  }
  writer_.put(Finish{});
  writer_.flush();
}

void Sender::send(Work& work) {
  for (std::size_t i = 0; i < work.files.size(); ++i) {
    if (work.answers[i].request == FileRequest::kNothing) continue;
    channel_.check();
    const std::uint64_t index = work.first + i, done = progress_.bytes_done;
    try {
      send_file(index, work.files[i], work.answers[i]);
    } catch (const FileProblem& problem) {
      writer_.put(Abandon{index, problem.what()});
      notes_.add(true, problem.what());
      progress_.bytes -= work.files[i].entry.size;
      progress_.bytes_done = done;
    }
    send_notes();
  }
}

void Sender::send_file(std::uint64_t index, const Listed& listed, const Answer& answer) {
  const auto stop = [&] {
    if (!some_unwanted_) return false;
    const std::lock_guard lock(mutex_);
    return unwanted_.contains(index);
  };
  OutgoingFile(writer_, progress_, index, listed).send(answer, stop, [this] { channel_.check(); });
  ++progress_.files_done;
}

void Sender::send_notes() {
  std::vector<Note> notes;
  {
    const std::lock_guard lock(unsent_mutex_);
    notes.swap(unsent_notes_);
  }
  for (const Note& note : notes) writer_.put(note);
}

}  // namespace maki::wan::copy
