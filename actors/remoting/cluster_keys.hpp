#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "env/wire/deployment_keys.hpp"

namespace troupe::actors {

/// A folder of keys that all nodes of a deployment share. Only its owner may read it:
///
///   ca.crt         the authority that signs node certificates (PEM)
///   ca.key         its secret key; stays where the folder was made, because no node needs it
///   node.pem       the nodes' certificate and secret key
///   curve.secret   the key pair of the data plane (CURVE)
///   curve.retired  previous pairs, each with its expiry time; may be missing
///   token          the HTTP token
struct ClusterKeys {
  std::filesystem::path folder; // named in messages
  std::string authority;        // certificates of the authorities that peers must be signed by, PEM
  std::string node;             // certificate and secret key, PEM
  env::wire::DeploymentKeys wire;
  std::string token;
};

using WallClock = std::chrono::system_clock;

struct KeyValidity {
  std::chrono::hours node{24 * 365};
  std::chrono::hours authority{24 * 3650};
};

/// Makes the folder (mode 0700) and its files (mode 0600). Never replaces a file. Throws
/// std::invalid_argument naming an existing file, std::runtime_error if the system refuses.
void make_cluster_keys(const std::filesystem::path& folder, WallClock::time_point now,
                       const KeyValidity& validity = {});

struct KeyRotation {
  KeyValidity validity = {};
  std::chrono::hours grace{24}; // how long the old CURVE pair stays valid
  bool authority = false; // also replace the authority: nodes with the old one are refused until
                          // all are restarted
};
/// Makes a new node certificate, CURVE pair and token. Replaces each file atomically. Only one
/// rotation can run at a time.
void rotate_cluster_keys(const std::filesystem::path& folder, WallClock::time_point now,
                         const KeyRotation& rotation = {});

/// Reads and checks the files: their modes, whether certificate, key and authority match, and
/// expiry. Leaves out expired retired pairs. Throws std::invalid_argument naming the file, the rule
/// and the remedy; no message contains a secret.
ClusterKeys read_cluster_keys(const std::filesystem::path& folder, WallClock::time_point now);

/// Returns one line per key for people to read: its fingerprint and expiry, but no secret.
std::vector<std::string> describe_cluster_keys(const std::filesystem::path& folder,
                                               WallClock::time_point now);

} // namespace troupe::actors
