#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "replay/objects/folder_copies.hpp"

namespace troupe::replay {

/// MD5 of a file, in hexadecimal. Throws StoreError without OpenSSL's, and std::system_error.
std::string md5_of(const std::filesystem::path& file);

/// Makes `file` this version of an object: continues it, or keeps it when it is whole, and verifies
/// it. Where its MD5 is not the ETag that looks like one, it is fetched once more: two equal copies
/// are right, because the ETag of an encrypted object is no MD5. Returns the MD5. Throws
/// StoreError.
std::string fetch_verified(ObjectStore& store, const std::string& bucket,
                           const StoredObject& object, const std::filesystem::path& file,
                           const std::function<void()>& on_part = {});

/// Writes what the files below `folder` are, one a line: size, time of change, MD5, name.
void write_record(const std::filesystem::path& record, const std::filesystem::path& folder,
                  const std::vector<FolderObject>& objects, const std::vector<std::string>& md5);

/// The names of `objects` whose files below `folder` are not what the record says: a file of
/// another time is read again. All of them without a record.
std::vector<std::string> changed_files(const std::filesystem::path& record,
                                       const std::filesystem::path& folder,
                                       const std::vector<FolderObject>& objects);

} // namespace troupe::replay
