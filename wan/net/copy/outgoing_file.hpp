// A file that is being sent: read into messages, and only as long as it stays the same.
#pragma once

#include <functional>

#include "wan/net/copy/listing.hpp"
#include "wan/net/copy/records.hpp"
#include "wan/net/copy/report.hpp"
#include "wan/net/copy/stored_bytes.hpp"

namespace maki::wan::copy {

class OutgoingFile {
 public:
  OutgoingFile(RecordWriter& writer, Progress& progress, std::uint64_t index, const Listed& listed);
  // Begin to End; `stop` is asked between blocks, and leads to an Abandon without a reason. Throws what `check` throws,
  // and FileProblem, after which an Abandon is due (begun or not): the file vanished, cannot be read, or changed
  // meanwhile.
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

}  // namespace maki::wan::copy
