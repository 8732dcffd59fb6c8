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
  std::map<std::string, std::string> query = {};     // not encoded
  std::vector<std::string> headers = {};             // "name: value"
  std::span<const std::byte> body = {};              // of PUT and POST
  std::size_t most_answered = std::size_t{16} << 20; // bytes of the answer
};

/// Sends signed requests to the endpoint. An attempt ends at the request's deadline; lost
/// connections, 429, 5xx and temporary keys that the store calls expired are tried again after
/// pauses that double, at most `attempts` times. One thread.
class SignedRequests {
public:
  /// Throws std::invalid_argument on options that check() refuses.
  explicit SignedRequests(StoreOptions options);

  /// The answer if its status is 2xx. Throws StoreError on any other one, at the deadline of the
  /// last attempt, when the answer is larger than `most_answered`, and soon after `stop`.
  HttpAnswer send(const StoreRequest& request, const std::stop_token& stop = {});

  const StoreOptions& options() const { return options_; }

private:
  HttpOutcome attempt(const StoreRequest& request, const StoreKeys& keys,
                      const std::stop_token& stop);

  StoreOptions options_;
  HttpClient client_;
};

/// Percent-encodes all but letters, digits and "-._~"; keeps slashes of a path.
std::string percent_encoded(const std::string& text, bool keep_slashes);

} // namespace troupe::replay
