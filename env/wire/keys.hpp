#pragma once

#include <filesystem>
#include <set>
#include <string>

/// Keys of encrypted connections (CURVE): a pair of a public and a secret key, each 40 characters
/// of text. Files hold one key a line, after the word "public" or "secret"; lines that begin with
/// "# " and empty ones are skipped.
namespace troupe::env::wire {

struct KeyPair {
  std::string public_key;
  std::string secret_key;
};

/// For a socket that binds: peers must prove that they have the secret of an allowed public key.
struct ServerKeys {
  KeyPair own;
  std::set<std::string> allowed; // public keys
};

/// For a socket that connects: the server must prove that it has the secret of its public key.
struct ClientKeys {
  KeyPair own;
  std::string server; // its public key
};

/// Throws std::runtime_error when ZeroMQ was built without encryption.
KeyPair make_key_pair();

/// The pair of a secret key that check_key() has accepted.
KeyPair pair_of(const std::string& secret_key);

/// Writes `folder`/troupe.secret (mode 0600) and `folder`/troupe.public; makes the folder. Throws
/// std::invalid_argument rather than replace a file, std::runtime_error when the system refuses.
void write_key_pair(const KeyPair& pair, const std::filesystem::path& folder);

/// The pair in a file with one secret key, readable by its owner only (root's file: its
/// group too, so that a container that does not run as root gets its secrets). Throws
/// std::invalid_argument that names the file and what is wrong.
KeyPair read_secret_key(const std::filesystem::path& file);

/// The public keys of a file, at least one. Of a file with a secret key: its public key.
std::set<std::string> read_public_keys(const std::filesystem::path& file);

/// From files: a server's secret key and the public keys that it allows; a client's secret key and
/// its server's public key.
ServerKeys read_server_keys(const std::filesystem::path& own, const std::filesystem::path& allowed);
ClientKeys read_client_keys(const std::filesystem::path& own, const std::filesystem::path& server);

/// Throws std::invalid_argument on what is no key; `what` names it.
void check_key(const std::string& key, const std::string& what);

} // namespace troupe::env::wire
