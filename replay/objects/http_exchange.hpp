#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

namespace troupe::replay {

/// The inputs of AWS Signature Version 4, which libcurl computes.
struct Signer {
  std::string provider; // "aws:amz:<region>:<service>"
  std::string user, password;
};

struct HttpRequest {
  std::string method;                    // GET, HEAD, PUT, POST, DELETE
  std::string url;                       // encoded; proxies are not used for http://
  std::vector<std::string> headers = {}; // "name: value"
  std::span<const std::byte> body = {};  // for PUT and POST
  std::size_t most_answered = 0;         // limit on the bytes of the answer
  std::string ca_bundle = {};            // file of certificates; empty: those of the system
  std::optional<Signer> signer = {};
  std::chrono::milliseconds connect_deadline{0}, deadline{0};
};

struct HttpAnswer {
  long status = 0;
  std::string body = {};
  std::string etag = {};                   // as received, with its quotes
  std::string region = {};                 // from x-amz-bucket-region
  std::optional<std::int64_t> length = {}; // from Content-Length
};

struct HttpOutcome {
  std::string failure = {}; // why there is no answer; empty: `answer` is valid
  bool lost = false;        // a retry may succeed
  bool too_large = false;   // the answer has more than most_answered bytes
  HttpAnswer answer = {};
  int tried = 1;
};

/// Sends requests over HTTP/1.1 with libcurl and keeps connections open. Certificates are checked,
/// and redirects are not followed. Used by one thread at a time.
class HttpClient {
public:
  HttpClient();
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  /// Performs a request. Returns at the deadline at the latest, and soon after `stop`. Throws
  /// StoreError if libcurl refuses an option.
  HttpOutcome perform(const HttpRequest& request, const std::stop_token& stop = {});

private:
  struct Handle;
  struct Attempt;
  std::unique_ptr<Handle> handle_;
};

struct Attempts {
  int most = 1;
  std::chrono::milliseconds first_pause{250}; // doubles with each attempt, up to 10 s
};

/// Calls `attempt` until `again` returns false for its outcome, but at most attempts.most times and
/// not after `stop`. Returns the last outcome.
HttpOutcome with_attempts(const Attempts& attempts, const std::stop_token& stop,
                          const std::function<HttpOutcome()>& attempt,
                          const std::function<bool(const HttpOutcome&)>& again);

bool is_overload(long status); // true for 429 and 5xx

} // namespace troupe::replay
