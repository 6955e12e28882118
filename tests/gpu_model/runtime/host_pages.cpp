#include "tests/gpu_model/runtime/host_pages.hpp"

#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <list>
#include <map>
#include <utility>

#include "tests/gpu_model/report.hpp"
#include "tests/gpu_model/runtime/call.hpp"

namespace gpu_model {
namespace {

constexpr std::size_t kPage = 4096;
constexpr greg_t kTrapFlag = 0x100;  // of the processor's flags: one instruction, then SIGTRAP
constexpr greg_t kWriteFault = 2;    // of the page fault's error code

struct Memory {
  Address end = 0;
  char* own = nullptr;  // the model's mapping
};

// Bytes that a queued copy will write.
struct Kept {
  Address begin = 0, end = 0;
  Place place;
  std::string what;
};

struct Pages {
  std::map<Address, Memory> memory;
  std::list<Kept> kept;
};

Pages& pages() {
  static auto* p = new Pages;
  return *p;
}

struct sigaction before_fault, before_trap;
thread_local Address stepping = 0;  // the page that is open for one instruction

Address page_of(Address a) { return a / kPage * kPage; }

bool is_kept(Address page) { return kept_from_host(page, kPage); }

void protect(Address page, bool closed) {
  mprotect(reinterpret_cast<void*>(page), kPage, closed ? PROT_NONE : PROT_READ | PROT_WRITE);
}

// Pages of a range that is not kept any more.
void open(const Kept& k) {
  for (Address page = page_of(k.begin); page < k.end; page += kPage)
    if (!is_kept(page)) protect(page, false);
}

void pass_on(const struct sigaction& before, int signal, siginfo_t* info, void* context) {
  if (before.sa_flags & SA_SIGINFO) return before.sa_sigaction(signal, info, context);
  if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) return before.sa_handler(signal);
  sigaction(signal, &before, nullptr);  // the instruction faults once more, and ends the process
}

[[noreturn]] void refuse_device_pointer(Address a, bool wrote) {
  report({"host code follows a device pointer", "the host",
          std::string(wrote ? "writes " : "reads ") + whereabouts(a, next_work())});
  std::_Exit(86);
}

// Whether the program may go on.
bool let_through(Address a, bool wrote, ucontext_t& context) {
  auto& kept = pages().kept;
  for (auto k = kept.begin(); k != kept.end(); ++k) {
    if (a < k->begin || a >= k->end) continue;
    const Kept found = std::move(*k);
    kept.erase(k);
    report({wrote ? "host memory written before its copy was done" : "host memory read before its copy was done",
            found.what, "byte " + std::to_string(a - found.begin) + " of " + std::to_string(found.end - found.begin)});
    open(found);
    return true;
  }
  const auto memory = pages().memory.upper_bound(a);
  if (memory == pages().memory.begin() || a >= std::prev(memory)->second.end) return false;
  protect(page_of(a), false);  // other bytes of the page: the page is open for this instruction
  if (is_kept(page_of(a))) {
    if (stepping && stepping != page_of(a) && is_kept(stepping)) protect(stepping, true);
    stepping = page_of(a);
    context.uc_mcontext.gregs[REG_EFL] |= kTrapFlag;
  }
  return true;
}

void on_fault(int signal, siginfo_t* info, void* context) {
  const auto a = reinterpret_cast<Address>(info->si_addr);
  auto& c = *static_cast<ucontext_t*>(context);
  const bool wrote = c.uc_mcontext.gregs[REG_ERR] & kWriteFault;
  if (info->si_code == SEGV_ACCERR) {
    if (Lock::held()) {  // the model itself, by the program's address
      const auto memory = pages().memory.upper_bound(a);
      if (memory != pages().memory.begin() && a < std::prev(memory)->second.end) return protect(page_of(a), false);
    } else {
      const Lock lock;
      if (on_device(a)) refuse_device_pointer(a, wrote);
      if (let_through(a, wrote, c)) return;
    }
  }
  pass_on(before_fault, signal, info, context);
}

void on_trap(int signal, siginfo_t* info, void* context) {
  if (!stepping) return pass_on(before_trap, signal, info, context);
  static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_EFL] &= ~kTrapFlag;
  const Address page = std::exchange(stepping, 0);
  if (Lock::held()) return;
  const Lock lock;
  if (is_kept(page)) protect(page, true);
}

void watch(int signal, void (*handler)(int, siginfo_t*, void*), struct sigaction& before) {
  struct sigaction now {};
  sigaction(signal, nullptr, &now);
  if ((now.sa_flags & SA_SIGINFO) && now.sa_sigaction == handler) return;
  before = now;
  struct sigaction own {};
  own.sa_sigaction = handler;
  own.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
  sigaction(signal, &own, nullptr);
}

}  // namespace

void watch_faults() {
  watch(SIGSEGV, on_fault, before_fault);
  watch(SIGTRAP, on_trap, before_trap);
}

Address map_host_pages(std::size_t bytes) {
  const std::size_t whole = (bytes + kPage - 1) / kPage * kPage;
  const int file = memfd_create("page_locked", MFD_CLOEXEC);
  if (file < 0) return 0;
  void *program = MAP_FAILED, *own = MAP_FAILED;
  if (ftruncate(file, static_cast<off_t>(whole)) == 0) {
    program = mmap(nullptr, whole, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    own = mmap(nullptr, whole, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  }
  close(file);
  if (program == MAP_FAILED || own == MAP_FAILED) {
    if (program != MAP_FAILED) munmap(program, whole);
    return 0;
  }
  std::memset(own, 0xff, whole);
  const auto a = reinterpret_cast<Address>(program);
  pages().memory[a] = {a + whole, static_cast<char*>(own)};
  return a;
}

void unmap_host_pages(Address a) {
  const auto found = pages().memory.find(a);
  const std::size_t bytes = found->second.end - a;
  std::erase_if(pages().kept, [&](const Kept& k) { return k.begin >= a && k.begin < a + bytes; });
  munmap(reinterpret_cast<void*>(a), bytes);
  munmap(found->second.own, bytes);
  pages().memory.erase(found);
}

char* own_view(Address a) {
  if (on_device(a)) return view(a);
  const auto memory = pages().memory.upper_bound(a);
  if (memory == pages().memory.begin()) return view(a);
  const auto& [begin, m] = *std::prev(memory);
  return a < m.end ? m.own + (a - begin) : view(a);
}

void keep_from_host(Address a, std::size_t bytes, const Place& place, std::string what) {
  watch_faults();
  pages().kept.push_back({a, a + bytes, place, std::move(what)});
  for (Address page = page_of(a); page < a + bytes; page += kPage) protect(page, true);
}

bool kept_from_host(Address a, std::size_t bytes) {
  const auto& kept = pages().kept;
  return std::any_of(kept.begin(), kept.end(), [&](const Kept& k) { return k.begin < a + bytes && k.end > a; });
}

void open_host_pages() {
  auto& kept = pages().kept;
  for (auto k = kept.begin(); k != kept.end();) {
    if (!host_knows(k->place)) {
      ++k;
      continue;
    }
    const Kept done = std::move(*k);
    k = kept.erase(k);
    open(done);
  }
}

}  // namespace gpu_model
