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

/// For AWS Signature Version 4, which libcurl computes.
struct Signer {
  std::string provider; // "aws:amz:<region>:<service>"
  std::string user, password;
};

struct HttpRequest {
  std::string method;                    // GET, HEAD, PUT, POST, DELETE
  std::string url;                       // encoded; http:// goes past proxies
  std::vector<std::string> headers = {}; // "name: value"
  std::span<const std::byte> body = {};  // of PUT and POST
  std::size_t most_answered = 0;         // bytes of the answer
  std::string ca_bundle = {};            // file of certificates; empty: the system's
  std::optional<Signer> signer = {};
  std::chrono::milliseconds connect_deadline{0}, deadline{0};
};

struct HttpAnswer {
  long status = 0;
  std::string body = {};
  std::string etag = {};                   // as sent, with its quotes
  std::string region = {};                 // of x-amz-bucket-region
  std::optional<std::int64_t> length = {}; // of Content-Length
};

struct HttpOutcome {
  std::string failure = {}; // why there is no answer; empty: there is one
  bool lost = false;        // the failure may be none the next time
  bool too_large = false;   // the failure is an answer of more than most_answered
  HttpAnswer answer = {};
  int tried = 1;
};

/// Sends requests over HTTP/1.1 with libcurl and keeps the connections; certificates are checked
/// and redirects are not followed. One thread.
class HttpClient {
public:
  HttpClient();
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  /// Ends at the deadline, and soon after `stop`. Throws StoreError when libcurl refuses an option.
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

/// Calls `attempt` until `again` says no of its outcome, `most` times, or until `stop`; the last
/// outcome.
HttpOutcome with_attempts(const Attempts& attempts, const std::stop_token& stop,
                          const std::function<HttpOutcome()>& attempt,
                          const std::function<bool(const HttpOutcome&)>& again);

bool is_overload(long status); // 429 and 5xx

} // namespace troupe::replay
