#pragma once

#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>

#include "actors/protocol/messages.hpp"

namespace troupe::experiments {

/// The part of Head that deals with its supervisor, and no more: starts all roles and restarts lost
/// ones.
class Listener {
public:
  using Key = actors::ActorKey;

  static double now() { // seconds, on a clock shared by all processes of the host
    return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
  }

  Listener(caf::actor_system& system, int environments)
      : self_(system), environments_(environments) {}

  caf::actor handle() { return caf::actor(self_); }
  void begin(actors::SupervisorActor supervisor) {
    supervisor_ = std::move(supervisor);
    for (const actors::Role role : {actors::Role::replay, actors::Role::learner,
                                    actors::Role::environment, actors::Role::evaluator})
      for (int i = 0; i < (role == actors::Role::environment ? environments_ : 1); ++i)
        spawn({role, i});
  }
  std::size_t roles() const { return static_cast<std::size_t>(environments_) + 3; }

  void wait_until_up() {
    wait([this] { return up_.size() == roles(); }, "all roles are up");
  }
  /// Waits until each of these has been lost at least once since the last forget(). Returns the
  /// times.
  std::map<Key, double> wait_until_lost(const std::set<Key>& whom) {
    wait(
        [&] {
          return std::all_of(whom.begin(), whom.end(),
                             [this](const Key& key) { return lost_.contains(key); });
        },
        "the supervisor reports every loss");
    return lost_;
  }
  void forget() { lost_.clear(); }
  void look(std::chrono::duration<double> how_long) {
    const auto end = Clock::now() + how_long;
    while (Clock::now() < end)
      take(std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()));
  }
  void stop() {
    self_->request(supervisor_, kPatience, actors::stop_atom_v)
        .receive(
            [](actors::done_atom) {},
            [](const caf::error&) { throw std::runtime_error("the supervisor does not stop"); });
  }

private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::minutes kPatience{10};

  void spawn(const Key& key) {
    self_->send(supervisor_, actors::spawn_atom_v, key.first, key.second, incarnations_[key]++,
                std::int64_t{0});
  }
  void take(std::chrono::milliseconds patience) {
    self_->receive(
        [this](actors::started_atom, actors::Role role, std::int32_t index, const caf::actor&,
               const std::string&, std::int32_t) {
          up_.insert({role, index});
        },
        [this](actors::lost_atom, actors::Role role, std::int32_t index, const std::string& reason,
               bool restart) {
          const Key key{role, index};
          if (!restart)
            throw std::runtime_error(std::string(actors::role_name(key.first))
                                     + " is permanently lost: " + reason);
          lost_.emplace(key, now());
          up_.erase(key);
          spawn(key);
        },
        caf::after(std::max(patience, std::chrono::milliseconds(0))) >> [] {});
  }
  template <class Condition>
  void wait(Condition holds, const std::string& what) {
    const auto end = Clock::now() + kPatience;
    while (!holds()) {
      take(std::chrono::milliseconds(100));
      if (Clock::now() > end)
        throw std::runtime_error("timed out waiting until " + what + ": "
                                 + std::to_string(up_.size()) + " of " + std::to_string(roles())
                                 + " are up");
    }
  }

  caf::scoped_actor self_;
  int environments_;
  actors::SupervisorActor supervisor_;
  std::map<Key, std::uint64_t> incarnations_;
  std::set<Key> up_;
  std::map<Key, double> lost_;
};

} // namespace troupe::experiments
