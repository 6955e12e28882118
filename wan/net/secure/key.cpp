#include "wan/net/secure/key.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <span>
#include <string_view>
#include <utility>

#include "wan/net/error.hpp"
#include "wan/net/settings.hpp"
#include "wan/net/socket/tcp.hpp"

namespace maki::wan {

// ---- keys ----------------------------------------------------------------------------------------------------------

namespace {

constexpr std::size_t kMaxKeyFile = 4096;
constexpr std::size_t kIdDigits = 16;
constexpr std::string_view kFirstLine = "maki-key 1";

// Text that holds a secret: wiped from memory on destruction.
struct SecretText {
  std::string text;
  explicit SecretText(std::size_t room) { text.reserve(room); }  // one allocation: growing would leave copies
  ~SecretText() { OPENSSL_cleanse(text.data(), text.capacity()); }
  SecretText(const SecretText&) = delete;
  SecretText& operator=(const SecretText&) = delete;
};

bool from_hex(std::string_view text, std::span<std::byte> out) {
  if (text.size() != 2 * out.size()) return false;
  const char* at = text.data();
  for (std::byte& byte : out) {
    std::uint8_t value = 0;
    if (std::from_chars(at, at + 2, value, 16).ptr != at + 2) return false;
    byte = std::byte{value};
    at += 2;
  }
  return true;
}

[[noreturn]] void not_a_key(const std::string& path, const std::string& reason) {
  throw SecurityError("cannot use key file " + path, reason,
                      "make one with 'maki wan keygen' and give the peer a copy");
}

void read_text(int descriptor, const std::string& path, SecretText& out) {
  out.text.resize(kMaxKeyFile + 1);
  std::size_t size = 0;
  while (size < out.text.size()) {
    const ssize_t got = ::read(descriptor, out.text.data() + size, out.text.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) not_a_key(path, std::strerror(errno));
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  if (size > kMaxKeyFile) not_a_key(path, fmt::format("it is longer than {} bytes", kMaxKeyFile));
  out.text.resize(size);
}

}  // namespace

std::string to_hex(std::span<const std::byte> bytes) {
  std::string text;
  for (const std::byte b : bytes) fmt::format_to(std::back_inserter(text), "{:02x}", static_cast<unsigned>(b));
  return text;
}

bool is_hex(std::string_view text, std::size_t digits) {
  return text.size() == digits && text.find_first_not_of("0123456789abcdef") == text.npos;
}

// Checks the open file, not the name, so that nobody can exchange it in between.
void check_private_file(int descriptor, const std::string& path, const std::string& what) {
  const std::string problem = "cannot use " + what + " " + path;
  struct stat info {};
  if (::fstat(descriptor, &info) != 0) throw SecurityError(problem, std::strerror(errno));
  if (!S_ISREG(info.st_mode)) throw SecurityError(problem, "it is not a regular file");
  if (info.st_uid != ::geteuid())
    throw SecurityError(problem,
                        fmt::format("it belongs to user {}, and this program runs as {}", info.st_uid, ::geteuid()),
                        "make a copy of your own with mode 600");
  if ((info.st_mode & 077) != 0)
    throw SecurityError(problem, fmt::format("others may read or write it: mode {:03o}", info.st_mode & 0777),
                        "chmod 600 " + path + ", and make a new key if others may have seen this one");
}

Key parse_key(std::string_view text, const std::string& path) {
  Key key;
  bool first = true, has_secret = false;
  for (int number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (first && line != kFirstLine) not_a_key(path, "its first line is not '" + std::string(kFirstLine) + "'");
    if (std::exchange(first, false) || line.empty() || line.front() == '#') continue;

    const std::size_t equals = line.find('=');
    const std::string_view name = trimmed(line.substr(0, equals));
    const std::string_view value = equals == line.npos ? std::string_view{} : trimmed(line.substr(equals + 1));
    if (name == "id" && key.id.empty()) {
      if (!is_hex(value, kIdDigits))
        not_a_key(path, fmt::format("line {}: the id is not {} hexadecimal digits", number, kIdDigits));
      key.id = value;
    } else if (name == "key" && !has_secret) {
      if (!from_hex(value, key.secret))
        not_a_key(path, fmt::format("line {}: the key is not {} hexadecimal digits", number, 2 * key.secret.size()));
      has_secret = true;
    } else {
      not_a_key(path, fmt::format("line {} is neither 'id = ...' nor 'key = ...', once each", number));
    }
  }
  if (key.id.empty()) not_a_key(path, "it has no id");
  if (!has_secret) not_a_key(path, "it has no key");
  return key;
}

Key::~Key() { OPENSSL_cleanse(secret.data(), secret.size()); }

Key Key::make() {
  Key key;
  std::array<std::byte, kIdDigits / 2> id;
  random_bytes(id);
  key.id = to_hex(id);
  random_bytes(key.secret);
  return key;
}

Key read_key(const std::string& path) {
  // Non-blocking: opening a pipe must not wait for a writer.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (file.descriptor() < 0) not_a_key(path, std::strerror(errno));
  check_private_file(file.descriptor(), path, "key file");
  SecretText content(kMaxKeyFile + 1);
  read_text(file.descriptor(), path, content);
  return parse_key(content.text, path);
}

namespace {

bool same_key(const std::string& file, const std::string& other) {
  if (file == other) return true;
  try {
    return same_in_constant_time(read_key(file).secret, read_key(other).secret);
  } catch (const SecurityError&) {
    return false;
  }
}

}  // namespace

void check_relay_key(const std::string& relay_key, const std::vector<std::string>& path_keys) {
  for (const std::string& file : path_keys)
    if (same_key(relay_key, file))
      throw SecurityError(fmt::format("the relay's key {} is the key {} of the path", relay_key, file),
                          "the relay holds it too, and could read and change all that it forwards",
                          "give the relay a key of its own ('maki wan keygen' makes one)");
}

void write_key(const Key& key, const std::string& path) {
  Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (file.descriptor() < 0)
    throw Error("cannot write key file " + path, std::strerror(errno),
                errno == EEXIST ? "choose another name; keys are never overwritten" : "");
  SecretText content(kMaxKeyFile);
  content.text += std::string(kFirstLine) + "\n";
  content.text += "# Both peers hold a copy of this file; nobody else may read it (mode 600).\n";
  content.text += "id = " + key.id + "\nkey = ";
  for (const std::byte b : key.secret)
    fmt::format_to(std::back_inserter(content.text), "{:02x}", static_cast<unsigned>(b));
  content.text += '\n';

  bool good = true;
  for (std::string_view rest = content.text; good && !rest.empty();) {
    const ssize_t put = ::write(file.descriptor(), rest.data(), rest.size());
    if (put > 0) rest.remove_prefix(static_cast<std::size_t>(put));
    good = put >= 0 || errno == EINTR;
  }
  good = good && ::fsync(file.descriptor()) == 0;
  if (good && ::close(file.release()) == 0) return;
  const std::string reason = std::strerror(errno);
  ::unlink(path.c_str());  // half a key is useless
  throw Error("cannot write key file " + path, reason);
}

Digest hmac_sha256(std::span<const std::byte> key, std::span<const std::byte> text) {
  Digest digest;
  unsigned size = 0;
  const auto* bytes = reinterpret_cast<const unsigned char*>(text.data());
  if (HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), bytes, text.size(),
           reinterpret_cast<unsigned char*>(digest.data()), &size) == nullptr ||
      size != digest.size())
    throw SecurityError("OpenSSL cannot compute HMAC-SHA256", "", "check the installation of OpenSSL 3");
  return digest;
}

bool same_in_constant_time(std::span<const std::byte> a, std::span<const std::byte> b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

void random_bytes(std::span<std::byte> out) {
  if (RAND_bytes(reinterpret_cast<unsigned char*>(out.data()), static_cast<int>(out.size())) != 1)
    throw SecurityError("the system gives no random numbers", "", "check OpenSSL's random generator");
}

// ---- parties -------------------------------------------------------------------------------------------------------

namespace {

// Not its name or /etc/machine-id, since machines are often copies of one another.
std::string this_machine() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  std::array<char, 64> network{};
  const ssize_t size = ::readlink("/proc/self/ns/net", network.data(), network.size());
  if (!boot.empty() && size > 0) return boot + " " + std::string(network.data(), static_cast<std::size_t>(size));
  static const Key process = Key::make();  // identifies at least this process
  return process.id;
}

}  // namespace

Party party_of(const std::string& name) {
  const std::string text = name.empty() ? "machine " + this_machine() : "name " + name;
  const std::string label = "maki wan party 1";
  const Digest digest = hmac_sha256(std::as_bytes(std::span(label)), std::as_bytes(std::span(text)));
  Party party;
  std::copy_n(digest.begin(), party.size(), party.begin());
  return party;
}

}  // namespace maki::wan
