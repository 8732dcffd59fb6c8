#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "env/wire/deployment_keys.hpp"

namespace troupe::actors {

/// A folder of keys that all nodes of a deployment share. Nobody but its owner may read it:
///
///   ca.crt         who may sign node certificates (PEM)
///   ca.key         its secret; stays where the folder was made, no node needs it
///   node.pem       the nodes' certificate and its secret key
///   curve.secret   the pair of the data plane (CURVE)
///   curve.retired  pairs before it, each with the moment until which it is good; may be missing
///   token          for HTTP
struct ClusterKeys {
  std::filesystem::path folder; // for messages
  std::string authority;        // certificates that peers' must be signed by, PEM
  std::string node;             // certificate and secret key, PEM
  env::wire::DeploymentKeys wire;
  std::string token;
};

/// Names of the files that a node needs and those that it takes where they are there; whoever
/// copies a folder to a host copies these.
std::vector<std::string> node_key_files();
std::vector<std::string> optional_key_files();

using WallClock = std::chrono::system_clock;

struct KeyValidity {
  std::chrono::hours node{24 * 365};
  std::chrono::hours authority{24 * 3650};
};

/// Makes the folder (mode 0700) and its files (0600); replaces nothing. Throws
/// std::invalid_argument naming the file in the way, std::runtime_error when the system refuses.
void make_cluster_keys(const std::filesystem::path& folder, WallClock::time_point now,
                       const KeyValidity& validity = {});

struct KeyRotation {
  KeyValidity validity = {};
  std::chrono::hours grace{24}; // the old CURVE pair stays good so long
  bool authority = false; // a new one too: nodes with the old one are strangers, restart them all
};
/// New node certificate, CURVE pair and token. Every file is replaced whole or not at all; one
/// rotation at a time.
void rotate_cluster_keys(const std::filesystem::path& folder, WallClock::time_point now,
                         const KeyRotation& rotation = {});

/// Reads and checks: modes, that certificate, key and authority fit, that nothing has expired.
/// Retired pairs whose time is over are left out. Throws std::invalid_argument that names file,
/// rule and way out; no message holds a secret.
ClusterKeys read_cluster_keys(const std::filesystem::path& folder, WallClock::time_point now);

/// Lines for people: each file, its mode, fingerprint and expiry; no secret.
std::vector<std::string> describe_cluster_keys(const std::filesystem::path& folder,
                                               WallClock::time_point now);

} // namespace troupe::actors
