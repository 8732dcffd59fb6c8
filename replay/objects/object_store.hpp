#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "replay/objects/object_address.hpp"
#include "replay/objects/signed_requests.hpp"
#include "replay/objects/store_answers.hpp"

namespace troupe::replay {

/// Stores and fetches objects on a server that speaks S3, with path-style addresses. Keeps at most
/// part_bytes of a file in memory. Every function waits for the server, with the deadlines and
/// attempts in the options. Throws StoreError, and std::system_error for local files. Used by one
/// thread at a time, except stop().
class ObjectStore {
public:
  explicit ObjectStore(StoreOptions options) : requests_(std::move(options)) {}

  void put_bytes(const ObjectAddress& to, std::span<const std::byte> bytes);
  /// Uploads a file in one request or, above part_bytes, in parts; the object appears with the last
  /// one. The parts of a failed upload are removed if the server still answers. `sent` is called
  /// with the number of bytes whenever some are stored. A file has at most 10,000 parts of 512 MiB.
  void put_file(const ObjectAddress& to, const std::filesystem::path& file,
                const std::function<void(std::int64_t bytes)>& sent = {});

  /// Returns an object of at most `most` bytes; throws StoreError if it is larger.
  std::string get_bytes(const ObjectAddress& from, std::size_t most);
  /// Replaces `file` with one version of the object, fetched in requests of part_bytes.
  void get_file(const ObjectAddress& from, const std::filesystem::path& file);

  /// Appends the bytes of this version of an object that `file` does not have yet. After every
  /// part_bytes, flushes the file to disk and calls `on_part`. Throws StoreError with status 412 if
  /// the store now has another version.
  void continue_file(const std::string& bucket, const StoredObject& object,
                     const std::filesystem::path& file, const std::function<void()>& on_part = {});

  /// Returns the size of the object in bytes; throws StoreError with status 404 if there is none.
  std::int64_t size(const ObjectAddress& of);

  /// Returns the objects whose key begins with the folder's key and a slash, by ascending key.
  /// Throws StoreError if there are more than `most`.
  std::vector<StoredObject> list(const ObjectAddress& folder, std::size_t most = 1'000'000);
  /// Returns the names of the folders directly in `folder`.
  std::vector<std::string> folders(const ObjectAddress& folder, std::size_t most = 1'000'000);

  /// Removes an object; succeeds also if there is none.
  void remove(const ObjectAddress& object);

  /// Makes the current and all later calls throw StoreError. May be called on any thread.
  void stop() { stop_.request_stop(); }

private:
  HttpAnswer send(const StoreRequest& request) {
    return requests_.send(request, stop_.get_token());
  }
  std::string get_range(const ObjectAddress& from, std::uint64_t at, std::uint64_t end,
                        const std::string& etag);
  void put_parts(const ObjectAddress& to, const std::filesystem::path& file, std::uint64_t size,
                 const std::function<void(std::int64_t)>& sent);
  std::string put_part(const ObjectAddress& to, const std::string& id, std::size_t number,
                       std::span<const std::byte> bytes);
  void complete(const ObjectAddress& to, const std::string& id,
                const std::vector<std::string>& etags, std::uint64_t size);
  void list_pages(const ObjectAddress& folder, bool folders, std::size_t most,
                  const std::function<void(ListingPage&)>& on_page);

  SignedRequests requests_;
  std::stop_source stop_;
};

} // namespace troupe::replay
