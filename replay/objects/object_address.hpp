#pragma once

#include <string>
#include <string_view>

namespace troupe::replay {

/// The address of an object in an object store, s3://bucket/key. If it denotes a folder, the key is
/// a prefix.
struct ObjectAddress {
  std::string bucket;
  std::string key = {}; // without leading or trailing slashes; may be empty

  bool operator==(const ObjectAddress&) const = default;
};

/// True if the text begins with "s3://".
bool is_object_address(std::string_view text);

/// Parses an address. Throws std::invalid_argument naming `option` (a configuration key or an
/// argument), the text, the rule and the remedy.
ObjectAddress parse_object_address(std::string_view text, const std::string& option);

std::string text_of(const ObjectAddress& address);

/// Returns the address of `name`, a relative path, below `folder`.
ObjectAddress below(const ObjectAddress& folder, std::string_view name);

/// True if `name` is safe to use as a path below a local folder: it is relative, has no part "." or
/// "..", no control characters or backslashes, and at most 1024 bytes.
bool is_plain_name(std::string_view name);

} // namespace troupe::replay
