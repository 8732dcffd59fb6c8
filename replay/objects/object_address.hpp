#pragma once

#include <string>
#include <string_view>

namespace troupe::replay {

/// A place in an object store: s3://bucket/key. The key is a prefix where a folder is meant.
struct ObjectAddress {
  std::string bucket;
  std::string key = {}; // without slashes at its ends; may be empty

  bool operator==(const ObjectAddress&) const = default;
};

/// The text begins with "s3://".
bool is_object_address(std::string_view text);

/// Throws std::invalid_argument naming `option` (a configuration key or an argument), the text, the
/// rule and the remedy.
ObjectAddress parse_object_address(std::string_view text, const std::string& option);

std::string text_of(const ObjectAddress& address);

/// The address of `name`, a relative path, below `folder`.
ObjectAddress below(const ObjectAddress& folder, std::string_view name);

/// `name` may become a path below a local folder: relative, of plain parts, none of them "." or
/// "..", without control characters and backslashes, of at most 1024 bytes.
bool is_plain_name(std::string_view name);

} // namespace troupe::replay
