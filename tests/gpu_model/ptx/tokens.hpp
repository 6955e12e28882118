// Words of PTX text.
#pragma once

#include <cctype>
#include <stdexcept>
#include <string>
#include <string_view>

namespace gpu_model::ptx {

class Tokens {
 public:
  explicit Tokens(std::string_view text) : text_(text) { next(); }

  std::string_view word() const { return word_; }
  bool at_end() const { return word_.empty(); }
  int line() const { return line_; }
  bool is(std::string_view w) const { return word_ == w; }
  void next();
  std::string_view take() {
    const auto w = word_;
    next();
    return w;
  }
  bool accept(std::string_view w) {
    if (!is(w)) return false;
    next();
    return true;
  }
  void expect(std::string_view w) {
    if (!accept(w)) fail("'" + std::string(w) + "' was expected");
  }
  // Everything up to the end of the present line is left out.
  void skip_line() {
    const int here = line_;
    while (!at_end() && line_ == here) next();
  }
  [[noreturn]] void fail(const std::string& what) const {
    throw std::runtime_error("PTX line " + std::to_string(line_) + ": " + what + " at '" + std::string(word_) + "'");
  }

 private:
  static bool in_name(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$' || c == '.' || c == '%';
  }

  std::string_view text_, word_;
  std::size_t at_ = 0;
  int line_ = 1;
};

inline void Tokens::next() {
  for (; at_ < text_.size(); ++at_) {
    if (text_[at_] == '\n') {
      ++line_;
    } else if (text_.substr(at_, 2) == "//") {
      at_ = text_.find('\n', at_);
      if (at_ == std::string_view::npos) at_ = text_.size();
      --at_;  // the line's end is counted
    } else if (!std::isspace(static_cast<unsigned char>(text_[at_])) && text_[at_] != '\0') {
      break;
    }
  }
  const std::size_t begin = at_;
  if (at_ < text_.size()) {
    if (text_[at_] == '"') {
      at_ = text_.find('"', at_ + 1) + 1;
    } else if (in_name(text_[at_])) {
      while (at_ < text_.size() && in_name(text_[at_])) ++at_;
      while (at_ + 1 < text_.size() && text_.substr(at_, 2) == "::") {  // .shared::cta
        at_ += 2;
        while (at_ < text_.size() && in_name(text_[at_])) ++at_;
      }
    } else {
      ++at_;
    }
  }
  word_ = text_.substr(begin, at_ - begin);
}

}  // namespace gpu_model::ptx
