/// What a head writes for its successor, and how the successor takes over.
#include <algorithm>

#include "actors/run/head.hpp"
#include "actors/supervision/head_record.hpp"

namespace troupe::actors {

/// Writes the record before the processes that it names are started, and every two seconds. If it
/// cannot be written, the old record is removed, because a successor would rely on it.
void Head::write_record() {
  if (!context_.deployment.outlives_head || config_.in_rounds() || !metrics_record_
      || (!started_ && took_over_ == 0))
    return;
  wire::HeadRecord record;
  auto& state = *record.mutable_before() = context_.before;
  state.clear_environments();
  state.clear_environments_configured();
  state.clear_samples_per_insert();
  state.clear_error_buffer();
  schedule_.write(state);
  *record.mutable_metrics() = *metrics_record_;
  record.set_held(held_);
  record.set_taken_over(monitor_.taken_over());
  actors_.write(record, schedule_.count(Role::environment));
  std::string problem;
  try {
    write_head_record(context_.folder, record);
  } catch (const std::exception& e) {
    problem =
        std::string("the head's record cannot be written; if the head dies, the run continues "
                    "from a checkpoint with new processes: ")
        + e.what();
    remove_head_record(context_.folder);
  }
  if (std::exchange(record_problem_, problem) == problem || problem.empty())
    return;
  monitor_.note_failure(problem);
  context_.log("warning", problem);
}

/// Waits until each process of the previous head has joined or is lost; lost ones restart as after
/// any death.
void Head::await_processes() {
  const auto& supervision = config_.supervision;
  const auto is_settled = [this](const ActorKey& key) {
    return actors_.is_up(key) || actors_.lost().contains(key);
  };
  std::vector<ActorKey> expected;
  for (const auto& process : context_.succeeds->processes())
    if (const Role role = role_named(process.role()); process.index() < schedule_.count(role))
      expected.emplace_back(role, process.index());
  const auto deadline = std::chrono::steady_clock::now() + kStartDeadline
                        + std::chrono::duration<double>(supervision.lost_seconds);
  while (!std::all_of(expected.begin(), expected.end(), is_settled)) {
    actors_.take_messages(kPoll);
    if (std::chrono::steady_clock::now() > deadline)
      throw RunFailed("the processes of the previous head neither joined nor were given up");
  }
  had_processes_ = static_cast<std::int32_t>(std::ssize(expected));
  took_over_ = static_cast<std::int32_t>(
      std::ranges::count_if(expected, [this](const ActorKey& key) { return actors_.is_up(key); }));
  if (took_over_ == 0)
    throw NothingToTakeOver("none of the " + std::to_string(had_processes_)
                            + " processes of the previous head is left");
  monitor_.note_taken_over(context_.succeeds->taken_over() + took_over_);
  if (!metrics_record_)
    metrics_record_ = std::make_shared<const wire::MetricsRecord>(context_.succeeds->metrics());
  context_.log("info", "took over " + std::to_string(took_over_) + " processes of "
                           + std::to_string(had_processes_));
  for (const ActorKey& key : expected)
    if (actors_.is_up(key))
      actors_.subscribe(key);
}

/// Takes over the previous head's actors, which keep their state. A pause brings them to a known
/// state, whatever the previous head was doing with them.
void Head::take_over() {
  monitor_.hold_back(true);
  try {
    actors_.start_services(schedule_.count(Role::environment));
  } catch (const RunFailed& e) {
    throw NothingToTakeOver(e.what());
  }
  await_processes();
  checkpoints_.succeed();
  held_ = context_.succeeds->held();
  persist([this] {
    restart_lost();
    if (!actors_.lost().empty())
      throw ActorLost();
    pause();
    monitor_.hold_back(false);
    unpause();
  });
  checkpoints_.restart_clock();
  started_ = true;
}

} // namespace troupe::actors
