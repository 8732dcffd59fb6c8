#include "experiments/serving/sessions.hpp"

#include <utility>

namespace troupe::experiments::serving {

Sessions::Sessions(const Limits& limits, std::function<Clock::time_point()> now)
    : limits_(limits), now_(std::move(now)) {}

Sessions::Taken Sessions::take(const std::string& name, bool begins, Session& session) {
  const std::lock_guard lock(mutex_);
  auto found = entries_.find(name);
  if (found != entries_.end() && found->second.busy)
    return Taken::busy;
  if (found != entries_.end() && now_() - found->second.used > limits_.idle) {
    entries_.erase(found);
    found = entries_.end();
  }
  if (found == entries_.end()) {
    if (!begins)
      return Taken::unknown;
    if (entries_.size() >= limits_.sessions)
      forget_idle();
    if (entries_.size() >= limits_.sessions)
      return Taken::full;
    found = entries_.try_emplace(name).first;
  }
  found->second.busy = true;
  session = begins ? Session{} : std::move(found->second.session);
  return Taken::ok;
}

void Sessions::put_back(const std::string& name, Session session) {
  const std::lock_guard lock(mutex_);
  Entry& entry = entries_.at(name);
  entry = {.session = std::move(session), .busy = false, .used = now_()};
}

std::size_t Sessions::size() const {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

void Sessions::forget_idle() {
  const auto now = now_();
  std::erase_if(entries_, [&](const auto& entry) {
    return !entry.second.busy && now - entry.second.used > limits_.idle;
  });
}

} // namespace troupe::experiments::serving
