#pragma once

#include <chrono>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>

namespace troupe::replay {

using WallTime = std::chrono::system_clock::time_point;

/// What signs requests.
struct StoreKeys {
  std::string access_key, secret_key;
  std::string session_token = {};     // of temporary ones
  WallTime expires = WallTime::max(); // max: never

  bool operator==(const StoreKeys&) const = default;
};

/// One to 16384 printable characters without spaces: it may go into a header.
bool is_secret(const std::string& text);

/// Keys that expire. They are fetched by the first call and again five minutes before they expire;
/// until then a failed fetch leaves the former keys in use and is repeated after a minute. All
/// threads; while one fetches, the others wait for it.
class TemporaryKeys {
public:
  /// Throws StoreError, and ends by its own deadlines.
  using Fetch = std::function<StoreKeys(const std::stop_token& stop)>;

  explicit TemporaryKeys(
      Fetch fetch, std::function<WallTime()> now = [] { return std::chrono::system_clock::now(); });

  /// Keys that have not expired. Throws StoreError when there are none.
  StoreKeys current(const std::stop_token& stop = {});

  /// The store calls these keys expired: the next call fetches others. False if they do not expire.
  bool forget(const StoreKeys& keys);

private:
  Fetch fetch_;
  std::function<WallTime()> now_;
  std::mutex mutex_; // of the rest
  std::optional<StoreKeys> keys_;
  WallTime fetched_{}; // or tried to
};

} // namespace troupe::replay
