#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "env/wire/deployment_keys.hpp"

namespace troupe::actors {

/// A folder of keys that all nodes of a deployment share. Only its owner may read it:
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

using WallClock = std::chrono::system_clock;

struct KeyValidity {
  std::chrono::hours node{24 * 365};
  std::chrono::hours authority{24 * 3650};
};

/// Makes the folder (mode 0700) and its files (0600); replaces nothing. Throws
/// std::invalid_argument naming an existing file, std::runtime_error if the system refuses.
void make_cluster_keys(const std::filesystem::path& folder, WallClock::time_point now,
                       const KeyValidity& validity = {});

struct KeyRotation {
  KeyValidity validity = {};
  std::chrono::hours grace{24}; // how long the old CURVE pair stays valid
  bool authority = false; // a new one too: nodes with the old one are refused; restart all of them
};
/// Makes a new node certificate, CURVE pair and token. Replaces each file atomically; one rotation
/// at a time.
void rotate_cluster_keys(const std::filesystem::path& folder, WallClock::time_point now,
                         const KeyRotation& rotation = {});

/// Reads and checks the files: modes, matching certificate, key and authority, expiry. Leaves out
/// expired retired pairs. Throws std::invalid_argument naming file, rule and remedy; no message
/// contains a secret.
ClusterKeys read_cluster_keys(const std::filesystem::path& folder, WallClock::time_point now);

/// Lines for people: each file, its mode, fingerprint and expiry; no secret.
std::vector<std::string> describe_cluster_keys(const std::filesystem::path& folder,
                                               WallClock::time_point now);

} // namespace troupe::actors
