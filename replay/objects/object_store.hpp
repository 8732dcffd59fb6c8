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

/// Objects of a server that speaks S3, by path-style addresses. Holds at most part_bytes of a file
/// in memory. Every function waits for the server, with the deadlines and attempts of the options,
/// and throws StoreError; local files std::system_error. One thread, except stop().
class ObjectStore {
public:
  explicit ObjectStore(StoreOptions options) : requests_(std::move(options)) {}

  void put_bytes(const ObjectAddress& to, std::span<const std::byte> bytes);
  /// In one request, or in parts above part_bytes; the object appears with the last one. What is
  /// left of a failed upload is removed if the server answers. `sent` hears of bytes as they are
  /// stored. A file has at most 10,000 parts of 512 MiB.
  void put_file(const ObjectAddress& to, const std::filesystem::path& file,
                const std::function<void(std::int64_t bytes)>& sent = {});

  /// At most `most` bytes.
  std::string get_bytes(const ObjectAddress& from, std::size_t most);
  /// Replaces `file` as a whole; it gets one version of the object, in requests of part_bytes.
  void get_file(const ObjectAddress& from, const std::filesystem::path& file);

  /// Continues `file` with the bytes of this version of an object that it does not have yet, on the
  /// disk after each part_bytes, then `on_part`; StoreError of status 412 if the store has another
  /// version now.
  void continue_file(const std::string& bucket, const StoredObject& object,
                     const std::filesystem::path& file, const std::function<void()>& on_part = {});

  /// Size of the object; throws StoreError with status 404 if there is none.
  std::int64_t size(const ObjectAddress& of);

  /// The objects whose key begins with the folder's and a slash, by ascending key; at most `most`,
  /// else StoreError.
  std::vector<StoredObject> list(const ObjectAddress& folder, std::size_t most = 1'000'000);
  /// The names of the folders directly in `folder`.
  std::vector<std::string> folders(const ObjectAddress& folder, std::size_t most = 1'000'000);

  /// Succeeds when there is no such object.
  void remove(const ObjectAddress& object);

  /// Ends this and all later calls with a StoreError. Any thread.
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
