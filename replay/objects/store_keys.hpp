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

/// The keys that sign requests.
struct StoreKeys {
  std::string access_key, secret_key;
  std::string session_token = {};     // of temporary keys
  WallTime expires = WallTime::max(); // max: never

  bool operator==(const StoreKeys&) const = default;
};

/// True if the text has 1 to 16384 printable characters without spaces, so that it may be sent in a
/// header.
bool is_secret(const std::string& text);

/// Keys that expire. The first call fetches them, and they are fetched again from five minutes
/// before they expire. A failed renewal is counted and repeated after a minute; meanwhile the
/// former keys stay in use until they expire. Thread-safe; while one thread fetches, the others
/// wait for it.
class TemporaryKeys {
public:
  /// Fetches keys. Throws StoreError and enforces its own deadlines.
  using Fetch = std::function<StoreKeys(const std::stop_token& stop)>;

  explicit TemporaryKeys(
      Fetch fetch, std::function<WallTime()> now = [] { return std::chrono::system_clock::now(); });

  /// Returns keys that have not expired. Throws StoreError if there are none.
  StoreKeys current(const std::stop_token& stop = {});

  /// Called if the store reports these keys as expired, so that the next call of current() fetches
  /// new ones. Returns false if they do not expire.
  bool forget(const StoreKeys& keys);

  /// Returns a message for the log, or an empty string if there is none since the last call. At the
  /// first of consecutive failed renewals it says why the renewal failed and until when the former
  /// keys are valid; when a renewal succeeds, it says how many failed. A new message replaces one
  /// that was not taken. Never waits for a fetch.
  std::string news();

private:
  void note_failure(const std::string& why);
  void note_success();

  Fetch fetch_;
  std::function<WallTime()> now_;
  std::mutex mutex_; // guards the members below
  std::optional<StoreKeys> keys_;
  WallTime fetched_{};      // time of the last fetch or attempt
  std::int64_t failed_ = 0; // failed renewals since the start
  std::int64_t failed_in_row_ = 0;

  std::mutex news_mutex_; // guards news_
  std::string news_;
};

} // namespace troupe::replay
