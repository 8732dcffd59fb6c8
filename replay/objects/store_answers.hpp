#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "replay/objects/store_keys.hpp"

namespace troupe::replay {

/// What an object store answers, as untrusted XML; for ObjectStore and the fuzzer. All functions
/// throw std::runtime_error on what is not such an answer, is too large or too deep, or has a
/// document type (and so entities).

struct StoredObject {
  std::string key;
  std::int64_t bytes = 0;
  std::string etag = {}; // as sent, with its quotes; may be empty

  bool operator==(const StoredObject&) const = default;
};

/// One page of ListObjectsV2.
struct ListingPage {
  std::vector<StoredObject> objects = {};
  std::vector<std::string> prefixes = {}; // of a listing with a delimiter
  std::string next = {};                  // the continuation token; empty: this is the last page
};

/// Of at most `most_keys` keys and prefixes.
ListingPage parse_listing(const std::string& xml, int most_keys);

/// Of InitiateMultipartUpload.
std::string parse_upload_id(const std::string& xml);

/// Of AssumeRoleWithWebIdentity. The text of its refusals has no part of the answer.
StoreKeys parse_assumed_role(const std::string& xml);

/// The code of an error ("NoSuchKey"); empty when the text is no error with a code of letters and
/// digits. Never throws.
std::string parse_error_code(const std::string& xml) noexcept;

} // namespace troupe::replay
