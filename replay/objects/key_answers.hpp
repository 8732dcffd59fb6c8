#pragma once

#include <string>

#include "replay/objects/store_keys.hpp"

namespace troupe::replay {

/// Parses the answers of services that lend keys, treating them as untrusted. All functions throw
/// std::runtime_error with a message that contains no part of the answer.

/// Parses the keys of a container or an instance: a JSON object with AccessKeyId, SecretAccessKey,
/// Token and Expiration. A container's may lack the last two.
StoreKeys parse_key_document(const std::string& json);

/// Parses an ISO 8601 time in UTC, such as 2026-11-27T03:10:16Z, with or without a fraction of a
/// second.
WallTime parse_expiry(const std::string& text);

} // namespace troupe::replay
