// What errors say.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace maki {
class Error;
}

namespace maki::test {

// The message of what `call` throws; empty where it throws nothing. What is of no such kind goes through.
template <class Kind = Error, class Call>
std::string error_of(Call call) {
  try {
    call();
  } catch (const Kind& error) {
    return error.what();
  }
  return {};
}

inline std::string text_of(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + '\n';
  return text;
}

// How often the words are in the text.
inline std::size_t times(const std::string& text, const std::string& words) {
  std::size_t count = 0;
  for (auto at = text.find(words); at != std::string::npos; at = text.find(words, at + 1)) ++count;
  return count;
}

// Whether a text has this part. A failing EXPECT_TRUE shows it.
inline ::testing::AssertionResult says(const std::string& text, const std::string& part) {
  if (text.find(part) != std::string::npos) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "'" << part << "' is missing in: " << text;
}

// Each of the words has to be in the text. A failure shows the caller's line.
inline void expect_contains(const std::string& text, const std::vector<std::string>& words,
                            const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  const ::testing::ScopedTrace caller(file, line, "");
  for (const std::string& word : words) EXPECT_TRUE(says(text, word));
}

// None of the words may be in the text.
inline void expect_lacks(const std::string& text, const std::vector<std::string>& words,
                         const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  const ::testing::ScopedTrace caller(file, line, "");
  for (const std::string& word : words)
    EXPECT_EQ(text.find(word), std::string::npos) << "'" << word << "' is in: " << text;
}

// Each of the words has to be in the message of what `call` throws.
template <class Kind = Error, class Call>
void expect_error(const Call& call, const std::vector<std::string>& words, const char* file = __builtin_FILE(),
                  int line = __builtin_LINE()) {
  const std::string text = error_of<Kind>(call);
  EXPECT_FALSE(text.empty()) << file << ":" << line << ": nothing was thrown";
  expect_contains(text, words, file, line);
}

}  // namespace maki::test
