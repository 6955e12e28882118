// PTX text as a list of statements for each kernel: names are resolved to registers, labels to places; what an
// operation means is not known here (interpreter/decode.cpp).
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace gpu_model::ptx {

struct Operand {
  enum Kind {
    kRegister,   // `number`
    kSecond,     // the second register of "%r1|%p1": `number`
    kImmediate,  // `value`: a whole number, or the bits of a float or a double
    kSpecial,    // `name`: %tid.x ...
    kSymbol,     // `name` + `value`: a variable, a parameter, a label
    kAddress,    // [register + value]: `number` (-1: none), or [name + value]
    kVector,     // {a, b, ...}: `parts`
  };
  Kind kind = kImmediate;
  int number = -1;
  std::uint64_t value = 0;
  bool negated = false;  // "!%p1"
  std::string name;
  std::vector<Operand> parts;
};

struct Line {
  int file = 0, line = 0, column = 0;
  auto operator<=>(const Line&) const = default;
};

struct Statement {
  std::string operation;  // "ld.global.f32"
  int guard = -1;         // a predicate, and ...
  bool negated = false;   // ... whether the statement is for lanes where it is false
  std::vector<Operand> operands;
  int source = 0;  // index into KernelText::lines
  int at = 0;      // line of the PTX text
};

struct Variable {
  std::string name, space;  // "global", "const", "shared", "local", "param"
  std::size_t bytes = 1, alignment = 1;
};

struct KernelText {
  std::string name;
  std::vector<Variable> parameters;
  std::vector<Variable> variables;  // shared and local ones
  std::vector<unsigned> registers;  // bits of each: 1 (a predicate), 16, 32, 64
  std::vector<Statement> statements;
  std::map<std::string, std::size_t> labels;  // statement that follows
  std::vector<Line> lines;
  std::vector<int> callers;  // of each line that was inlined, the index of the line that it was inlined at; -1: none
  unsigned max_threads = 0;
};

using Names = std::set<std::string, std::less<>>;

struct ModuleText {
  std::vector<KernelText> kernels;
  Names dynamic_shared;  // global and constant variables are not modelled: a kernel that uses one is refused
  std::map<int, std::string> files;
};

// Throws std::runtime_error with the line that is not understood.
ModuleText parse(std::string_view text);

}  // namespace gpu_model::ptx
