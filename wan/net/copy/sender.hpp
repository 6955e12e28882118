// The sending side of one copy: one thread lists, one hears what is wanted, the caller's reads and sends.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <set>
#include <vector>

#include "wan/net/copy/listing.hpp"
#include "wan/net/copy/message.hpp"
#include "wan/net/copy/message_channel.hpp"
#include "wan/net/copy/report.hpp"

namespace maki::wan::copy {

class Sender {
 public:
  Sender(MessageChannel& channel, std::vector<Source> sources, Progress& progress, OnNote on_note,
         std::size_t batch = 8 << 20);
  bool sole_file() const { return listing_.sole_file(); }
  // Of something that will not be copied, before run().
  void report_problem(const std::string& text) { listing_notes_.add(true, text); }
  // To the end. Throws PathError, ProtocolError; what is wrong with single files is in the report.
  CopyReport run();

 private:
  struct Work {  // a piece: first listed, then answered, then sent
    std::uint64_t first = 0;
    std::vector<Listed> files;
    std::vector<Answer> answers;
  };
  void list_all();
  void receive_all();
  void take(Answers answers);
  void take(const Results& results);
  void check_failure(const Failure& failure);
  void send_all();
  bool next(Work& work);
  void send(Work& work);
  void send_file(std::uint64_t index, const Listed& listed, const Answer& answer);
  void send_notes();

  MessageChannel& channel_;
  Progress& progress_;
  Notes notes_;
  std::mutex unsent_mutex_;
  std::vector<Note> unsent_notes_;  // what the receiver does not know yet
  Notes listing_notes_;
  Listing listing_;
  RecordWriter writer_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Work> listed_, answered_;
  std::size_t in_hand_ = 0;  // pieces listed and not yet sent
  bool all_listed_ = false, failed_ = false, all_sent_ = false, done_ = false;
  std::uint64_t entries_ = 0, entries_done_ = 0;  // listed; of pieces that were sent
  std::uint64_t failures_ = 0;                    // that the receiver told of
  std::atomic<bool> some_unwanted_{false};
  std::set<std::uint64_t> unwanted_;  // files, not yet sent, that the receiver cannot take after all
  Counts counts_;
};

}  // namespace maki::wan::copy
