#include "replay/objects/store_keys.hpp"

#include <algorithm>
#include <utility>

#include "replay/objects/store_error.hpp"

namespace troupe::replay {

namespace {

constexpr std::chrono::minutes kEarly{5};
constexpr std::chrono::minutes kBetweenFetches{1};
constexpr std::size_t kLongestSecret = 16 << 10; // session tokens have a few kilobytes

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
  } catch (const StoreError&) {
    if (!usable)
      throw;
  }
  return *keys_;
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
