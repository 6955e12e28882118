#include "wan/net/relay/admission_check.hpp"

#include <algorithm>
#include <filesystem>

#include "wan/net/error.hpp"

namespace maki::wan {
namespace {

namespace fs = std::filesystem;
using namespace admission;

Nonce fresh_nonce() {
  Nonce nonce;
  random_bytes(nonce);
  return nonce;
}

std::vector<std::string> keys_in(const std::string& directory) {
  std::vector<std::string> files;
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(directory, failed)) {
    if (entry.path().extension() == ".key") files.push_back(entry.path().string());
  }
  if (failed) throw SecurityError("cannot read the directory of keys '" + directory + "'", failed.message());
  if (files.empty()) throw SecurityError("no key in the directory '" + directory + "'", "no file is called *.key");
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

KeyRing KeyRing::read(const std::vector<std::string>& files) {
  KeyRing ring;
  for (const std::string& file : files) {
    std::error_code failed;
    const bool directory = fs::is_directory(file, failed);
    for (const std::string& one : directory ? keys_in(file) : std::vector{file}) ring.add(read_key(one));
  }
  if (ring.size() == 0)
    throw SecurityError("the relay has no key", "only peers that hold one of its keys may use it",
                        "make one with 'maki wan keygen', give it here with --key and copy it to the peers");
  return ring;
}

void KeyRing::add(const Key& key) {
  const auto [place, added] = keys_.emplace(key.id, key);
  if (!added && !same_in_constant_time(place->second.secret, key.secret))
    throw SecurityError("two of the relay's keys have the id " + key.id, "their secrets differ",
                        "leave one of them out");
}

const Key* KeyRing::find(const std::string& id) const {
  const auto found = keys_.find(id);
  return found == keys_.end() ? nullptr : &found->second;
}

AdmissionCheck::AdmissionCheck(const KeyRing& keys)
    : keys_(keys), nonce_(fresh_nonce()), challenge_(encode(Challenge{kVersion, nonce_})), incoming_(kRequestBytes),
      verdict_(0) {}

IoStatus AdmissionCheck::receive(int descriptor) {
  if (!challenged_) {
    if (const IoStatus status = challenge_.send(descriptor); status != IoStatus::kDone) return status;
    challenged_ = true;
  }
  if (const IoStatus status = incoming_.receive(descriptor); status != IoStatus::kDone) return status;
  request_bytes_ = to_array<kRequestBytes>(incoming_);
  request_ = decode_request(request_bytes_);
  const Key* key = keys_.find(request_.key_id);
  if (key != nullptr && signed_with(*key, request_bytes_, nonce_)) key_ = key;
  return IoStatus::kDone;
}

void AdmissionCheck::decide(const Verdict& verdict) {
  verdict_ = Transfer(encode(verdict, request_bytes_, nonce_, key_));
}

}  // namespace maki::wan
