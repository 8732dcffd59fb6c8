#pragma once

#include <string>

#include "replay/objects/store_keys.hpp"

namespace troupe::replay {

/// What services that lend keys answer, untrusted. All functions throw std::runtime_error whose
/// text has no part of the answer.

/// The document of a container's or an instance's keys: a JSON object with AccessKeyId,
/// SecretAccessKey, Token and Expiration; the last two may be missing in a container.
StoreKeys parse_key_document(const std::string& json);

/// A time of ISO 8601 in UTC: 2026-11-27T03:10:16Z, also with a fraction of a second.
WallTime parse_expiry(const std::string& text);

} // namespace troupe::replay
