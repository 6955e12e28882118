#include "wan/net/copy/receiver.hpp"

#include "wan/net/copy/message_channel.hpp"

namespace maki::wan::copy {

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

CopyReport Receiver::run() {
  Workers workers(channel_);
  workers.on_failure = [this] { plan_.wake(); };
  workers.start([this] { answer_all(); });
  workers.run([this] { write_all(); });
  workers.finish();
  if (!plan_.all_taken()) throw ProtocolError("the peer ended the copy before all files had come");
  end();
  return notes_.report(counts_);
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
  Results results;
  results.done = true;
  results.counts = counts_;
  channel_.send(kBackTag, encode(results));
  channel_.flush();
}

}  // namespace maki::wan::copy
