#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "replay/objects/store_keys.hpp"

namespace troupe::replay {

/// Parses the XML answers of an object store, treating them as untrusted; used by ObjectStore and
/// the fuzzer. All functions throw std::runtime_error if the XML is not such an answer, is too
/// large or too deep, or has a document type (and so may have entities).

struct StoredObject {
  std::string key;
  std::int64_t bytes = 0;
  std::string etag = {}; // as received, with its quotes; may be empty

  bool operator==(const StoredObject&) const = default;
};

/// One page of ListObjectsV2.
struct ListingPage {
  std::vector<StoredObject> objects = {};
  std::vector<std::string> prefixes = {}; // only in a listing with a delimiter
  std::string next = {};                  // the continuation token; empty: this is the last page
};

/// Parses a page of at most `most_keys` keys and prefixes.
ListingPage parse_listing(const std::string& xml, int most_keys);

/// Parses the answer to InitiateMultipartUpload.
std::string parse_upload_id(const std::string& xml);

/// Parses the answer to AssumeRoleWithWebIdentity. Error messages contain no part of the answer.
StoreKeys parse_assumed_role(const std::string& xml);

/// Returns the code of an error ("NoSuchKey"); empty if the text is not an error with a code of
/// letters and digits. Never throws.
std::string parse_error_code(const std::string& xml) noexcept;

} // namespace troupe::replay
