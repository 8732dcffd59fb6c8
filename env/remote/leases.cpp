#include "env/remote/leases.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace troupe::env::remote {

Leases::Leases(std::size_t environments, std::chrono::milliseconds silence)
    : free_(environments), silence_(silence) {
  std::iota(free_.begin(), free_.end(), std::size_t{0});
}

Leases::Taken Leases::take(std::uint64_t session, std::size_t count, Time now) {
  Taken taken;
  if (count == 0 || sessions_.contains(session))
    return taken;
  if (free_.size() < count) {
    std::vector<std::uint64_t> silent;
    std::size_t available = free_.size();
    for (const auto& [id, other] : sessions_)
      if (now - other.seen > silence_) {
        silent.push_back(id);
        available += other.environments.size();
      }
    if (available < count)
      return taken; // their environments would not suffice either
    for (const std::uint64_t id : silent)
      give_back(id);
    taken.forgotten = std::move(silent);
  }
  const auto middle = free_.begin() + static_cast<std::ptrdiff_t>(count);
  taken.environments.assign(free_.begin(), middle);
  free_.erase(free_.begin(), middle);
  sessions_[session] = {taken.environments, now};
  return taken;
}

bool Leases::seen(std::uint64_t session, Time now) {
  const auto found = sessions_.find(session);
  if (found == sessions_.end())
    return false;
  found->second.seen = now;
  return true;
}

void Leases::give_back(std::uint64_t session) {
  const auto found = sessions_.find(session);
  if (found == sessions_.end())
    return;
  free_.insert(free_.end(), found->second.environments.begin(), found->second.environments.end());
  std::sort(free_.begin(), free_.end()); // lowest first: a returning client gets the same
  sessions_.erase(found);
}

} // namespace troupe::env::remote
