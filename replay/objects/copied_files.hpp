#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "replay/objects/folder_copies.hpp"

namespace troupe::replay {

/// Returns the MD5 of a file in hexadecimal. Throws StoreError if OpenSSL does not provide MD5, and
/// std::system_error.
std::string md5_of(const std::filesystem::path& file);

/// Makes `file` a verified copy of this version of an object and returns its MD5. Continues a
/// partial file and keeps a complete one. If the ETag looks like an MD5 but differs from the
/// file's, the object is fetched once more; two equal copies are accepted, because the ETag of an
/// encrypted object is not an MD5. Throws StoreError.
std::string fetch_verified(ObjectStore& store, const std::string& bucket,
                           const StoredObject& object, const std::filesystem::path& file,
                           const std::function<void()>& on_part = {});

/// Records the files below `folder`, one per line: size, modification time, MD5, name.
void write_record(const std::filesystem::path& record, const std::filesystem::path& folder,
                  const std::vector<FolderObject>& objects, const std::vector<std::string>& md5);

/// Returns the names of the objects whose files below `folder` differ from the record. A file with
/// another modification time is read to compare its MD5. Returns all names if there is no record.
std::vector<std::string> changed_files(const std::filesystem::path& record,
                                       const std::filesystem::path& folder,
                                       const std::vector<FolderObject>& objects);

} // namespace troupe::replay
