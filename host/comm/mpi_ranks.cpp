#include "host/comm/mpi_ranks.hpp"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <set>
#include <thread>

#include "host/comm/job.hpp"
#include "kernels/error.hpp"

namespace maki::mpi {

void check(int code, const char* call) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw Error(std::string(call) + " failed", std::string(text, length));
}

namespace {

// A communicator for finalize() alone, so that its barrier matches no other call.
Ranks at_end;

// Before MPI is finalized: only ranks that all get here can do so.
void meet_at_end() {
  try {
    MPI_Request request;
    check(MPI_Ibarrier(at_end.comm, &request), "MPI_Ibarrier");
    finish(at_end, request, "the end of the program");
    say_ending();
  } catch (const std::exception& error) {
    abort_job(error.what());
  }
}

// At the program's end, where MPI was started here.
void finalize() {
  if (!under_mpi()) return;
  meet_at_end();
  MPI_Finalize();
}

// Where another library started MPI, MPI_Finalize() first deletes the attributes of MPI_COMM_SELF (MPI 4.0, 11.2.4).
void meet_where_others_finalize() {
  const auto deleted = [](MPI_Comm, int, void*, void*) {
    meet_at_end();
    return MPI_SUCCESS;
  };
  int key = MPI_KEYVAL_INVALID;
  check(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, deleted, &key, nullptr), "MPI_Comm_create_keyval");
  check(MPI_Comm_set_attr(MPI_COMM_SELF, key, nullptr), "MPI_Comm_set_attr");
}

bool initialized() {
  int started = 0;
  MPI_Initialized(&started);
  return started != 0;
}

// Throws Error where MPI, as another library has started it, cannot be used.
void require_threads() {
  if (!under_mpi())
    throw Error("MPI has ended in this process", "another library has finalized it", "finalize it after all of Maki");
  int level = MPI_THREAD_SINGLE;
  check(MPI_Query_thread(&level), "MPI_Query_thread");
  if (level >= MPI_THREAD_FUNNELED) return;
  throw Error("MPI runs with MPI_THREAD_SINGLE",
              "another library has started it so for processes of one thread, and Maki has several",
              "start it by MPI_Init_thread with MPI_THREAD_FUNNELED or above (mpi4py.rc.thread_level = 'funneled'), or "
              "let Maki start it");
}

// Starts MPI. Throws Error.
void initialize() {
  int provided = 0;
  check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided), "MPI_Init_thread");
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
}

OnMachine place;

void find_place() {
  MPI_Comm machine = MPI_COMM_NULL;
  check(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &machine), "MPI_Comm_split_type");
  check(MPI_Comm_rank(machine, &place.number), "MPI_Comm_rank");
  check(MPI_Comm_size(machine, &place.ranks), "MPI_Comm_size");
  const CoreSet mine = own_cores();
  std::vector<CoreSet> all(static_cast<std::size_t>(place.ranks));
  check(MPI_Allgather(mine.data(), sizeof mine, MPI_BYTE, all.data(), sizeof mine, MPI_BYTE, machine), "MPI_Allgather");
  place.cores = share_of_cores(all, static_cast<std::size_t>(place.number));
  MPI_Comm_free(&machine);
}

}  // namespace

Ranks start(int expected) {
  const bool here = !initialized();
  if (here)
    initialize();
  else
    require_threads();
  int size = 0;
  check(MPI_Comm_size(MPI_COMM_WORLD, &size), "MPI_Comm_size");
  if (expected > 0 && size != expected) {
    throw Error("the launcher started " + std::to_string(expected) + " processes, MPI found " + std::to_string(size),
                "the launcher and this MPI library (" + mpi_library() + ") do not understand each other",
                "use the mpirun of that library, or 'srun --mpi=pmix' ('srun --mpi=list' tells what else there is)");
  }
  MPI_Comm comm = MPI_COMM_NULL;
  check(MPI_Comm_dup(MPI_COMM_WORLD, &comm), "MPI_Comm_dup");
  find_place();
  Ranks like;
  if (const char* text = std::getenv("MAKI_RANK_TIMEOUT")) {
    like.timeout = std::atof(text);
    if (!(like.timeout > 0)) {
      throw Error(std::string("MAKI_RANK_TIMEOUT is '") + text + "'", "it is a time in seconds, above 0");
    }
  }
  open_heartbeat(like.timeout);  // collective calls follow, so all ranks have met then
  MPI_Comm last = MPI_COMM_NULL;
  check(MPI_Comm_dup(MPI_COMM_WORLD, &last), "MPI_Comm_dup");
  at_end = describe(last, like);
  if (here)
    std::atexit(finalize);
  else
    meet_where_others_finalize();
  return describe(comm, like);
}

bool started_with_others() {
  int size = 1;
  if (under_mpi()) check(MPI_Comm_size(MPI_COMM_WORLD, &size), "MPI_Comm_size");
  return size > 1;
}

Ranks describe(MPI_Comm comm, const Ranks& like) {
  Ranks ranks = like;
  ranks.comm = comm;
  check(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  check(MPI_Comm_rank(comm, &ranks.rank), "MPI_Comm_rank");
  check(MPI_Comm_size(comm, &ranks.size), "MPI_Comm_size");
  std::vector<int> here(ranks.size);
  std::iota(here.begin(), here.end(), 0);
  ranks.in_world.resize(ranks.size);
  MPI_Group group, world;
  check(MPI_Comm_group(comm, &group), "MPI_Comm_group");
  check(MPI_Comm_group(MPI_COMM_WORLD, &world), "MPI_Comm_group");
  check(MPI_Group_translate_ranks(group, ranks.size, here.data(), world, ranks.in_world.data()),
        "MPI_Group_translate_ranks");
  MPI_Group_free(&group);
  MPI_Group_free(&world);
  return ranks;
}

void release(Ranks& ranks) {
  if (ranks.comm != MPI_COMM_NULL && under_mpi()) MPI_Comm_free(&ranks.comm);
}

void finish(const Ranks& ranks, MPI_Request request, const char* what) {
  Patience patience(ranks, what);
  for (;;) {
    int done = 0;
    check(MPI_Test(&request, &done, MPI_STATUS_IGNORE), what);
    if (done) return;
    patience.pause([] { return std::vector<int>{}; });
  }
}

}  // namespace maki::mpi

namespace maki {

OnMachine on_this_machine() { return mpi::place; }

bool under_mpi() {
  int finalized = 0;
  MPI_Finalized(&finalized);
  return mpi::initialized() && !finalized;
}

std::string mpi_library() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  MPI_Get_library_version(text, &length);
  const std::string all(text, length);
  return all.substr(0, all.find_first_of(",\n"));
}

}  // namespace maki

namespace maki::mpi {
namespace {

using Seconds = std::chrono::duration<double>;
constexpr int kYields = 200;  // looks with only a yield between them, then pauses of growing length
constexpr std::chrono::microseconds kLongest{200};
constexpr Seconds kLookAround{0.05};  // between checks for a lost rank
// A longer time between two looks is not waiting: this process itself was stopped, or its job suspended.
constexpr Seconds kGap{1};

int peer_of(const Communicator::Outgoing& message) { return message.to; }
int peer_of(const Communicator::Incoming& message) { return message.from; }

}  // namespace

Patience::Patience(const Ranks& ranks, std::string what) : ranks_(ranks), what_(std::move(what)) {}

Patience::~Patience() { refresh(); }

void Patience::refresh() {
  if (waited_.count() > ranks_.timeout / 2) say_waiting(false);
  idle_ = 0;
  waited_ = Seconds{0};
}

void Patience::pause(const std::function<std::vector<int>()>& pending) {
  if (idle_ == 0) looked_ = Clock::now();
  if (idle_ < kYields + kLongest.count()) ++idle_;
  if (idle_ <= kYields) {
    sched_yield();
    return;
  }
  std::this_thread::sleep_for(std::chrono::microseconds(idle_ - kYields));
  if (ranks_.comm == MPI_COMM_NULL) return;  // single process: only the device is waited for
  const auto now = Clock::now();
  const Seconds since = now - looked_;
  if (since < kLookAround) return;
  looked_ = now;
  waited_ += std::min(since, kGap);
  if (const std::vector<int> lost = lost_ranks(); !lost.empty()) give_up(lost, {});
  if (waited_.count() > ranks_.timeout / 2) say_waiting(true);
  if (waited_.count() <= ranks_.timeout) return;
  const bool first = ranks_.in_world[ranks_.rank] == 0;
  if (first ? all_wait() : !in_touch()) give_up({}, pending());
}

void Patience::give_up(const std::vector<int>& lost, const std::vector<int>& pending) const {
  say_ending();
  const std::string reason = what_ + " waited " + std::to_string(std::lround(waited_.count())) + " s";
  const std::string look = "see what became of the process, its node or its network";
  if (!lost.empty()) {
    throw Error(name_ranks(lost) + (lost.size() == 1 ? " is" : " are") + " not heard from", reason,
                look + "; MAKI_RANK_TIMEOUT sets the time allowed");
  }
  std::vector<int> named;
  for (const int r : pending) named.push_back(ranks_.in_world[r]);
  const std::string silent = in_touch() ? "the ranks wait for each other" : "nothing comes from other ranks";
  throw Error(named.empty() ? silent : name_ranks(named) + " sent nothing", reason,
              in_touch()
                  ? "the ranks do not make the same calls, or messages do not get through (NCCL_DEBUG=INFO tells "
                    "of NCCL's; MAKI_PAYLOAD=staged goes without NCCL)"
                  : look + "; datagrams, if they came through, would tell");
}

Exchange::Exchange(const Ranks& ranks, std::span<const Communicator::Outgoing> out,
                   std::span<const Communicator::Incoming> in, int tag, Communicator::Traffic& traffic)
    : ranks_(ranks), tag_(tag), traffic_(traffic), to_send_(cut(out, true)) {
  copy_own(out, in);
  const auto distance = [&](const Piece& piece) { return (piece.peer - ranks_.rank + ranks_.size) % ranks_.size; };
  std::stable_sort(to_send_.begin(), to_send_.end(),
                   [&](const Piece& a, const Piece& b) { return distance(a) < distance(b); });
  receive_all(cut(in, false));
  send_more();
}

template <class Message>
std::vector<Exchange::Piece> Exchange::cut(std::span<const Message> messages, bool sends) const {
  std::vector<Piece> pieces;
  for (const Message& message : messages) {
    const int peer = peer_of(message);
    if (peer < 0 || peer >= ranks_.size) throw Error("a message names rank " + std::to_string(peer), "there is none");
    if (peer == ranks_.rank) continue;
    char* data = static_cast<char*>(const_cast<void*>(static_cast<const void*>(message.data)));
    for (std::size_t begin = 0; begin < message.bytes; begin += ranks_.limits.piece_bytes) {
      pieces.push_back({peer, data + begin, std::min(ranks_.limits.piece_bytes, message.bytes - begin), sends});
    }
  }
  return pieces;
}

void Exchange::copy_own(std::span<const Communicator::Outgoing> out, std::span<const Communicator::Incoming> in) const {
  auto mine = [&](const auto& message) { return peer_of(message) == ranks_.rank && message.bytes > 0; };
  auto to = std::find_if(in.begin(), in.end(), mine);
  for (const auto& message : out) {
    if (!mine(message)) continue;
    if (to == in.end() || to->bytes != message.bytes) {
      throw Error("a rank's message to itself has no place to go", "the sizes on both sides differ");
    }
    if (to->data != message.data) std::memmove(to->data, message.data, message.bytes);
    to = std::find_if(to + 1, in.end(), mine);
  }
  if (to != in.end()) throw Error("a rank expects a message from itself that it does not send");
}

void Exchange::receive_all(std::vector<Piece> pieces) {
  posted_ = std::move(pieces);
  requests_.reserve(posted_.size() + std::min(to_send_.size(), ranks_.limits.messages));
  for (const Piece& piece : posted_) {
    requests_.push_back(MPI_REQUEST_NULL);
    check(MPI_Irecv(piece.data, static_cast<int>(piece.bytes), MPI_BYTE, piece.peer, tag_, ranks_.comm,
                    &requests_.back()),
          "MPI_Irecv");
  }
}

void Exchange::send_more() {
  while (next_ < to_send_.size()) {
    const Piece& piece = to_send_[next_];
    const auto& limits = ranks_.limits;
    if (sending_ > 0 && (sending_ >= limits.messages || sending_bytes_ + piece.bytes > limits.bytes)) return;
    requests_.push_back(MPI_REQUEST_NULL);
    posted_.push_back(piece);
    check(MPI_Isend(piece.data, static_cast<int>(piece.bytes), MPI_BYTE, piece.peer, tag_, ranks_.comm,
                    &requests_.back()),
          "MPI_Isend");
    ++next_, ++sending_, sending_bytes_ += piece.bytes;
    ++traffic_.messages, traffic_.bytes += piece.bytes, traffic_.empty += piece.bytes == 0;
  }
}

namespace {

// Codes may be of finer kinds than the standard's names.
int class_of(int code) {
  int named = code;
  MPI_Error_class(code, &named);
  return named;
}

}  // namespace

// Whether anything was completed.
bool Exchange::test() {
  done_.resize(requests_.size());
  statuses_.resize(requests_.size());
  int count = 0;
  const int code =
      MPI_Testsome(static_cast<int>(requests_.size()), requests_.data(), &count, done_.data(), statuses_.data());
  if (class_of(code) != MPI_ERR_IN_STATUS) check(code, "MPI_Testsome");
  if (count == 0 || count == MPI_UNDEFINED) return false;
  for (int i = 0; i < count; ++i) {
    const Piece& piece = posted_[done_[i]];
    int bytes = 0;
    if (!piece.sends) MPI_Get_count(&statuses_[i], MPI_BYTE, &bytes);
    const int error = code == MPI_SUCCESS ? MPI_SUCCESS : statuses_[i].MPI_ERROR;
    if (!piece.sends &&
        (class_of(error) == MPI_ERR_TRUNCATE || (error == MPI_SUCCESS && std::size_t(bytes) != piece.bytes))) {
      throw Error(name_ranks({ranks_.in_world[piece.peer]}) + " sent a message of another size than expected",
                  "expected " + std::to_string(piece.bytes) + " bytes");
    }
    check(error, piece.sends ? "MPI_Isend" : "MPI_Irecv");
    if (piece.sends) --sending_, sending_bytes_ -= piece.bytes;
  }
  // Remove completed requests from both arrays.
  std::size_t kept = 0;
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    if (requests_[i] == MPI_REQUEST_NULL) continue;
    requests_[kept] = requests_[i], posted_[kept] = posted_[i], ++kept;
  }
  requests_.resize(kept), posted_.resize(kept);
  return true;
}

std::vector<int> Exchange::pending() const {
  std::set<int> peers;
  for (const Piece& piece : posted_) peers.insert(piece.peer);
  return {peers.begin(), peers.end()};
}

Exchange::~Exchange() {
  const bool under_way = under_mpi();
  for (std::size_t i = 0; i < requests_.size() && under_way; ++i) {
    if (requests_[i] == MPI_REQUEST_NULL) continue;
    if (!posted_[i].sends) MPI_Cancel(&requests_[i]);
    MPI_Request_free(&requests_[i]);
  }
}

Communicator::Look Exchange::look() {
  using Look = Communicator::Look;
  const bool moved = !requests_.empty() && test();
  if (moved) send_more();
  return requests_.empty() ? Look::kDone : moved ? Look::kMoved : Look::kNothing;
}

}  // namespace maki::mpi
