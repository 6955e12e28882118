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

// Each of the words has to be in the text.
inline void expect_contains(const std::string& text, const std::vector<std::string>& words) {
  for (const std::string& word : words) EXPECT_TRUE(says(text, word));
}

}  // namespace maki::test
