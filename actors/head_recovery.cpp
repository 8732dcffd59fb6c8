#include <algorithm>
#include <utility>

#include "actors/ask.hpp"
#include "actors/checkpointer_actor.hpp"
#include "actors/files.hpp"
#include "actors/head.hpp"
#include "actors/roles.hpp"

namespace troupe::actors {

void Head::on_lost(Role role, std::int32_t index, const std::string& reason, bool may_restart) {
  up_.erase({role, index});
  const std::string what =
      std::string(role_name(role)) + " actor " + std::to_string(index) + " died: " + reason;
  if (!may_restart || (config_.deterministic && role != Role::evaluator)) {
    if (first_cause_.empty())
      first_cause_ = what;
    if (control_)
      log("info", "what " + std::string(role_name(role)) + " actor " + std::to_string(index)
                      + " printed is in logs/" + role_name(role) + "-" + std::to_string(index)
                      + ".log");
    return;
  }
  log("warning", what + "; it is started again");
  note_failure(what);
  if (role == Role::evaluator) {
    evaluating_ = false;
    evaluation_relay_ = {};
  }
  begin_anew(role, index);
}

void Head::begin_anew(Role role, std::int32_t index) {
  const auto number = static_cast<std::uint8_t>(role);
  self_->send(*metrics_, lost_atom_v, number, index);
  self_->send(*checkpointer_, lost_atom_v, number, index);
  ++incarnations_[{role, index}];
  steps_made_.erase({role, index});
  to_restart_.insert({role, index});
}

/// The newest of what learners and checkpoints have written.
std::filesystem::path Head::learner_state() const {
  const auto snapshots = numbered_folders(snapshot_folder(config_, Role::learner, 0));
  std::filesystem::path checkpoint = last_checkpoint_path_;
  if (checkpoint.empty())
    checkpoint = resume_from_;
  if (snapshots.empty())
    return checkpoint;
  const auto saved = checkpoint.empty() ? -1 : read_manifest(checkpoint).state().updates();
  return snapshots.back().first >= saved ? snapshots.back().second : checkpoint;
}

void Head::await_restarts() {
  const auto deadline = Clock::now() + kStartDeadline;
  const auto is_missing = [this](const Key& key) { return !up_.contains(key); };
  while (to_restart_.empty()) {
    const auto missing = std::find_if(returning_.begin(), returning_.end(), is_missing);
    if (missing == returning_.end())
      return;
    take_messages(kPoll);
    if (Clock::now() > deadline)
      throw RunFailed(std::string(role_name(missing->first)) + " actor "
                      + std::to_string(missing->second) + " did not come back within "
                      + std::to_string(kStartDeadline.count()) + " s");
  }
}

void Head::make_as_before(Role role, std::int32_t index) {
  if (const auto path = learner_state(); role == Role::learner && !path.empty())
    load(role, index, path);
  subscribe(role, index);
  if (role == Role::environment && training_)
    caf::anon_send(actor(role, index), grant_atom_v, steps_granted(index), std::uint64_t{0}, false);
  if (role == Role::learner)
    self_->send(actor(role, index), grant_atom_v, updates_granted_);
  log("info", std::string(role_name(role)) + " actor " + std::to_string(index)
                  + (incarnations_[{role, index}] > 0 ? " is back" : " is there"));
}

void Head::restart_lost() {
  to_restart_.merge(std::exchange(to_start_, {}));
  do { // who dies meanwhile is started at once: another one may wait for it before it starts
    auto lost = std::exchange(to_restart_, {});
    if (std::any_of(lost.begin(), lost.end(),
                    [](const Key& key) { return key.first == Role::learner; })) {
      rescue_learners();
      lost.merge(std::exchange(to_restart_, {}));
    }
    for (const auto& [role, index] : lost)
      spawn(role, index);
    returning_.merge(lost);
    await_restarts();
  } while (!to_restart_.empty());
  while (!returning_.empty()) {
    const auto [role, index] = *returning_.begin();
    if (up_.contains({role, index})) // else it died again and is on the list again
      make_as_before(role, index);   // where somebody dies meanwhile, the next call does it
    returning_.erase({role, index});
  }
}

/// What was paused for goes on; whoever paused does it again. Shards that were opened for a pause
/// are closed first: those who are not dead shall not insert without limit meanwhile.
void Head::recover() {
  for (;;)
    try {
      if (paused_)
        for (const auto& shard : all(Role::replay))
          caf::anon_send(shard, open_atom_v, false);
      restart_lost();
      if (paused_ && to_restart_.empty())
        unpause();
      if (to_restart_.empty())
        return;
    } catch (const Disturbed&) {
    }
}

} // namespace troupe::actors
