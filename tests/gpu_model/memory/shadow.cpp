#include "tests/gpu_model/memory/shadow.hpp"

#include <sys/mman.h>

#include <stdexcept>
#include <unordered_map>
#include <vector>

#include "tests/gpu_model/report.hpp"

namespace gpu_model {
namespace {

// Pages that nobody touches take no memory.
Cell* reserve_cells() {
  void* at = mmap(nullptr, kDeviceBytes / 4 * sizeof(Cell), PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) throw std::runtime_error("GPU model: no addresses for the shadow of device memory");
  return static_cast<Cell*>(at);
}

const Extent* whole_range(WorkNumber work, Address a, std::size_t bytes, const char* verb, const char* what) {
  const Extent* e = find_extent(a, work);
  if (e && a + bytes <= e->end) return e;
  report({"out of bounds", words(work),
          std::string(what) + " " + verb + " " + std::to_string(bytes) + " bytes " + whereabouts(a, work)});
  return nullptr;
}

// Not for copies.
bool on_own_gpu(WorkNumber work, Address a, const char* verb, const char* what) {
  const Extent* e = find_extent(a, work);
  if (!e || !belongs_to_another_gpu(*e, work)) return true;
  report({"wrong device", words(work),
          std::string(what) + " on GPU " + std::to_string(device_of(work)) + " " + verb + " " + whereabouts(a, work) +
              " of GPU " + std::to_string(e->device)});
  return false;
}

void check_order(WorkNumber work, const Access& a, const char* verb, const char* before, const char* what, bool& told) {
  if (told || !a.work || a.work == work || comes_after(work, a.work)) return;
  told = true;
  report({"a race between streams", words(work),
          std::string(what) + " " + verb + " memory that " + words(a.work) + " " + before +
              ", and nothing orders the two"});
}

}  // namespace

Cell& cell_of(Address a) {
  static Cell* const cells = reserve_cells();
  return cells[(a - kDeviceBegin) / 4];
}

Cell* byte_cells_of(Address word) {
  static std::unordered_map<Address, std::vector<Cell>> pages;
  static Address last = 0;
  static Cell* cells = nullptr;
  if (const Address page = word / 4096; !cells || page != last) {
    auto& p = pages[page];
    if (p.empty()) p.resize(4096);
    cells = p.data();
    last = page;
  }
  return cells + word % 4096;
}

unsigned written_bytes(Address word, WorkNumber made) {
  const Access& a = cell_of(word).write;
  if (!(a.flags & Access::kBytes)) return a.work >= made ? a.bytes : 0;
  unsigned all = 0;
  for (unsigned b = 0; b < 4; ++b)
    if (const Access& one = byte_cells_of(word)[b].write; one.work >= made && one.bytes) all |= 1u << b;
  return all;
}

static bool read_range(WorkNumber work, Address from, std::size_t bytes, const char* what) {
  if (!whole_range(work, from, bytes, "reads", what)) return false;
  if (!on_device(from)) return true;
  bool told = false;
  for (Address word = from & ~Address{3}; word < from + bytes; word += 4) {
    Cell& c = cell_of(word);
    check_order(work, c.write, "reads", "writes to", what, told);
    c.read = {.work = work, .block = ~0u, .bytes = 15};
  }
  return true;
}

static bool write_range(WorkNumber work, Address to, std::size_t bytes, const char* what) {
  const Extent* e = whole_range(work, to, bytes, "writes", what);
  if (!e) return false;
  if (!on_device(to)) return true;
  bool told = false;
  for (Address word = to & ~Address{3}; word < to + bytes; word += 4) {
    Cell& c = cell_of(word);
    check_order(work, c.write, "writes to", "writes to", what, told);
    check_order(work, c.read, "writes to", "reads", what, told);
    const unsigned mask = mask_in(word, to, bytes), before = written_bytes(word, e->made);
    c.write = {.work = work, .block = ~0u, .bytes = static_cast<std::uint8_t>(before | mask)};
  }
  return true;
}

bool note_read(WorkNumber work, Address from, std::size_t bytes, const char* what) {
  return bytes == 0 || (on_own_gpu(work, from, "reads", what) && read_range(work, from, bytes, what));
}

bool note_write(WorkNumber work, Address to, std::size_t bytes, const char* what) {
  return bytes == 0 || (on_own_gpu(work, to, "writes", what) && write_range(work, to, bytes, what));
}

bool note_copy(WorkNumber work, Address to, Address from, std::size_t bytes) {
  if (bytes == 0) return true;
  const bool reads = on_device(from), writes = on_device(to);
  if ((reads && !read_range(work, from, bytes, "a copy")) || (writes && !write_range(work, to, bytes, "a copy")))
    return false;
  if (!reads || !writes) return true;
  const Extent* e = find_extent(from, work);
  for (std::size_t n = 0; n < bytes; ++n) {
    if (written_bytes((from + n) & ~Address{3}, e->made) >> ((from + n) % 4) & 1) continue;
    Access& target = cell_of(to + n).write;
    target.bytes = static_cast<std::uint8_t>(target.bytes & ~(1u << ((to + n) % 4)));
  }
  return true;
}

}  // namespace gpu_model
