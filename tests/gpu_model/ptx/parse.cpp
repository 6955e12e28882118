#include "tests/gpu_model/ptx/parse.hpp"

#include <charconv>
#include <cstdlib>

#include "tests/gpu_model/ptx/tokens.hpp"

namespace gpu_model::ptx {
namespace {

unsigned bits_of(std::string_view type) {  // ".b32", ".pred"
  if (type == ".pred") return 1;
  unsigned bits = 0;
  std::from_chars(type.data() + 2, type.data() + type.size(), bits);
  return bits;
}

bool is_number(std::string_view word) { return !word.empty() && word[0] >= '0' && word[0] <= '9'; }

class Parser {
 public:
  explicit Parser(std::string_view text) : t_(text) {}
  ModuleText module();

 private:
  using Names = std::map<std::string, int, std::less<>>;

  void skip_section();
  Variable declared(std::string_view space);
  Variable variable(std::string_view space);
  void parameters();
  void kernel();
  void body();
  void registers();
  void line_of_source();
  void statement();
  Operand operand();
  Operand name_or_register();
  std::uint64_t number();
  int find(std::string_view name) const;

  Tokens t_;
  ModuleText module_;
  KernelText* kernel_ = nullptr;
  std::map<Line, int> last_of_;  // the index of each line of the kernel where it was named last
  std::vector<Names> scopes_;
};

std::uint64_t Parser::number() {
  const bool negative = t_.accept("-");
  if (!is_number(t_.word())) t_.fail("a number was expected");
  std::string word(t_.take());
  if (!word.empty() && word.back() == 'U') word.pop_back();
  const std::uint64_t v = std::strtoull(word.c_str(), nullptr, 0);
  return negative ? 0 - v : v;
}

int Parser::find(std::string_view name) const {
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope)
    if (const auto found = scope->find(name); found != scope->end()) return found->second;
  return -1;
}

// After ".param", ".global" and the like: .align N .b8 name[size]
Variable Parser::declared(std::string_view space) {
  Variable v;
  v.space = space.substr(1);
  while (t_.word().starts_with('.')) {
    const auto word = t_.take();
    if (word == ".align") {
      v.alignment = number();
    } else if (word != ".ptr") {
      v.bytes = bits_of(word) / 8;
      v.alignment = std::max(v.alignment, v.bytes);
    }
  }
  v.name = t_.take();
  while (t_.accept("[")) {
    v.bytes *= t_.is("]") ? 0 : number();
    t_.expect("]");
  }
  return v;
}

Variable Parser::variable(std::string_view space) {
  Variable v = declared(space);
  while (!t_.is(";") && !t_.at_end()) t_.next();  // values
  t_.expect(";");
  return v;
}

void Parser::skip_section() {  // debugger's tables
  while (!t_.is("{")) t_.next();
  while (!t_.is("}")) t_.next();
  t_.next();
}

ModuleText Parser::module() {
  while (!t_.at_end()) {
    const auto word = t_.take();
    if (word == ".version" || word == ".target" || word == ".address_size") {
      t_.skip_line();
    } else if (word == ".file") {
      const int index = static_cast<int>(number());
      auto name = t_.take();
      module_.files[index] = std::string(name.substr(1, name.size() - 2));
      while (t_.accept(",")) number();
    } else if (word == ".section") {
      skip_section();
    } else if (word == ".extern" || word == ".visible" || word == ".weak") {
    } else if (word == ".global" || word == ".const" || word == ".shared") {
      const Variable v = variable(word);
      if (v.space == "shared") module_.dynamic_shared.insert(v.name);
    } else if (word == ".entry") {
      kernel();
    } else {
      t_.fail("'" + std::string(word) + "' is not known");
    }
  }
  return std::move(module_);
}

void Parser::parameters() {
  if (!t_.accept("(")) return;
  while (!t_.accept(")")) {
    t_.expect(".param");
    kernel_->parameters.push_back(declared(".param"));
    t_.accept(",");
  }
}

void Parser::kernel() {
  kernel_ = &module_.kernels.emplace_back();
  kernel_->name = t_.take();
  kernel_->lines.emplace_back();
  kernel_->callers.push_back(-1);
  last_of_.clear();
  parameters();
  while (!t_.is("{")) {
    const auto word = t_.take();
    if (word == ".maxntid") {
      kernel_->max_threads = 1;
      do kernel_->max_threads *= static_cast<unsigned>(number());
      while (t_.accept(","));
    } else if (word == ".minnctapersm" || word == ".maxnreg" || word == ".reqntid") {
      do number();
      while (t_.accept(","));
    } else {
      t_.fail("'" + std::string(word) + "' is not known");
    }
  }
  scopes_.clear();
  body();
  // A label at the very end still has a statement.
  Statement end;
  end.operation = "exit";
  kernel_->statements.push_back(end);
}

void Parser::registers() {
  const unsigned bits = bits_of(t_.take());
  do {
    const std::string name(t_.take());
    const auto add = [&](const std::string& n) {
      scopes_.back()[n] = static_cast<int>(kernel_->registers.size());
      kernel_->registers.push_back(bits);
    };
    if (t_.accept("<")) {
      const auto count = number();
      t_.expect(">");
      for (std::uint64_t k = 0; k < count; ++k) add(name + std::to_string(k));
    } else {
      add(name);
    }
  } while (t_.accept(","));
  t_.expect(";");
}

// .loc file line column [, function_name label [+ n], inlined_at file line column]
void Parser::line_of_source() {
  const int here = t_.line();
  const auto place = [this] {
    Line line;
    line.file = static_cast<int>(number());
    line.line = static_cast<int>(number());
    line.column = static_cast<int>(number());
    return line;
  };
  const Line line = place();
  int caller = -1;
  while (t_.line() == here && t_.accept(",")) {
    if (t_.accept("function_name")) {
      t_.next();
      if (t_.accept("+")) number();
    } else {
      t_.expect("inlined_at");
      // The call itself was named last before: a line has many calls inlined, and each of them many lines.
      const Line call = place();
      const auto [known, is_new] = last_of_.try_emplace(call, static_cast<int>(kernel_->lines.size()));
      if (is_new) kernel_->lines.push_back(call), kernel_->callers.push_back(-1);
      caller = known->second;
    }
  }
  last_of_[line] = static_cast<int>(kernel_->lines.size());
  kernel_->lines.push_back(line);
  kernel_->callers.push_back(caller);
}

void Parser::body() {
  t_.expect("{");
  scopes_.emplace_back();
  while (!t_.is("}")) {
    const auto word = t_.word();
    if (word == "{") {
      body();
    } else if (word == ".reg") {
      t_.next();
      registers();
    } else if (word == ".shared" || word == ".local") {
      t_.next();
      kernel_->variables.push_back(variable(word));
    } else if (word == ".loc") {
      t_.next();
      line_of_source();
    } else if (word == ".pragma") {
      while (!t_.accept(";")) t_.next();
    } else {
      statement();
    }
  }
  t_.next();
  scopes_.pop_back();
}

Operand Parser::name_or_register() {
  Operand o;
  const std::string name(t_.take());
  o.number = find(name);
  if (o.number >= 0) {
    o.kind = Operand::kRegister;
  } else if (name.starts_with('%')) {
    o.kind = Operand::kSpecial;
    o.name = name;
  } else {
    o.kind = Operand::kSymbol;
    o.name = name;
    if (t_.accept("+")) o.value = number();
  }
  return o;
}

Operand Parser::operand() {
  Operand o;
  const auto word = t_.word();
  if (t_.accept("{")) {
    o.kind = Operand::kVector;
    do o.parts.push_back(operand());
    while (t_.accept(","));
    t_.expect("}");
  } else if (t_.accept("[")) {
    o = name_or_register();
    o.kind = Operand::kAddress;
    while (t_.accept("+")) o.value += number();
    t_.expect("]");
  } else if ((word.size() == 10 && word.starts_with("0f")) || (word.size() == 18 && word.starts_with("0d"))) {
    o.value = std::strtoull(std::string(t_.take().substr(2)).c_str(), nullptr, 16);
  } else if (word == "-" || is_number(word)) {
    o.value = number();
  } else {
    const bool negated = t_.accept("!");
    o = name_or_register();
    o.negated = negated;
  }
  return o;
}

void Parser::statement() {
  Statement s;
  s.at = t_.line();
  if (t_.accept("@")) {
    s.negated = t_.accept("!");
    s.guard = find(t_.take());
    if (s.guard < 0) t_.fail("an unknown predicate");
  }
  const std::string name(t_.take());
  if (t_.accept(":")) {
    kernel_->labels[name] = kernel_->statements.size();
    return;
  }
  s.operation = name;
  s.source = static_cast<int>(kernel_->lines.size()) - 1;
  while (!t_.accept(";")) {
    if (!s.operands.empty() && t_.accept("|")) {
      Operand second = name_or_register();
      second.kind = Operand::kSecond;
      s.operands.push_back(second);
    } else {
      if (!s.operands.empty()) t_.expect(",");
      s.operands.push_back(operand());
    }
  }
  kernel_->statements.push_back(std::move(s));
}

}  // namespace

ModuleText parse(std::string_view text) { return Parser(text).module(); }

}  // namespace gpu_model::ptx
