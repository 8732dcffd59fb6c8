#include "replay/objects/store_keys.hpp"

#include <algorithm>
#include <array>
#include <ctime>
#include <utility>

#include "replay/objects/store_error.hpp"

namespace troupe::replay {

namespace {

constexpr std::chrono::minutes kEarly{5};
constexpr std::chrono::minutes kBetweenFetches{1};
constexpr std::size_t kLongestSecret = 16 << 10; // bytes; session tokens have a few kilobytes

std::string text_of(WallTime time) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(time);
  std::tm utc{};
  ::gmtime_r(&seconds, &utc);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text.data();
}

} // namespace

bool is_secret(const std::string& text) {
  return !text.empty() && text.size() <= kLongestSecret
         && std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < '\x7f'; });
}

TemporaryKeys::TemporaryKeys(Fetch fetch, std::function<WallTime()> now)
    : fetch_(std::move(fetch)), now_(std::move(now)) {}

StoreKeys TemporaryKeys::current(const std::stop_token& stop) {
  const std::lock_guard lock(mutex_);
  const WallTime now = now_();
  const bool usable = keys_ && now < keys_->expires;
  if (usable && (keys_->expires - now > kEarly || now - fetched_ < kBetweenFetches))
    return *keys_;
  fetched_ = now;
  try {
    StoreKeys fresh = fetch_(stop);
    if (fresh.expires <= now)
      throw StoreError("the keys that were fetched for the object store have expired already; set "
                       "this host's clock");
    keys_ = std::move(fresh);
    note_success();
  } catch (const StoreError& failure) {
    if (!usable)
      throw;
    if (!stop.stop_requested())
      note_failure(failure.what());
  }
  return *keys_;
}

void TemporaryKeys::note_failure(const std::string& why) {
  ++failed_;
  if (++failed_in_row_ > 1)
    return;
  const std::lock_guard lock(news_mutex_);
  news_ = "a renewal of the object store's keys failed (" + std::to_string(failed_)
          + " in all): " + why + "; the previous keys are valid until " + text_of(keys_->expires)
          + " and the service is asked again every minute";
}

void TemporaryKeys::note_success() {
  const auto row = std::exchange(failed_in_row_, 0);
  if (row == 0)
    return;
  const std::lock_guard lock(news_mutex_);
  news_ = "the object store's keys were renewed after " + std::to_string(row) + " failed attempts ("
          + std::to_string(failed_) + " in all)";
}

std::string TemporaryKeys::news() {
  const std::lock_guard lock(news_mutex_);
  return std::exchange(news_, {});
}

bool TemporaryKeys::forget(const StoreKeys& keys) {
  const std::lock_guard lock(mutex_);
  if (keys.expires == WallTime::max())
    return false;
  if (keys_ == keys)
    keys_.reset();
  return true;
}

} // namespace troupe::replay
