#include "wan/net/copy/sender.hpp"

#include "wan/net/copy/outgoing_file.hpp"
#include "wan/net/copy/workers.hpp"

namespace maki::wan::copy {
namespace {

constexpr std::size_t kPiecesInHand = 16;
constexpr std::size_t kPieceBytes = 1 << 20;

}  // namespace

Sender::Sender(MessageChannel& channel, std::vector<Source> sources, Progress& progress, OnNote on_note,
               std::size_t batch)
    : channel_(channel), progress_(progress), notes_(std::move(on_note)),
      listing_notes_([this](bool failed, const std::string& text) {
        notes_.say(failed, text);
        const std::lock_guard lock(untold_mutex_);
        untold_.push_back({failed, text});
      }),
      listing_(std::move(sources), listing_notes_),
      writer_(std::min(batch, kMaxBatch), [this](Bytes message) { channel_.send(kDataTag, std::move(message)); }) {}

CopyReport Sender::run() {
  {
    Workers workers(channel_);
    workers.on_failure = [this] {
      const std::lock_guard lock(mutex_);
      failed_ = true;
      changed_.notify_all();
    };
    workers.start([this] { list_all(); });
    workers.start([this] { hear_all(); });
    workers.run([this] { send_all(); });
    workers.finish();
  }
  CopyReport report;
  notes_.add_to(report);
  report.counts = counts_;
  return report;
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

void Sender::hear_all() {
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
      if (work.answers[i].wish != Wish::kNothing) throw ProtocolError("the contents of a folder were asked for");
    } else if (work.answers[i].wish == Wish::kNothing) {
      ++progress_.skipped;
    } else {
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
    notes_.say(true, printable(failure.text));
  }
  if (!results.done) return;
  const std::lock_guard lock(mutex_);
  if (!all_sent_) throw ProtocolError("the peer ended the copy before all was sent");
  counts_ = results.counts;
  done_ = true;
}

// An entry fails once, and a folder once more when it gets its time: no more is to be said of what was listed.
void Sender::check_failure(const Failure& failure) {
  const std::lock_guard lock(mutex_);
  if (failure.index != kNoEntry && failure.index >= entries_)
    throw ProtocolError("the peer tells of a failure of a file that was not listed");
  if (++failures_ > 2 * entries_ + 1) throw ProtocolError("the peer tells of more failures than there are files");
  if (failure.index == kNoEntry || failure.index < entries_done_) return;
  unwanted_.insert(failure.index);
  some_unwanted_ = true;
}

// The next piece that was answered; false when there are no more.
bool Sender::next(Work& work) {
  std::unique_lock lock(mutex_);
  const auto ready = [this] { return failed_ || !answered_.empty() || (all_listed_ && listed_.empty()); };
  if (!ready()) {
    lock.unlock();
    writer_.flush();  // nothing lies about while we wait
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
  tell_notes();
  {
    const std::lock_guard lock(mutex_);
    all_sent_ = true;
  }
  writer_.put(Finish{});
  writer_.flush();
}

void Sender::send(Work& work) {
  for (std::size_t i = 0; i < work.files.size(); ++i) {
    if (work.answers[i].wish == Wish::kNothing) continue;
    channel_.check();
    const std::uint64_t index = work.first + i, done = progress_.bytes_done;
    try {
      send_file(index, work.files[i], work.answers[i]);
    } catch (const FileProblem& problem) {
      writer_.put(Abandon{index, problem.what()});
      notes_.say(true, problem.what());
      progress_.bytes -= work.files[i].entry.size;
      progress_.bytes_done = done;
    }
    tell_notes();
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

void Sender::tell_notes() {
  std::vector<Note> notes;
  {
    const std::lock_guard lock(untold_mutex_);
    notes.swap(untold_);
  }
  for (const Note& note : notes) writer_.put(note);
}

}  // namespace maki::wan::copy
