#pragma once

#include <chrono>
#include <cstdint>
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
/// until then a failed fetch leaves the former keys in use, is counted and is repeated after a
/// minute. All threads; while one fetches, the others wait for it.
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

  /// For the log: that a renewal failed, why, and until when the former keys hold; said at the
  /// first failure of a row of them, and its number when a renewal succeeds. Empty: nothing since
  /// the last call. The newest one replaces one that was not taken. Never waits for a fetch.
  std::string news();

private:
  void note_failure(const std::string& why);
  void note_success();

  Fetch fetch_;
  std::function<WallTime()> now_;
  std::mutex mutex_; // of the rest
  std::optional<StoreKeys> keys_;
  WallTime fetched_{};      // or tried to
  std::int64_t failed_ = 0; // renewals, since the start
  std::int64_t failed_in_row_ = 0;

  std::mutex news_mutex_; // of the news
  std::string news_;
};

} // namespace troupe::replay
