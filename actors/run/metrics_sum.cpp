#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "actors/protocol/counters.hpp"
#include "actors/run/metrics_actor.hpp"
#include "env/text/joined.hpp"

namespace troupe::actors {

namespace {
constexpr double kRateSeconds = 10;
constexpr std::size_t kMostTimed = 64; // actors of a role in Progress::ActorTimes
constexpr int kMostOptimizers = 64;    // of a parameter server

/// Adds an actor unless there are enough of its role, of which `before` are in the list already.
void add_time(Progress::ActorTimes& times, std::size_t before, Role role, int index,
              const auto& seconds) {
  if (times.actors.size() - before >= kMostTimed)
    ++times.left_out;
  else if (!seconds.empty())
    times.actors.push_back(
        {.role = role_name(role), .index = index, .seconds = {seconds.begin(), seconds.end()}});
}
} // namespace

MetricsSum::MetricsSum(const wire::RunState& before, const wire::ProcessTime& own)
    : before_(before),
      own_(own),
      reached_{{.environment_steps = before.environment_steps(),
                .updates = before.updates(),
                .samples = before.samples(),
                .frames = before.frames()}} {
  check_counters(before);
}

void MetricsSum::add(const wire::ProcessTime& time) {
  if (time.process() == 0 || !std::isfinite(time.processor_seconds()))
    return;
  double& known = processor_seconds_[time.process()];
  known = std::max(known, time.processor_seconds()); // a late report has less
}

std::vector<std::pair<double, std::int64_t>>
MetricsSum::add(const wire::EnvironmentReport& report) {
  check_counter("agent_steps", report.agent_steps());
  check_counter("environment_steps", report.environment_steps());
  check_counter("frames", report.frames());
  check_counter("parameter_version", static_cast<std::int64_t>(report.parameter_version()));
  for (const std::int64_t length : report.episode_lengths())
    check_counter("an episode's length", length);
  add(report.process());
  std::vector<std::pair<double, std::int64_t>> ended;
  for (int i = 0; i < report.episode_returns_size() && i < report.episode_lengths_size(); ++i) {
    ended.emplace_back(report.episode_returns(i), report.episode_lengths(i));
    last_returns_.push_back(report.episode_returns(i));
    ++episodes_;
  }
  if (last_returns_.size() > 10)
    last_returns_.erase(last_returns_.begin(), last_returns_.end() - 10);
  environments_[{report.actor(), report.incarnation()}] = report;
  away_.erase(report.actor());
  return ended;
}

void MetricsSum::add(const wire::LearnerReport& report) {
  check_counter("updates", report.updates());
  check_counter("rows", report.rows());
  add(report.process());
  learners_[report.replica()] = report;
}

void MetricsSum::add(const wire::ParameterServerReport& report) {
  if (report.optimizers_size() > kMostOptimizers)
    throw std::invalid_argument("optimizers: " + std::to_string(report.optimizers_size())
                                + " are reported; at most " + std::to_string(kMostOptimizers)
                                + " are kept");
  for (const auto& one : report.optimizers()) {
    check_counter("applied", one.applied());
    check_counter("dropped", one.dropped());
    check_counter("staleness_sum", one.staleness_sum());
    check_counter("staleness_most", one.staleness_most());
  }
  add(report.process());
  servers_[{report.shard(), report.incarnation()}] = report;
}

/// Means cover the gradients applied in the last half second that had any.
void MetricsSum::add_servers(Progress& now) {
  if (servers_.empty())
    return;
  ServerTotals all;
  for (const auto& [key, report] : servers_)
    for (const auto& one : report.optimizers()) {
      all.applied += one.applied();
      all.dropped += one.dropped();
      all.staleness_sum += one.staleness_sum();
      all.staleness_most = std::max(all.staleness_most, one.staleness_most());
      all.rate_scale_sum += one.rate_scale_sum();
    }
  const auto applied = static_cast<double>(all.applied - means_from_.applied);
  if ((since_rates_ >= 0.5 || means_from_.applied == 0) && applied > 0) {
    staleness_mean_ = static_cast<double>(all.staleness_sum - means_from_.staleness_sum) / applied;
    rate_scale_mean_ = (all.rate_scale_sum - means_from_.rate_scale_sum) / applied;
    means_from_ = all;
  }
  now.learner["staleness_mean"] = staleness_mean_;
  now.learner["staleness_max"] = static_cast<double>(all.staleness_most);
  now.learner["dropped_gradients"] = static_cast<double>(all.dropped);
  now.learner["learning_rate_scale"] = rate_scale_mean_;
}

void MetricsSum::add_rates(Progress& now, double elapsed_seconds) {
  clock_ += elapsed_seconds;
  if (since_rates_ >= 0.5) {
    since_rates_ = 0;
    while (reached_.size() > 1 && clock_ - reached_[1].seconds >= kRateSeconds)
      reached_.pop_front();
    const Reached from = reached_.front();
    const auto rate = [&](std::int64_t after, std::int64_t before) { // 0 if some counts were lost
      return static_cast<double>(std::max<std::int64_t>(0, after - before))
             / (clock_ - from.seconds);
    };
    rates_.environment_steps_per_second = rate(now.environment_steps, from.environment_steps);
    rates_.updates_per_second = rate(now.updates, from.updates);
    rates_.samples_per_second = rate(now.samples, from.samples);
    rates_.frames_per_second = rate(now.frames, from.frames);
    reached_.push_back({clock_, now.environment_steps, now.updates, now.samples, now.frames});
  }
  now.environment_steps_per_second = rates_.environment_steps_per_second;
  now.updates_per_second = rates_.updates_per_second;
  now.samples_per_second = rates_.samples_per_second;
  now.frames_per_second = rates_.frames_per_second;
}

/// Copies them twice a second, because there may be many.
void MetricsSum::add_times(Progress& now, const std::map<int, std::uint64_t>& newest) {
  if (since_rates_ >= 0.5 || !actor_times_) {
    auto made = std::make_shared<Progress::ActorTimes>();
    for (const auto& key : newest)
      add_time(*made, 0, Role::environment, key.first, environments_[key].seconds());
    const std::size_t before = made->actors.size();
    for (const auto& [replica, report] : learners_)
      add_time(*made, before, Role::learner, replica, report.seconds());
    actor_times_ = std::move(made);
  }
  now.actor_times = actor_times_;
}

void MetricsSum::add(const wire::ShardReport& report) {
  check_counter("items", report.stats().items());
  check_counter("bytes", report.stats().bytes());
  check_counter("disk_bytes", report.stats().disk_bytes());
  check_counter("inserted", report.stats().inserted());
  check_counter("sampled", report.stats().sampled());
  check_counter("updated_priorities", report.stats().updated_priorities());
  check_counter("failed_spills", report.stats().failed_spills());
  add(report.process());
  wire::ShardReport& known = shards_[report.shard()];
  const std::int64_t before = known.stats().failed_spills(), now = report.stats().failed_spills();
  failed_spills_ += now < before ? now : now - before; // a restarted shard counts from 0
  known = report;
}

Progress MetricsSum::progress(double elapsed_seconds, bool training) {
  if (training)
    training_seconds_ += elapsed_seconds;
  Progress now;
  now.agent_steps = before_.agent_steps();
  now.environment_steps = before_.environment_steps();
  now.episodes = before_.episodes() + episodes_;
  now.updates = before_.updates();
  now.training_seconds = before_.training_seconds() + training_seconds_;
  now.processor_seconds = before_.processor_seconds();
  for (const auto& [process, seconds] : processor_seconds_)
    now.processor_seconds +=
        process == own_.process() ? seconds - own_.processor_seconds() : seconds;
  now.inserts = before_.earlier_inserts();
  now.samples = before_.rows() + before_.earlier_samples();
  now.frames = before_.frames();
  std::map<int, std::uint64_t> newest; // newest incarnation of each actor
  for (const auto& [key, report] : environments_) {
    now.agent_steps += report.agent_steps();
    now.environment_steps += report.environment_steps();
    now.frames += report.frames();
    if (!away_.contains(key.first))
      newest[key.first] = key.second;
    for (const auto& [stage, seconds] : report.seconds())
      now.seconds[stage] += seconds;
  }
  now.most_updates = now.updates;
  for (const auto& [replica, report] : learners_) {
    now.samples += report.rows();
    now.ready_batches += report.batches();
    now.most_updates = std::max(now.most_updates, report.updates());
    if (replica == 0) {
      now.updates = std::max(now.updates, report.updates());
      now.learner.insert(report.metrics().begin(), report.metrics().end());
    }
    for (const auto& [stage, seconds] : report.seconds())
      now.seconds[stage] += seconds;
  }
  double version = 0;
  int informed = 0; // actors that step with parameters of the learner
  for (const auto& key : newest) {
    const wire::EnvironmentReport& report = environments_[key];
    now.insertions_in_flight += report.insertions();
    if (report.parameter_version() > 0 || (report.agent_steps() > 0 && before_.updates() == 0)) {
      version += static_cast<double>(report.parameter_version());
      ++informed;
    }
  }
  if (informed > 0) {
    version /= informed;
    now.parameter_lag = std::max(0.0, static_cast<double>(now.updates) - version);
  }
  now.parameter_version = static_cast<std::int64_t>(version);
  for (const auto& [shard, report] : shards_) {
    now.inserts += report.stats().inserted();
    now.samples += report.stats().sampled();
    now.replay_items += report.stats().items();
    now.replay_bytes += report.stats().bytes();
    now.replay_disk_bytes += report.stats().disk_bytes();
    now.priorities += report.stats().updated_priorities();
    now.waiting_insertions += report.waiting_insertions();
    now.waiting_samples += report.waiting_samples();
    now.shards.push_back({.index = shard,
                          .items = report.stats().items(),
                          .bytes = report.stats().bytes(),
                          .inserted = report.stats().inserted(),
                          .sampled = report.stats().sampled(),
                          .waiting = report.waiting()});
  }
  now.replay_failed_spills = failed_spills_;
  now.episode_return = last_returns_.empty()
                           ? std::numeric_limits<double>::quiet_NaN()
                           : std::accumulate(last_returns_.begin(), last_returns_.end(), 0.0)
                                 / static_cast<double>(last_returns_.size());
  since_rates_ += elapsed_seconds;
  add_servers(now);
  add_times(now, newest);
  add_rates(now, elapsed_seconds);
  return now;
}

wire::RunState MetricsSum::state(const Progress& progress) const {
  wire::RunState made;
  made.set_updates(progress.updates);
  made.set_agent_steps(progress.agent_steps);
  made.set_environment_steps(progress.environment_steps);
  made.set_episodes(progress.episodes);
  made.set_inserts(progress.inserts);
  made.set_samples(progress.samples);
  made.set_frames(progress.frames);
  made.set_earlier_inserts(before_.earlier_inserts());
  made.set_earlier_samples(before_.earlier_samples());
  if (shards_.empty())
    made.set_rows(progress.samples - before_.earlier_samples());
  made.set_training_seconds(progress.training_seconds);
  made.set_processor_seconds(progress.processor_seconds);
  return made;
}

wire::MetricsRecord MetricsSum::record() const {
  wire::MetricsRecord made;
  for (const auto& [key, report] : environments_) {
    auto& added = *made.add_environments();
    added = report;
    added.clear_episode_returns();
    added.clear_episode_lengths();
    added.clear_failures();
  }
  for (const auto& [replica, report] : learners_)
    *made.add_learners() = report;
  for (const auto& [shard, report] : shards_)
    *made.add_shards() = report;
  for (const auto& [key, report] : servers_)
    *made.add_servers() = report;
  for (const auto& [process, seconds] : processor_seconds_) {
    auto& added = *made.add_processes();
    added.set_process(process);
    added.set_processor_seconds(process == own_.process() ? seconds - own_.processor_seconds()
                                                          : seconds);
  }
  made.set_episodes(episodes_);
  made.set_failed_spills(failed_spills_);
  made.set_training_seconds(training_seconds_);
  return made;
}

void MetricsSum::restore(const wire::MetricsRecord& record) {
  check_counter("episodes", record.episodes());
  check_counter("failed_spills", record.failed_spills());
  for (const auto& report : record.environments())
    add(report);
  for (const auto& report : record.learners())
    add(report);
  for (const auto& report : record.shards())
    add(report);
  for (const auto& report : record.servers())
    add(report);
  for (const auto& time : record.processes())
    add(time);
  episodes_ = record.episodes();
  failed_spills_ = record.failed_spills();
  training_seconds_ = record.training_seconds();
  clock_ = 0;
  const Progress now = progress(0, false);
  reached_ = {{.environment_steps = now.environment_steps,
               .updates = now.updates,
               .samples = now.samples,
               .frames = now.frames}};
}

void MetricsSum::gone(int environment_actor) {
  away_.insert(environment_actor);
}

std::vector<std::string> MetricsSum::waits() const {
  std::vector<std::string> lines;
  std::map<std::string, std::vector<int>> environments; // by what they wait for
  for (const auto& [key, report] : environments_) {
    const auto next = environments_.upper_bound(
        {key.first, std::numeric_limits<std::uint64_t>::max()}); // first entry of the next actor
    const bool newest = std::prev(next)->first == key;
    if (newest && !report.waiting().empty() && !away_.contains(key.first))
      environments[report.waiting()].push_back(key.first);
  }
  for (const auto& [words, actors] : environments)
    lines.push_back("environment " + env::joined(actors) + ": " + words);
  for (const auto& [replica, report] : learners_)
    if (!report.waiting().empty())
      lines.push_back("learner " + std::to_string(replica) + ": " + report.waiting());
  for (const auto& [shard, report] : shards_)
    if (!report.waiting().empty())
      lines.push_back("replay " + std::to_string(shard) + ": " + report.waiting());
  return lines;
}

} // namespace troupe::actors
