#include "src/cli/wan/share_options.hpp"

#include <fmt/format.h>

#include "kernels/error.hpp"
#include "wan/net/secure/key.hpp"

namespace maki {
namespace {

using wan::copy::ServerOptions;
using wan::copy::Share;

void add_share(ServerOptions& server, const std::string& identity, const Share& share) {
  if (!server.shares.emplace(identity, share).second)
    throw Error(fmt::format("the {} is given twice", share.holder), "",
                "give each key one folder, by --allow or by --key");
}

std::string line_of(const Share& share) {
  return fmt::format("{}: {}, {}", share.holder, share.root, share.read_only ? "reading only" : "reading and writing");
}

}  // namespace

void add_share_options(CLI::App& command, ShareOptions& options) {
  command.add_option("--root", options.root, "folder of all who have no --allow; remote names count from it");
  command.add_flag("--read-only", options.read_only, "take no files into --root");
  command
      .add_option("--allow", options.allowed,
                  "let the holder of this key have this folder alone: to read (:ro, also where nothing is said) or to "
                  "read and write (:rw); may be given many times. With certificates: the name in the client's in place "
                  "of a key file")
      ->type_name("KEYFILE:ROOT[:ro|:rw]")
      ->allow_extra_args(false);
}

Allowed parse_allowed(const std::string& text) {
  const std::size_t colon = text.find(':');
  Allowed allowed{text.substr(0, colon), colon == std::string::npos ? "" : text.substr(colon + 1)};
  for (const char* mode : {":ro", ":rw"})
    if (allowed.root.ends_with(mode)) {
      allowed.read_only = mode == std::string_view(":ro");
      allowed.root.resize(allowed.root.size() - 3);
      break;
    }
  if (allowed.who.empty() || allowed.root.empty())
    throw Error(fmt::format("--allow: '{}' does not fit", text),
                "it names a key file, a folder and what may be done there", "give KEYFILE:ROOT:ro or KEYFILE:ROOT:rw");
  return allowed;
}

std::vector<std::string> keys_of(const ShareOptions& options) {
  std::vector<std::string> files;
  for (const std::string& text : options.allowed) files.push_back(parse_allowed(text).who);
  return files;
}

void set_shares(const ShareOptions& options, const wan::Security& security, ServerOptions& server) {
  const bool certificates = !security.certificate.empty();
  if (security.insecure && !options.allowed.empty())
    throw Error("--allow cannot be kept", "without encryption anyone may call, and nobody shows a key",
                "leave --insecure out");
  for (const std::string& text : options.allowed) {
    const Allowed allowed = parse_allowed(text);
    add_share(server, certificates ? allowed.who : wan::read_key(allowed.who).id,
              {allowed.root, allowed.read_only, (certificates ? "certificate " : "key ") + allowed.who});
  }
  const std::size_t own = security.key_files.size() - (certificates ? 0 : options.allowed.size());
  if (options.root.empty()) {
    if (options.allowed.empty() || own > 0)
      throw Error("no folder is served to those who have no --allow", "", "give --root FOLDER");
    return;
  }
  for (std::size_t i = 0; i < own; ++i)
    add_share(server, wan::read_key(security.key_files[i]).id,
              {options.root, options.read_only, "key " + security.key_files[i]});
  if (own > 0) return;
  if (!certificates && !security.insecure)
    throw Error("nobody may have --root", "all keys are those of --allow", "give --key FILE, or leave --root out");
  server.others = Share{options.root, options.read_only, certificates ? "" : "without a key"};
}

std::vector<std::string> shares_text(const ServerOptions& server) {
  std::vector<std::string> lines;
  for (const auto& [identity, share] : server.shares) lines.push_back(line_of(share));
  if (server.others) {
    Share others = *server.others;
    if (others.holder.empty()) others.holder = "other certificates";
    lines.push_back(line_of(others));
  }
  return lines;
}

}  // namespace maki
