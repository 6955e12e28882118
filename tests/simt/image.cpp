// The program's own image: its segments, its __shared__ variables, and the source lines of its code.
#include <cxxabi.h>
#include <elf.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>

#include "tests/simt/runtime.hpp"

namespace maki::simt {
namespace {

constexpr std::uintptr_t kSharedAlignment = 65536;  // of cuda_language.hpp

std::string own_path() {
  char path[4096];
  const ssize_t n = readlink("/proc/self/exe", path, sizeof path);
  return n > 0 ? std::string(path, static_cast<std::size_t>(n)) : std::string();
}

struct Image {
  std::vector<Segment> segments;
  std::vector<Region> shared;

  Image() {
    dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void* self) {
          static_cast<Image*>(self)->read_segments(*info);
          return 1;  // the program itself comes first
        },
        this);
    read_symbols();
  }

  void read_segments(const dl_phdr_info& info) {
    hot.image = info.dlpi_addr;
    for (int i = 0; i < info.dlpi_phnum; ++i) {
      const auto& p = info.dlpi_phdr[i];
      const std::uintptr_t begin = info.dlpi_addr + p.p_vaddr;
      // What is made read-only after relocation (tables with addresses in them) comes before the segment it is in.
      if (p.p_type == PT_GNU_RELRO) segments.insert(segments.begin(), {begin, begin + p.p_memsz, false});
      if (p.p_type == PT_LOAD) segments.push_back({begin, begin + p.p_memsz, (p.p_flags & PF_W) != 0});
    }
  }

  // Statics of functions with the alignment that only __shared__ gives.
  void read_symbols() {
    std::ifstream file(own_path(), std::ios::binary);
    const std::string elf{std::istreambuf_iterator<char>(file), {}};
    if (elf.size() < sizeof(ElfW(Ehdr))) return;
    const auto* header = reinterpret_cast<const ElfW(Ehdr)*>(elf.data());
    const auto* sections = reinterpret_cast<const ElfW(Shdr)*>(elf.data() + header->e_shoff);
    for (int i = 0; i < header->e_shnum; ++i) {
      if (sections[i].sh_type != SHT_SYMTAB) continue;
      const auto* symbols = reinterpret_cast<const ElfW(Sym)*>(elf.data() + sections[i].sh_offset);
      const char* names = elf.data() + sections[sections[i].sh_link].sh_offset;
      for (std::size_t k = 0; k < sections[i].sh_size / sizeof(ElfW(Sym)); ++k) add(symbols[k], names);
    }
    std::sort(shared.begin(), shared.end(), [](const Region& a, const Region& b) { return a.begin < b.begin; });
  }

  void add(const ElfW(Sym) & symbol, const char* names) {
    const char* name = names + symbol.st_name;
    if (ELF64_ST_TYPE(symbol.st_info) != STT_OBJECT) return;
    if (symbol.st_size == 0 || symbol.st_value % kSharedAlignment != 0 || std::strncmp(name, "_ZZ", 3) != 0) return;
    int status = 0;
    char* plain = abi::__cxa_demangle(name, nullptr, nullptr, &status);
    const std::size_t cells = (symbol.st_size + 3) / 4;
    shared.push_back({Region::Kind::static_shared, hot.image + symbol.st_value, symbol.st_size,
                      static_cast<Cell*>(reserve(cells * sizeof(Cell))), plain ? plain : name});
    std::free(plain);
  }
};

Image& image() {
  static Image* instance = new Image;
  return *instance;
}

// addr2line reads addresses and answers them one by one for as long as we like.
class LineReader {
 public:
  LineReader() {
    int to[2], from[2];
    std::signal(SIGPIPE, SIG_IGN);  // without addr2line there are no lines, and no more harm than that
    if (pipe(to) != 0 || pipe(from) != 0) return;
    const std::string program = own_path();
    const pid_t child = fork();
    if (child == 0) {
      dup2(to[0], 0);
      dup2(from[1], 1);
      for (const int fd : {to[0], to[1], from[0], from[1]}) close(fd);
      execlp("addr2line", "addr2line", "-a", "-i", "-f", "-C", "-e", program.c_str(), static_cast<char*>(nullptr));
      _exit(127);
    }
    close(to[0]);
    close(from[1]);
    if (child < 0) return;
    question_ = fdopen(to[1], "w");
    answer_ = fdopen(from[0], "r");
  }

  // file:line of the innermost function first.
  std::vector<Place> ask(std::uint32_t pc) {
    std::vector<Place> places;
    if (!question_ || !answer_) return places;
    // A second question, for an address where nothing is, marks the end of the first one's answer.
    std::fprintf(question_, "0x%x\n0xffffffffffff\n", pc);
    std::fflush(question_);
    line();  // the address
    for (;;) {
      const std::string function = line();
      if (function.empty() || function.rfind("0x0000ffff", 0) == 0) break;
      std::string where = line();
      where = where.substr(0, where.find(" ("));
      const auto colon = where.rfind(':');
      if (colon == std::string::npos) continue;
      places.push_back({where.substr(0, colon), std::atoi(where.c_str() + colon + 1)});
    }
    line(), line();  // ?? and ??:0
    return places;
  }

 private:
  std::string line() {
    char* text = nullptr;
    std::size_t room = 0;
    const ssize_t n = getline(&text, &room, answer_);
    std::string result = n > 0 ? std::string(text, static_cast<std::size_t>(n - (text[n - 1] == '\n'))) : std::string();
    std::free(text);
    return result;
  }

  std::FILE* question_ = nullptr;
  std::FILE* answer_ = nullptr;
};

// Paths as the repository knows them, wherever (with a compiler cache) it was compiled.
std::string shortened(const std::string& file) {
  for (const char* top : {"/tests/simt/", "/kernels/"})
    if (const auto at = file.rfind(top); at != std::string::npos) return file.substr(at + 1);
  return file.rfind("./", 0) == 0 ? file.substr(2) : file;
}

bool of_the_model(const std::string& file) {
  if (file == "kernels/device/cooperative.cuh" || file == "kernels/device/launch.cuh") return true;
  return file.rfind("tests/simt/", 0) == 0 && file.find("_test.cpp") == std::string::npos;
}

std::vector<Place> lines_of(std::uint32_t pc) {
  static auto* reader = new LineReader;
  std::vector<Place> places = reader->ask(pc);
  for (Place& place : places) place.file = shortened(place.file);
  if (places.empty()) places.push_back({"?", 0});
  return places;
}

}  // namespace

const std::vector<Segment>& segments() { return image().segments; }
std::vector<Region>& static_shared() { return image().shared; }

const Region* static_shared_near(std::uintptr_t address) {
  const auto& all = static_shared();
  const auto next = std::upper_bound(all.begin(), all.end(), address,
                                     [](std::uintptr_t a, const Region& r) { return a < r.begin; });
  const Region* before = next != all.begin() ? &*(next - 1) : nullptr;
  const Region* after = next != all.end() ? &*next : nullptr;
  if (after && after->begin - address <= 4096) return after;
  return before && address - before->begin < kSharedAlignment ? before : nullptr;
}

bool knows_lines() {
  const auto here = reinterpret_cast<std::uintptr_t>(&knows_lines);
  segments();
  return lines_of(static_cast<std::uint32_t>(here - hot.image)).front().line > 0;
}

const std::vector<Place>& sources_of(std::uint32_t pc) {
  static auto* known = new std::map<std::uint32_t, std::vector<Place>>;
  const auto [it, unknown] = known->emplace(pc, std::vector<Place>{});
  if (unknown)
    for (Place& place : lines_of(pc))
      if (!of_the_model(place.file)) it->second.push_back(std::move(place));
  return it->second;
}

}  // namespace maki::simt
