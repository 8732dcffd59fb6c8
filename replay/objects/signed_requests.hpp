#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "replay/objects/http_exchange.hpp"
#include "replay/objects/store_options.hpp"

namespace troupe::replay {

struct StoreRequest {
  std::string method; // GET, HEAD, PUT, POST, DELETE
  std::string bucket;
  std::string key = {};
  std::map<std::string, std::string> query = {};     // not yet encoded
  std::vector<std::string> headers = {};             // "name: value"
  std::span<const std::byte> body = {};              // for PUT and POST
  std::size_t most_answered = std::size_t{16} << 20; // limit on the bytes of the answer
};

/// Sends signed requests to the endpoint. Each attempt ends at the request's deadline. After a lost
/// connection, 429, 5xx, or temporary keys that the store reports as expired, the request is
/// retried with pauses that double, for at most `attempts` attempts. Used by one thread at a time.
class SignedRequests {
public:
  /// Throws std::invalid_argument as check(options) does.
  explicit SignedRequests(StoreOptions options);

  /// Returns the answer if its status is 2xx. Throws StoreError on any other status, at the
  /// deadline of the last attempt, if the answer is larger than `most_answered`, and soon after
  /// `stop`.
  HttpAnswer send(const StoreRequest& request, const std::stop_token& stop = {});

  const StoreOptions& options() const { return options_; }

private:
  HttpOutcome attempt(const StoreRequest& request, const StoreKeys& keys,
                      const std::stop_token& stop);

  StoreOptions options_;
  HttpClient client_;
};

/// Percent-encodes everything except letters, digits and "-._~" and, if `keep_slashes`, slashes.
std::string percent_encoded(const std::string& text, bool keep_slashes);

} // namespace troupe::replay
