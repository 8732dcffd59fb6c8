#include "actors/run/lifecycle.hpp"

#include <algorithm>

#include "actors/run/control_actor.hpp"
#include "actors/supervision/roles.hpp"
#include "actors/supervision/strategies.hpp"
#include "replay/table/table_config_wire.hpp"

namespace troupe::actors {

namespace {
constexpr std::chrono::seconds kRescueDeadline{20}; // for a surviving learner to return its state
}

void Lifecycle::spawn(const ActorKey& key) {
  const bool fresh =
      key.first == Role::environment && (schedule_.begun() || !checkpoints_.continues(key.second));
  actors_.spawn(key, fresh ? schedule_.steps_before(progress_) : 0);
}

void Lifecycle::start(Role role) {
  const int count = schedule_.count(role);
  for (int i = 0; i < count; ++i)
    spawn({role, i});
  using Clock = std::chrono::steady_clock;
  auto deadline = Clock::now() + kStartDeadline;
  if (const auto& nodes = context_.deployment.nodes)
    deadline += std::chrono::duration_cast<Clock::duration>(
        std::chrono::duration<double>(nodes->join_seconds));
  while (std::ssize(actors_.keys(role)) < count) {
    actors_.take_messages(kPoll);
    if (!actors_.lost().empty())
      restart_lost();
    if (actors_.stopping())
      throw StoppedAtStart();
    if (Clock::now() > deadline)
      throw RunFailed("only " + std::to_string(actors_.keys(role).size()) + " of "
                      + std::to_string(count) + " " + role_name(role) + " actors started within "
                      + std::to_string(kStartDeadline.count()) + " s");
  }
  for (int i = 0; i < count; ++i)
    actors_.subscribe({role, i});
  for (int i = 0; role == Role::replay && i < count; ++i)
    limit({role, i});
}

void Lifecycle::limit(const ActorKey& shard) {
  const auto& ratio = schedule_.ratio();
  if (!ratio)
    return;
  wire::ControlRequest::Limit wanted;
  wanted.set_samples_per_insert(ratio->samples_per_insert);
  wanted.set_error_buffer(ratio->error_buffer);
  replay::wire::Limiter limiter;
  put(shard_table(limited(context_.config, wanted)).limiter, limiter);
  actors_.ask<done_atom>(actors_.at(shard), kRequestDeadline, "changing a shard's rate limiter",
                         limit_atom_v, encode(limiter));
}

/// Requests the state of a surviving learner before the others restart. Learners that step together
/// then all restart, because they would wait for the lost one. Without a survivor they start from
/// the newest state on disk. A learner that is itself returning does not count as a survivor,
/// because it may be waiting in its rendezvous.
void Lifecycle::rescue_learners() {
  const int replicas = context_.config.learner.replicas;
  const auto may_answer = [this](const ActorKey& key) {
    return actors_.is_up(key) && !returning_.contains(key);
  };
  std::set<ActorKey> lost; // died meanwhile
  bool rescued = false;
  for (int i = 0; i < replicas && !rescued; ++i)
    for (int tries = 0; tries < 3 && !rescued && may_answer({Role::learner, i}); ++tries)
      try {
        const auto updates = actors_.ask<std::int64_t>(
            actors_.at({Role::learner, i}), kRescueDeadline,
            "asking learner " + std::to_string(i) + " for its state", save_atom_v);
        rescued = true;
        context_.log("info", "learner " + std::to_string(i)
                                 + " is alive: the others start from its state after "
                                 + std::to_string(updates) + " updates");
      } catch (const ActorLost&) {
        lost.merge(std::exchange(actors_.lost(), {}));
      } catch (const RunFailed& e) {
        if (!actors_.first_cause().empty())
          throw;
        context_.log("warning", e.what());
        break;
      }
  actors_.lost().merge(lost);
  if (!step_together(context_.config))
    return;
  for (int i = 0; i < replicas; ++i)
    if (const ActorKey key{Role::learner, i}; actors_.is_up(key) || returning_.contains(key)) {
      actors_.send(actors_.supervisor(), stop_atom_v, Role::learner, i);
      actors_.forget(key, true);
    }
}

void Lifecycle::await_restarts() {
  const auto deadline = std::chrono::steady_clock::now() + kStartDeadline;
  const auto is_missing = [this](const ActorKey& key) { return !actors_.is_up(key); };
  while (actors_.lost().empty()) {
    const auto missing = std::find_if(returning_.begin(), returning_.end(), is_missing);
    if (missing == returning_.end())
      return;
    actors_.take_messages(kPoll);
    if (std::chrono::steady_clock::now() > deadline)
      throw RunFailed(actor_name(*missing) + " did not come back within "
                      + std::to_string(kStartDeadline.count()) + " s");
  }
}

void Lifecycle::bring_up_to_date(const ActorKey& key) {
  const auto [role, index] = key;
  if (const auto path = checkpoints_.learner_state(); role == Role::learner && !path.empty())
    load(actors_, key, path);
  actors_.subscribe(key);
  if (role == Role::replay)
    limit(key);
  if (role == Role::environment && schedule_.training())
    caf::anon_send(actors_.at(key), grant_atom_v, schedule_.steps(index, progress_),
                   std::uint64_t{0}, false);
  if (role == Role::learner) {
    learners_came_back_ = true;
    if (!context_.config.on_policy()) // otherwise the head grants as many as there are items for
      actors_.send(actors_.at(key), grant_atom_v,
                   schedule_.training() ? schedule_.updates() : 0); // 0: it only publishes
  }
  context_.log("info", actor_name(key) + (actors_.incarnation(key) > 0 ? " is back" : " started"));
}

void Lifecycle::restart_lost() {
  actors_.lost().merge(std::exchange(added_, {}));
  do { // restart an actor that dies meanwhile at once, because another one may need it to start
    auto lost = std::exchange(actors_.lost(), {});
    if (std::any_of(lost.begin(), lost.end(),
                    [](const ActorKey& key) { return key.first == Role::learner; })) {
      rescue_learners();
      lost.merge(std::exchange(actors_.lost(), {}));
    }
    for (const auto& key : lost)
      spawn(key);
    returning_.merge(lost);
    await_restarts();
  } while (!actors_.lost().empty());
  while (!returning_.empty()) {
    const ActorKey key = *returning_.begin();
    if (actors_.is_up(key))  // otherwise it died again and is in lost()
      bring_up_to_date(key); // if another actor dies meanwhile, the next call continues
    returning_.erase(key);
  }
}

} // namespace troupe::actors
