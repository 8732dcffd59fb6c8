#pragma once

#include <stdexcept>
#include <string>

namespace troupe::replay {

/// A request to an object store failed. The message names the request, the address, the reason and
/// the remedy, and contains no secret.
class StoreError : public std::runtime_error {
public:
  /// `status` is the HTTP status, 0 without an answer; `code` is the S3 error code ("NoSuchBucket")
  /// or empty.
  StoreError(const std::string& text, long status = 0, std::string code = {})
      : std::runtime_error(text), status_(status), code_(std::move(code)) {}

  long status() const { return status_; }
  const std::string& code() const { return code_; }

private:
  long status_;
  std::string code_;
};

} // namespace troupe::replay
