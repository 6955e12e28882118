// Scripts of .ci/ and the Makefile among stand-ins for the programs of other machines.
#pragma once

#include "tests/src/cli/program_fixture.hpp"

namespace maki::test {

class StandIns : public Program {
 protected:
  void SetUp() final {
    if (!fs::exists(source_directory() + "/.ci")) GTEST_SKIP() << "a bundle has been built";
    prepare();
  }
  virtual void prepare() {}
  std::string script(const std::string& name) const { return source_directory() + "/.ci/" + name; }
  std::string executable(const std::string& name, const std::string& text) const {
    fs::permissions(write(name, "#!/bin/bash\n" + text), fs::perms::owner_all);
    return path(name);
  }
  // With stand-ins before all else on PATH, and nothing of this environment but that.
  Result among_stand_ins(const std::string& command) const {
    return call_shell("env -i PATH=\"" + directory_.string() + ":$PATH\" " + command + " </dev/null");
  }
};

}  // namespace maki::test
