// What the documentation promises of itself.
#include <gtest/gtest.h>

#include <cctype>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "src/config/parse.hpp"
#include "tests/places.hpp"

namespace maki {
namespace {

namespace fs = std::filesystem;

std::string text_of(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

std::vector<fs::path> pages() {
  const fs::path root = test::source_directory();
  std::vector<fs::path> found = {root / "README.md"};
  for (const char* folder : {"docs", "kernels", "host", "wan", "src", "tests", "bench", "configs"})
    for (fs::recursive_directory_iterator at(root / folder), end; at != end; ++at)
      if (at->path().extension() == ".md") found.push_back(at->path());
  return found;
}

// "## When a rank is lost" is "#when-a-rank-is-lost".
std::string anchor(const std::string& heading) {
  std::string name;
  for (const char c : heading.substr(heading.find(' ') + 1)) {
    if (c == ' ') name += '-';
    if (std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_') name += static_cast<char>(std::tolower(c));
  }
  return name;
}

bool has_anchor(const fs::path& page, const std::string& wanted) {
  std::istringstream lines(text_of(page));
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with('#') && anchor(line) == wanted) return true;
  return false;
}

class Docs : public testing::Test {
 protected:
  void SetUp() override {
    if (!fs::exists(test::source_directory() + "/docs")) GTEST_SKIP() << "docs/ is not here: a bundle has no sources";
  }
};

TEST_F(Docs, ReferenceOfKeysIsThatOfTheTable) {
  EXPECT_TRUE(text_of(test::source_directory() + "/docs/configuration.toml") == describe_keys())
      << "docs/configuration.toml is not what `maki config` prints: run `make docs`";
}

TEST_F(Docs, LinksLeadSomewhere) {
  const std::regex link(R"(\]\(([^)#]*)(#[^)]*)?\))");
  for (const fs::path& page : pages()) {
    const std::string text = text_of(page);
    for (std::sregex_iterator at(text.begin(), text.end(), link), end; at != end; ++at) {
      const std::string file = (*at)[1], heading = (*at)[2];
      if (file.starts_with("http")) continue;
      const fs::path target = file.empty() ? page : page.parent_path() / file;
      EXPECT_TRUE(fs::exists(target)) << page << " links to " << file;
      EXPECT_TRUE(heading.empty() || has_anchor(target, heading.substr(1))) << page << " links to " << file << heading;
    }
  }
}

// Cited in code: docs/design.md, "Force split".
TEST_F(Docs, CodeCitesHeadingsThatAreThere) {
  const fs::path root = test::source_directory();
  const std::regex citation("docs/design\\.md, \"([^\"]*)\"");
  int found = 0;
  for (const char* folder : {"kernels", "host", "wan", "src", "bench"})
    for (fs::recursive_directory_iterator file(root / folder), none; file != none; ++file) {
      if (!file->is_regular_file() || file->path().extension() == ".png") continue;
      const std::string text = text_of(file->path());
      for (std::sregex_iterator at(text.begin(), text.end(), citation), end; at != end; ++at, ++found)
        EXPECT_TRUE(has_anchor(root / "docs/design.md", anchor("# " + (*at)[1].str())))
            << file->path() << " cites " << (*at)[1];
    }
  EXPECT_GT(found, 0);
}

}  // namespace
}  // namespace maki
