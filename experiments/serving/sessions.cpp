#include "experiments/serving/sessions.hpp"

#include <utility>

namespace troupe::experiments::serving {

Sessions::Sessions(const Limits& limits, std::function<Clock::time_point()> now)
    : limits_(limits), now_(std::move(now)) {}

Sessions::Taken Sessions::take(const std::string& name, bool begins, Session& session) {
  const std::lock_guard lock(mutex_);
  forget_idle();
  auto found = entries_.find(name);
  if (found == entries_.end()) {
    if (!begins)
      return Taken::unknown;
    if (entries_.size() >= limits_.sessions)
      return Taken::full;
    found = entries_.try_emplace(name).first;
  } else if (found->second.busy) {
    return Taken::busy;
  } else {
    idle_.erase(found->second.place);
  }
  found->second.busy = true;
  session = begins ? Session{} : std::move(found->second.session);
  return Taken::ok;
}

void Sessions::put_back(const std::string& name, Session session) {
  const std::lock_guard lock(mutex_);
  Entry& entry = entries_.at(name);
  entry.session = std::move(session);
  entry.begun = true;
  release(name, entry);
}

void Sessions::undo(const std::string& name) {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(name);
  if (found->second.begun)
    release(name, found->second);
  else
    entries_.erase(found);
}

void Sessions::end(const std::string& name) {
  const std::lock_guard lock(mutex_);
  entries_.erase(name);
}

std::size_t Sessions::size() {
  const std::lock_guard lock(mutex_);
  forget_idle();
  return entries_.size();
}

void Sessions::release(const std::string& name, Entry& entry) {
  entry.busy = false;
  entry.used = now_();
  entry.place = idle_.insert(idle_.end(), name);
}

void Sessions::forget_idle() {
  const auto now = now_();
  while (!idle_.empty()) {
    const auto oldest = entries_.find(idle_.front());
    if (now - oldest->second.used <= limits_.idle)
      return;
    entries_.erase(oldest);
    idle_.pop_front();
  }
}

} // namespace troupe::experiments::serving
