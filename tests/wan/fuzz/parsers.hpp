// Everything in the wide-area module that reads bytes of a peer or of a file, as functions to be fed anything.
#pragma once

#include <cstddef>
#include <span>
#include <stdexcept>
#include <vector>

namespace maki::wan::fuzz {

using Block = std::vector<std::byte>;

// What no bytes whatever may bring about.
class Broken : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

struct Parser {
  const char* name;
  // True where the bytes are taken for something; false where they are refused as they should be. Throws Broken where
  // what was taken is not what these bytes say: encoding it again has to give them back.
  bool (*feed)(std::span<const std::byte>);
  std::vector<Block> (*samples)();  // that are taken
  bool sealed;                      // ends with a checksum over the rest, which chance would never meet
};

const std::vector<Parser>& parsers();
// Makes the last eight bytes what sealed messages want there.
void seal(std::span<std::byte> bytes);

}  // namespace maki::wan::fuzz
