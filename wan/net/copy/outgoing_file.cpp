#include "wan/net/copy/outgoing_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "wan/net/copy/incoming_file.hpp"

namespace maki::wan::copy {
namespace {

constexpr std::uint64_t kWorthAHole = 64 << 10;

}  // namespace

OutgoingFile::OutgoingFile(RecordWriter& writer, Progress& progress, std::uint64_t index, const Listed& listed)
    : writer_(writer), progress_(progress), index_(index), listed_(listed) {
  file_ = listed.root->open_file(listed.path, status_);
  size_ = static_cast<std::uint64_t>(status_.st_size);
}

void OutgoingFile::send(const Answer& answer, const std::function<bool()>& stop, const Check& check) {
  posix_fadvise(file_.number(), 0, 0, POSIX_FADV_SEQUENTIAL);
  Begin begin{.index = index_, .size = size_, .mtime = mtime_of(status_), .mode = status_.st_mode & 0777};
  begin.offset = start_at(answer, check);
  begin.same = answer.wish == Wish::kCompare && begin.offset > 0;
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
    const Extent data = next_data(file_.number(), position_, size_);
    if (data.begin - position_ >= kWorthAHole) send_hole(data.begin);
    data_end = data.end;
  }
  check_unchanged();
  writer_.put(End{digester_.checksum()});
}

// How much of the file the receiver has, with digester_ after it.
std::uint64_t OutgoingFile::start_at(const Answer& answer, const Check& check) {
  const bool possible = answer.wish == Wish::kCompare ? answer.size == size_ : answer.size <= size_;
  if (answer.wish != Wish::kSend && possible && matches(answer, check)) return position_ = answer.size;
  digester_ = Digester();
  return position_ = 0;
}

bool OutgoingFile::matches(const Answer& answer, const Check& check) {
  if (answer.size > (1 << 20)) writer_.flush();  // this takes a while
  if (digest_file(file_.number(), answer.size, digester_, check) == answer.size)
    return digester_.checksum() == answer.checksum;
  if (errno != 0) throw_problem("cannot read", listed_.entry.path, errno);
  throw_shorter();
}

void OutgoingFile::throw_shorter() const {
  throw FileProblem("'" + printable(listed_.entry.path) + "' became shorter while it was read: copy it again");
}

std::size_t OutgoingFile::read_at(std::span<std::byte> into, std::uint64_t position) {
  for (;;) {
    const ssize_t got = pread(file_.number(), into.data(), into.size(), static_cast<off_t>(position));
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
  if (fstat(file_.number(), &now) != 0) throw_problem("cannot look at", listed_.entry.path, errno);
  if (now.st_size != status_.st_size || mtime_of(now) != mtime_of(status_))
    throw FileProblem("'" + printable(listed_.entry.path) + "' changed while it was read: copy it again");
}

}  // namespace maki::wan::copy
