#pragma once

#include <filesystem>
#include <set>
#include <string>

/// Keys of encrypted connections (CURVE): a pair of a public and a secret key, each 40 characters
/// of text. A key file holds one key per line, after the word "public" or "secret". Empty lines and
/// lines that begin with "# " are skipped.
namespace troupe::env::wire {

struct KeyPair {
  std::string public_key;
  std::string secret_key;
};

/// The keys of a socket that binds. Each peer must prove that it has the secret key of an allowed
/// public key.
struct ServerKeys {
  KeyPair own;
  std::set<std::string> allowed; // public keys
};

/// The keys of a socket that connects. The server must prove that it has the secret key of its
/// public key.
struct ClientKeys {
  KeyPair own;
  std::string server; // its public key
};

/// Throws std::runtime_error if ZeroMQ was built without encryption.
KeyPair make_key_pair();

/// Returns the pair that belongs to a secret key. check_key() must have accepted the key.
KeyPair pair_of(const std::string& secret_key);

/// Writes `folder`/troupe.secret (mode 0600) and `folder`/troupe.public, and creates the folder.
/// Never replaces a file: throws std::invalid_argument if one exists. Throws std::runtime_error if
/// the system refuses to write.
void write_key_pair(const KeyPair& pair, const std::filesystem::path& folder);

/// Reads a file with one secret key and returns its pair. Only the owner of the file may be able to
/// read it; for a file that root owns, its group may too, so that a container that does not run as
/// root can read its secrets. Throws std::invalid_argument naming the file and the fault.
KeyPair read_secret_key(const std::filesystem::path& file);

/// Returns the public keys in a file, at least one. For a file with a secret key, returns its
/// public key.
std::set<std::string> read_public_keys(const std::filesystem::path& file);

/// Read the keys from files: for a server its secret key and the public keys it allows, for a
/// client its secret key and the public key of its server.
ServerKeys read_server_keys(const std::filesystem::path& own, const std::filesystem::path& allowed);
ClientKeys read_client_keys(const std::filesystem::path& own, const std::filesystem::path& server);

/// Throws std::invalid_argument if `key` is not a key; `what` names it in the message.
void check_key(const std::string& key, const std::string& what);

} // namespace troupe::env::wire
