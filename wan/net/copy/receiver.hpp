// The receiving side of one copy: a thread answers what is listed, the caller's writes what comes.
#pragma once

#include <memory>
#include <optional>

#include "wan/net/copy/commit.hpp"
#include "wan/net/copy/message_channel.hpp"
#include "wan/net/copy/plan.hpp"
#include "wan/net/copy/report.hpp"

namespace maki::wan::copy {

class Receiver {
 public:
  // Throws FileProblem where the destination cannot be had.
  Receiver(MessageChannel& channel, const Root& root, Leases& leases, const Destination& destination,
           Progress& progress, OnNote on_note);
  // To the end. Throws PathError, ProtocolError; what is wrong with single files is in the report.
  CopyReport run();

 private:
  void answer_all();
  void write_all();
  bool take_message(std::span<const std::byte> message);  // false: it was the last
  void take(const Begin& begin);
  void take(const Content& content);
  void take(const Hole& hole);
  void take(const End& end);
  void take(const Abandon& abandon);
  void take(const Note& note);
  void advance(std::uint64_t bytes, bool moved);
  void open(Begin begin, Wanted wanted);
  template <class Work>
  void try_current(Work work);
  void fail(std::uint64_t index, const std::string& text);
  void send_failures();
  CopyReport report() const;
  void end();

  MessageChannel& channel_;
  const Root& root_;
  Progress& progress_;
  Notes notes_;
  Plan plan_;
  std::mutex mutex_;
  std::vector<Failure> failures_;  // not yet told
  std::mutex telling_;
  bool begun_ = false;  // a file is coming, whether or not it can be taken
  std::uint64_t index_ = 0;
  std::uint64_t listed_ = 0, size_ = 0, at_ = 0;  // bytes of it: as listed, as begun, so far
  std::unique_ptr<IncomingFile> file_;
  Counts counts_;
  std::atomic<std::uint64_t> committed_{0};  // files
  Commit commit_;                            // last: its thread uses the others
};

}  // namespace maki::wan::copy
