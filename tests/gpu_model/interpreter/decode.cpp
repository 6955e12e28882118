// From a kernel's text to instructions: rows for operands, places for names.
#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "tests/gpu_model/interpreter/operations.hpp"
#include "tests/gpu_model/interpreter/warp.hpp"

namespace gpu_model {

std::string demangled(const std::string& symbol) {
  int status = 0;
  char* text = abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status);
  std::string all = status == 0 ? text : symbol;
  std::free(text);
  if (const auto space = all.find(' '); all.starts_with("void ") && space == 4) all = all.substr(5);
  // Without the parameters: up to the first bracket outside of template arguments that is not "(anonymous namespace)".
  int depth = 0;
  for (std::size_t n = 0; n < all.size(); ++n) {
    if (all[n] == '<') ++depth;
    if (all[n] == '>') --depth;
    if (all[n] == '(' && depth == 0 && all.compare(n, 11, "(anonymous ") != 0) {
      all.resize(n);
      break;
    }
  }
  return all.size() > 160 ? all.substr(0, 157) + "..." : all;
}

namespace {

using ptx::Operand;

Words split(std::string_view operation) {
  Words words;
  while (true) {
    const auto dot = operation.find('.');
    words.push_back(operation.substr(0, dot));
    if (dot == std::string_view::npos) return words;
    operation.remove_prefix(dot + 1);
  }
}

unsigned bits_of(std::string_view type) {
  if (type == "pred") return 1;
  if (type.ends_with("64")) return 64;
  return type.ends_with("16") || type.ends_with("8") ? 16 : 32;
}

// A row for each register, those of predicates first.
struct Rows {
  std::vector<Row> of_register;
  std::uint32_t predicate_bytes = 0, register_bytes = 0;
};

Rows allot_rows(const ptx::KernelText& text) {
  Rows rows;
  rows.of_register.reserve(text.registers.size());
  for (const unsigned bits : text.registers) {
    std::uint32_t& end = bits == 1 ? rows.predicate_bytes : rows.register_bytes;
    rows.of_register.push_back(end);
    end += bits == 1 ? 4 : bits == 64 ? 256 : 128;
  }
  rows.predicate_bytes = (rows.predicate_bytes + 127) / 128 * 128;
  for (std::size_t n = 0; n < text.registers.size(); ++n)
    if (text.registers[n] != 1) rows.of_register[n] += rows.predicate_bytes;
  rows.register_bytes += rows.predicate_bytes;
  return rows;
}

class Decoder {
 public:
  Decoder(const ptx::KernelText& text, const ptx::Names& dynamic_shared);
  Kernel kernel();

 private:
  Instruction instruction(const ptx::Statement& s);
  void operands(const ptx::Statement& s, const Words& words, Instruction& i);
  void address(const Operand& o, Instruction& i);
  void vector(const Operand& o, std::array<Row, 4>& rows, std::uint8_t& elements);
  Row source(const Operand& o, unsigned bits);
  Row constant(std::uint64_t value, unsigned bits);
  Row special(const std::string& name);
  std::uint64_t symbol(const Operand& o) const;
  unsigned width(int number) const { return text_.registers[static_cast<std::size_t>(number)]; }
  Row row_of(int number) const { return rows_.of_register[static_cast<std::size_t>(number)]; }

  const ptx::KernelText& text_;
  const ptx::Names& dynamic_shared_;
  Rows rows_;
  Kernel k_;
  std::map<std::string, std::uint64_t, std::less<>> own_;  // parameters, shared and local variables
  std::map<std::pair<std::uint64_t, unsigned>, Row> constants_;
};

Decoder::Decoder(const ptx::KernelText& text, const ptx::Names& dynamic_shared)
    : text_(text), dynamic_shared_(dynamic_shared), rows_(allot_rows(text)) {
  k_.name = demangled(text.name);
  k_.predicate_bytes = rows_.predicate_bytes;
  k_.register_bytes = rows_.register_bytes;
  k_.shape.max_threads = text.max_threads;
  const auto aligned = [](std::size_t at, std::size_t to) { return (at + to - 1) / to * to; };
  for (const auto& p : text.parameters) {
    const std::size_t at = aligned(k_.shape.block_bytes, p.alignment);
    k_.shape.parameter_offsets.push_back(at);
    k_.shape.parameter_bytes.push_back(p.bytes);
    k_.shape.block_bytes = at + p.bytes;
    own_[p.name] = kParameterWindow + at;
  }
  std::size_t shared = 0, local = 0;
  for (const auto& v : text.variables) {
    std::size_t& end = v.space == "shared" ? shared : local;
    const std::size_t begin = aligned(end, std::max<std::size_t>(v.alignment, v.space == "shared" ? 16 : 1));
    own_[v.name] = begin;
    end = begin + v.bytes;
    if (v.space != "shared") continue;
    k_.shared.push_back({static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(end)});
    k_.shape.static_shared += aligned(v.bytes, 4);
    end += 16;  // a gap
  }
  k_.shared_end = static_cast<std::uint32_t>(aligned(shared, 128));
  k_.local_bytes = static_cast<std::uint32_t>(aligned(local, 16));
}

Row Decoder::constant(std::uint64_t value, unsigned bits) {
  if (bits < 64) value &= bits == 16 ? 0xffff : 0xffffffff;
  if (bits == 1) value = value ? 0xffffffff : 0;
  const auto [found, is_new] = constants_.try_emplace({value, bits}, 0);
  if (!is_new) return found->second;
  const std::size_t at = k_.constants.size(), each = bits == 64 ? 8 : 4;
  k_.constants.resize(at + each * kLanes);
  for (unsigned l = 0; l < kLanes; ++l) std::memcpy(k_.constants.data() + at + each * l, &value, each);
  return found->second = static_cast<Row>(at) | kConstant;
}

Row Decoder::special(const std::string& name) {
  for (const auto& s : k_.specials)
    if (s.name == name) return s.row;
  static const std::vector<std::string> known = {"%tid.x",       "%tid.y",       "%tid.z",       "%ntid.x",
                                                 "%ntid.y",      "%ntid.z",      "%ctaid.x",     "%ctaid.y",
                                                 "%ctaid.z",     "%nctaid.x",    "%nctaid.y",    "%nctaid.z",
                                                 "%laneid",      "%warpid",      "%lanemask_eq", "%lanemask_le",
                                                 "%lanemask_lt", "%lanemask_ge", "%lanemask_gt"};
  if (std::find(known.begin(), known.end(), name) == known.end())
    throw std::runtime_error("the register " + name + " is not known");
  k_.specials.push_back({k_.register_bytes, name});
  k_.register_bytes += 128;
  return k_.specials.back().row;
}

std::uint64_t Decoder::symbol(const Operand& o) const {
  if (const auto found = own_.find(o.name); found != own_.end()) return found->second + o.value;
  if (dynamic_shared_.contains(o.name)) return k_.shared_end + o.value;
  throw std::runtime_error("the name " + o.name + " is not known");
}

Row Decoder::source(const Operand& o, unsigned bits) {
  switch (o.kind) {
    case Operand::kRegister: return row_of(o.number);
    case Operand::kSpecial: return special(o.name);
    case Operand::kSymbol: return constant(symbol(o), bits);
    case Operand::kImmediate: return constant(o.value, bits);
    default: throw std::runtime_error("an operand of this kind is not known here");
  }
}

void Decoder::vector(const Operand& o, std::array<Row, 4>& rows, std::uint8_t& elements) {
  elements = static_cast<std::uint8_t>(o.parts.size());
  for (std::size_t e = 0; e < o.parts.size(); ++e) rows.at(e) = source(o.parts[e], 32);
}

void Decoder::address(const Operand& o, Instruction& i) {
  if (o.number >= 0) {
    i.address = row_of(o.number);
    i.address_bits = static_cast<std::uint8_t>(width(o.number));
    i.offset = static_cast<std::int64_t>(o.value);
  } else {
    i.offset = static_cast<std::int64_t>(o.name.empty() ? o.value : symbol(o));
  }
}

// What the statement reads and writes; which is which depends on the operation.
void Decoder::operands(const ptx::Statement& s, const Words& words, Instruction& i) {
  const auto op = words[0];
  const auto& o = s.operands;
  const unsigned bits = bits_of(words.back());
  const auto written = [&](const Operand& to) {
    if (to.kind == Operand::kVector) {
      vector(to, i.to, i.elements);
      i.to_bits = static_cast<std::uint8_t>(width(to.parts[0].number));
    } else {
      i.to[0] = row_of(to.number);
      i.to_bits = static_cast<std::uint8_t>(width(to.number));
    }
  };
  const auto read = [&](std::size_t k, std::size_t at, unsigned width_of_constant) {
    const Operand& from = o.at(at);
    i.from[k] = source(from, width_of_constant);
    const unsigned w = from.kind == Operand::kRegister ? width(from.number) : width_of_constant;
    if (k == 0) i.from_bits = static_cast<std::uint8_t>(w);
    if (w == 64) i.wide |= static_cast<std::uint8_t>(1u << k);
    i.negated = i.negated || from.negated;
  };
  if (op == "bra") {
    i.target = static_cast<std::uint32_t>(text_.labels.at(o.at(0).name));
  } else if (op == "ld") {
    written(o.at(0));
    address(o.at(1), i);
  } else if (op == "st" || op == "red") {
    address(o.at(0), i);
    if (o.at(1).kind == Operand::kVector) {
      vector(o[1], i.from, i.elements);
      i.from_bits = static_cast<std::uint8_t>(o[1].parts[0].number >= 0 ? width(o[1].parts[0].number) : bits);
    } else {
      read(0, 1, bits);
    }
  } else if (op == "atom") {
    written(o.at(0));
    address(o.at(1), i);
    for (std::size_t k = 2; k < o.size(); ++k) read(k - 2, k, bits);
  } else if (op == "cp") {
    if (has(words, "wait_group")) i.extra = static_cast<std::uint16_t>(o.at(0).value);
    if (o.size() < 3) return;
    address(o[0], i);
    i.from[0] = row_of(o[1].number);
    if (o[1].value) throw std::runtime_error("a source with an offset is not known here");
    i.bytes = static_cast<std::uint8_t>(o[2].value);
    if (o.size() > 3) i.from[1] = source(o[3], 32);
  } else if (op == "bar" || op == "barrier") {
    if (has(words, "warp")) return read(0, 0, 32);
    const bool reduces = has(words, "red");
    if (reduces) written(o.at(0));
    if (o.at(reduces).kind != Operand::kImmediate || o[reduces].value != 0 || o.size() > (reduces ? 3u : 1u))
      throw std::runtime_error("barriers other than number 0 with all threads are not known");
    if (reduces) read(0, 2, 1);
  } else if (op == "mov" && o.at(0).kind == Operand::kVector) {
    for (std::size_t e = 0; e < o[0].parts.size(); ++e)
      if (o[0].parts[e].number >= 0) i.to.at(e) = row_of(o[0].parts[e].number);
    if (o[0].parts.size() != 2) throw std::runtime_error("moves to vectors of two only");
    read(0, 1, bits);
    i.extra = 'u';
  } else if (op == "mov" && o.at(1).kind == Operand::kVector) {
    written(o[0]);
    if (o[1].parts.size() != 2) throw std::runtime_error("moves from vectors of two only");
    for (std::size_t e = 0; e < 2; ++e) i.from[e] = source(o[1].parts[e], bits / 2);
    i.extra = 'p';
  } else if (!o.empty() && op != "nanosleep" && op != "membar" && op != "fence") {
    written(o[0]);
    std::size_t next = 1;
    if (o.size() > 1 && o[1].kind == Operand::kSecond) i.to[1] = row_of(o[next++].number);
    for (std::size_t k = 0; next < o.size(); ++k, ++next) {
      const bool counts = op == "shl" || op == "shr" || op == "bfe" || op == "vote" || op == "redux" || op == "match";
      const bool decides = (op == "vote" && k == 0) || (op == "selp" && k == 2);
      read(k, next, (counts && k > 0) || (op == "bfi" && k > 1) ? 32 : decides ? 1 : bits);
    }
  }
}

Instruction Decoder::instruction(const ptx::Statement& s) {
  const Words words = split(s.operation);
  Instruction i;
  i.source = s.source;
  operands(s, words, i);
  if (s.guard >= 0) {
    i.guard = row_of(s.guard);
    if (words[0] == "vote" || words[0] == "bar")
      throw std::runtime_error("a guarded operation of this kind is not known");
    i.negated = s.negated;
  }
  for (const auto find : {of_warp, access, conversion, logic, arithmetic}) {
    i.run = find(words, i);
    if (i.run) return i;
  }
  throw std::runtime_error("this operation is not known");
}

Kernel Decoder::kernel() {
  for (const auto& s : text_.statements) {
    try {
      k_.code.push_back(instruction(s));
    } catch (const std::exception& e) {
      throw std::runtime_error("PTX line " + std::to_string(s.at) + " of kernel " + k_.name + ": '" + s.operation +
                               "': " + e.what());
    }
  }
  k_.text = &text_;
  return std::move(k_);
}

// MAKI_GPU_MODEL_WITHOUT=FILE:LINE (the end of a path will do) leaves out the barriers of that line: the model has to
// notice.
void leave_out_barriers(Kernel& k) {
  static const char* const place = std::getenv("MAKI_GPU_MODEL_WITHOUT");
  if (!place || !*place) return;
  for (Instruction& i : k.code) {
    if (!i.barrier || i.to[0] != kNoRow) continue;
    for (int n = i.source; n >= 0; n = k.text->callers[static_cast<std::size_t>(n)]) {
      const ptx::Line& line = k.text->lines[static_cast<std::size_t>(n)];
      const auto file = k.files->find(line.file);
      if (file != k.files->end() && (file->second + ":" + std::to_string(line.line)).ends_with(place)) {
        i.run = nothing;
        i.jumps = false;
      }
    }
  }
}

}  // namespace

Kernel decode(const ptx::ModuleText& module, const std::string& name) {
  for (const ptx::KernelText& text : module.kernels) {
    if (text.name != name) continue;
    Kernel kernel = Decoder(text, module.dynamic_shared).kernel();
    kernel.files = &module.files;
    leave_out_barriers(kernel);
    return kernel;
  }
  throw std::runtime_error("the module has no kernel " + name);
}

}  // namespace gpu_model
