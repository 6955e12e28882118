// What the documentation promises of itself.
#include <gtest/gtest.h>

#include <cctype>
#include <filesystem>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "src/config/parse.hpp"
#include "tests/places.hpp"

namespace maki {
namespace {

using namespace test;
namespace fs = std::filesystem;

// Files in these folders whose names end in one of these ways.
std::vector<fs::path> files_in(const std::vector<std::string>& folders, const std::set<std::string>& endings) {
  std::vector<fs::path> found;
  for (const std::string& folder : folders)
    for (fs::recursive_directory_iterator at(fs::path(source_directory()) / folder), end; at != end; ++at)
      if (endings.contains(at->path().extension())) found.push_back(at->path());
  return found;
}

const std::set<std::string> kSources = {".hpp", ".cpp", ".cuh", ".cu", ".inl", ".h", ".c"};

std::vector<fs::path> pages() {
  std::vector<fs::path> found =
      files_in({"docs", "kernels", "host", "wan", "src", "tests", "bench", "configs"}, {".md"});
  found.push_back(fs::path(source_directory()) / "README.md");
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
  for (const std::string& line : lines_of(page))
    if (line.starts_with('#') && anchor(line) == wanted) return true;
  return false;
}

class Docs : public testing::Test {
 protected:
  void SetUp() override {
    if (!fs::exists(source_directory() + "/docs")) GTEST_SKIP() << "docs/ is not here: a bundle has no sources";
  }
};

TEST_F(Docs, ReferenceOfKeysIsThatOfTheTable) {
  EXPECT_TRUE(text_of(source_directory() + "/docs/configuration.toml") == describe_keys())
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
  const fs::path root = source_directory();
  const std::regex citation("docs/design\\.md, \"([^\"]*)\"");
  int found = 0;
  std::vector<fs::path> files = files_in({"kernels", "host", "wan", "src", "bench"}, kSources);
  for (const fs::path& page : pages()) files.push_back(page);
  for (const fs::path& file : files) {
    const std::string text = text_of(file);
    for (std::sregex_iterator at(text.begin(), text.end(), citation), end; at != end; ++at, ++found)
      EXPECT_TRUE(has_anchor(root / "docs/design.md", anchor("# " + (*at)[1].str()))) << file << " cites " << (*at)[1];
  }
  EXPECT_GT(found, 0);
}

// What the comments of a source say.
std::string comments_of(const fs::path& source) {
  std::string said;
  for (const std::string& line : lines_of(source))
    if (const auto at = line.find("//"); at != line.npos) said += line.substr(at) + '\n';
  return said;
}

TEST_F(Docs, SourcesThatPagesAndCommentsNameAreThere) {
  const std::vector<fs::path> sources = files_in({"kernels", "host", "wan", "src", "tests", "bench"}, kSources);
  std::set<std::string> names;  // "a/b/NAME", "b/NAME" and "NAME"
  for (const fs::path& source : sources) {
    fs::path name;
    for (fs::path rest = fs::relative(source, source_directory()); rest.has_filename(); rest = rest.parent_path())
      names.insert((name = name.empty() ? rest.filename() : rest.filename() / name).string());
  }
  const std::regex named(R"((^|[^\w./<-])([A-Za-z]\w*(/\w+)*\.(hpp|cpp|cuh|cu|inl))\b)");
  const auto check = [&](const fs::path& file, const std::string& said) {
    for (std::sregex_iterator at(said.begin(), said.end(), named), end; at != end; ++at) {
      const std::string name = (*at)[2];
      EXPECT_TRUE(name.starts_with("NAME") || names.contains(name)) << file << " names " << name;
    }
  };
  for (const fs::path& page : pages())
    if (page.filename() != "NOTES.md") check(page, text_of(page));  // notes name what was there when it was measured
  for (const fs::path& source : sources) check(source, comments_of(source));
}

}  // namespace
}  // namespace maki
