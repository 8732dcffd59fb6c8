#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "replay/objects/store_options.hpp"

namespace troupe::replay {

struct StoreRequest {
  std::string method; // GET, HEAD, PUT, POST, DELETE
  std::string bucket;
  std::string key = {};
  std::map<std::string, std::string> query = {};     // not encoded
  std::vector<std::string> headers = {};             // "name: value"
  std::span<const std::byte> body = {};              // of PUT and POST
  std::size_t most_answered = std::size_t{16} << 20; // bytes of the answer
};

struct StoreAnswer {
  long status = 0;
  std::string body = {};
  std::string etag = {};                   // as sent, with its quotes
  std::string region = {};                 // of x-amz-bucket-region
  std::optional<std::int64_t> length = {}; // of Content-Length
};

/// Sends requests to the endpoint over HTTP/1.1 with libcurl, which signs them (AWS Signature
/// Version 4); certificates are checked and redirects are not followed. An attempt ends at the
/// request's deadline; lost connections, 429 and 5xx are tried again after pauses that double, at
/// most `attempts` times. One thread.
class SignedRequests {
public:
  /// Throws std::invalid_argument on options that check() refuses.
  explicit SignedRequests(StoreOptions options);
  ~SignedRequests();
  SignedRequests(const SignedRequests&) = delete;
  SignedRequests& operator=(const SignedRequests&) = delete;

  /// The answer if its status is 2xx. Throws StoreError on any other one, at the deadline of the
  /// last attempt, when the answer is larger than `most_answered`, and soon after `stop`.
  StoreAnswer send(const StoreRequest& request, const std::stop_token& stop = {});

  const StoreOptions& options() const { return options_; }

private:
  struct Handle;
  struct Attempt;
  Attempt attempt(const StoreRequest& request, const std::stop_token& stop);

  StoreOptions options_;
  std::unique_ptr<Handle> handle_;
};

/// Percent-encodes all but letters, digits and "-._~"; keeps slashes of a path.
std::string percent_encoded(const std::string& text, bool keep_slashes);

} // namespace troupe::replay
