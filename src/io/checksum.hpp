// Checksums of files: XXH3, 64 bits, as 16 hexadecimal digits.
#pragma once

#include <xxhash.h>

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace maki {

// The checksum of bytes that come one after another.
class Checksum {
 public:
  Checksum() : state_(XXH3_createState(), XXH3_freeState) { XXH3_64bits_reset(state_.get()); }
  void add(const void* data, std::size_t bytes) { XXH3_64bits_update(state_.get(), data, bytes); }
  std::string text() const;

 private:
  std::unique_ptr<XXH3_state_t, XXH_errorcode (*)(XXH3_state_t*)> state_;
};

std::string checksum_of(std::string_view bytes);
// Throws Error where the file cannot be read.
std::string checksum_of_file(const std::string& path);

}  // namespace maki
