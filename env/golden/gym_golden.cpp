#include "env/golden/gym_golden.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <stdexcept>

#include "env/golden/golden_index.hpp"
#include "env/golden/golden_replay.hpp"
#include "env/gym/gym_environment.hpp"

namespace troupe::env {

using namespace gym;

namespace {

// Limit on the Kolmogorov-Smirnov statistic times sqrt(n m / (n + m)). Equal distributions exceed
// it by chance once in 20 million comparisons (2 exp(-2 x²)).
constexpr double kResetStatistic = 3;

std::string task_of(const std::string& recording) {
  return recording.substr(0, recording.find('.'));
}

/// Reads the options of a recording from the index.
GymOptions read_options(const std::string& folder, const std::string& recording,
                        const std::string& models) {
  return read_golden_entry(folder, recording, [&](const nlohmann::json& entry) {
    return GymOptions{.values = entry.at("options").get<std::map<std::string, std::string>>(),
                      .models = models};
  });
}

/// Compares our environment with one recording.
class GymReplay {
public:
  GymReplay(const std::string& folder, const std::string& recording, const GymOptions& options)
      : source_((std::filesystem::path(folder) / (recording + ".npz")).string()),
        arrays_(read_npz(source_)),
        made_(make_gym(task_of(recording), options)),
        environment_(dynamic_cast<GymEnvironment&>(*made_)) {
    observation_.resize(environment_.spec().observation_bytes() / sizeof(double));
  }

  GymEnvironment& environment() { return environment_; }
  std::span<const double> observation() const { return observation_; }
  std::span<std::byte> buffer() { return std::as_writable_bytes(std::span(observation_)); }
  std::size_t nq() { return static_cast<std::size_t>(environment_.physics()->model().nq); }
  std::size_t nv() { return static_cast<std::size_t>(environment_.physics()->model().nv); }
  std::size_t nu() const { return environment_.spec().action.size(); }
  bool has(const std::string& name) const { return arrays_.contains(name); }

  /// `count` is the required number of rows; 0 allows any.
  RecordedTable get(const std::string& name, std::size_t columns, std::size_t count = 0) const {
    RecordedTable table = recorded_table(arrays_, name, columns, source_);
    if (count != 0 && table.rows != count)
      throw std::runtime_error(source_ + ": array '" + name + "' has " + std::to_string(table.rows)
                               + " rows; it needs " + std::to_string(count));
    return table;
  }

private:
  std::string source_;
  RecordedArrays arrays_;
  std::unique_ptr<Environment> made_;
  GymEnvironment& environment_;
  std::vector<double> observation_;
};

void judge_end(GoldenReport& report, const std::string& where, const TimeStep& ours,
               bool terminated, bool truncated) {
  const bool our_end = ours.step_type == StepType::last;
  const bool our_termination = our_end && ours.discount == 0;
  if (our_termination != terminated || our_end != (terminated || truncated))
    report.failures.push_back(
        where + ": ours " + (our_termination ? "terminates" : "does not terminate")
        + (our_end && !our_termination ? " but is truncated" : "") + ", Gymnasium's "
        + (terminated ? "terminates" : "does not terminate")
        + (truncated ? " and is truncated" : ""));
}

void check_episodes(GymReplay& replay, GoldenReport& report) {
  const std::size_t size = replay.observation().size();
  const RecordedTable actions = replay.get("action", replay.nu());
  const RecordedTable observations = replay.get("obs", size, actions.rows);
  const RecordedTable rewards = replay.get("reward", 1, actions.rows);
  const RecordedTable terminated = replay.get("terminated", 1, actions.rows);
  const RecordedTable truncated = replay.get("truncated", 1, actions.rows);
  const RecordedTable qpos = replay.get("qpos", replay.nq(), actions.rows);
  const RecordedTable qvel = replay.get("qvel", replay.nv(), actions.rows);
  const RecordedTable starts = replay.get("reset_step", 1);
  const RecordedTable start_qpos = replay.get("reset_qpos", replay.nq(), starts.rows);
  const RecordedTable start_qvel = replay.get("reset_qvel", replay.nv(), starts.rows);
  const RecordedTable start_observations = replay.get("reset_obs", size, starts.rows);
  std::map<std::string, RecordedTable> parts;
  for (const RewardPart& part : replay.environment().reward_parts())
    parts[part.name] = replay.get(std::string("part/") + part.name, 1, actions.rows);
  GymEnvironment& environment = replay.environment();
  std::size_t episode = 0;
  for (std::size_t i = 0; i < actions.rows; ++i) {
    if (episode < starts.rows && starts.values[episode] == static_cast<double>(i)) {
      environment.reset_to(start_qpos.row(episode), start_qvel.row(episode), replay.buffer());
      report.observation_error =
          std::max(report.observation_error,
                   relative_error(replay.observation(), start_observations.row(episode)));
      ++episode;
    }
    const TimeStep step = environment.step(actions.row(i), replay.buffer());
    report.observation_error = std::max(
        {report.observation_error, relative_error(replay.observation(), observations.row(i)),
         relative_error(positions(*environment.physics()), qpos.row(i)),
         relative_error(velocities(*environment.physics()), qvel.row(i))});
    report.reward_error =
        std::max(report.reward_error, relative_error({&step.reward, 1}, rewards.row(i)));
    for (const RewardPart& part : environment.reward_parts())
      report.reward_error =
          std::max(report.reward_error, relative_error({&part.value, 1}, parts[part.name].row(i)));
    judge_end(report, "step " + std::to_string(i), step, terminated.values[i] != 0,
              truncated.values[i] != 0);
    if (!report.failures.empty())
      return; // our episode ended before theirs and cannot be stepped further
  }
  if (episode != starts.rows)
    report.failures.push_back("the recording begins episodes after its last step");
  report.steps = static_cast<int>(actions.rows);
}

void check_probes(GymReplay& replay, GoldenReport& report) {
  const RecordedTable qpos = replay.get("probe_qpos", replay.nq());
  const RecordedTable qvel = replay.get("probe_qvel", replay.nv(), qpos.rows);
  const RecordedTable actions = replay.get("probe_action", replay.nu(), qpos.rows);
  const RecordedTable observations =
      replay.get("probe_obs", replay.observation().size(), qpos.rows);
  const RecordedTable rewards = replay.get("probe_reward", 1, qpos.rows);
  const RecordedTable terminated = replay.get("probe_terminated", 1, qpos.rows);
  for (std::size_t i = 0; i < qpos.rows; ++i) {
    replay.environment().reset_to(qpos.row(i), qvel.row(i), replay.buffer());
    const TimeStep step = replay.environment().step(actions.row(i), replay.buffer());
    report.probe_error =
        std::max({report.probe_error, relative_error(replay.observation(), observations.row(i)),
                  relative_error({&step.reward, 1}, rewards.row(i))});
    if ((step.discount == 0) != (terminated.values[i] != 0))
      report.failures.push_back("probe " + std::to_string(i)
                                + ": termination differs from Gymnasium's");
  }
  report.probes = static_cast<int>(qpos.rows);
}

/// sqrt(n m / (n + m)) times the largest distance between the two empirical distributions.
double kolmogorov_smirnov(std::vector<double> a, std::vector<double> b) {
  std::sort(a.begin(), a.end());
  std::sort(b.begin(), b.end());
  const auto n = static_cast<double>(a.size());
  const auto m = static_cast<double>(b.size());
  double worst = 0;
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const double value = std::min(a[i], b[j]);
    while (i < a.size() && a[i] <= value)
      ++i;
    while (j < b.size() && b[j] <= value)
      ++j;
    worst = std::max(worst, std::abs(static_cast<double>(i) / n - static_cast<double>(j) / m));
  }
  return worst * std::sqrt(n * m / (n + m));
}

void compare_starts(const std::string& what, const std::vector<std::vector<double>>& ours,
                    const RecordedTable& theirs, GoldenReport& report) {
  for (std::size_t k = 0; k < theirs.columns; ++k) {
    std::vector<double> a;
    std::vector<double> b;
    for (const auto& start : ours)
      a.push_back(start[k]);
    for (std::size_t i = 0; i < theirs.rows; ++i)
      b.push_back(theirs.row(i)[k]);
    const double statistic = kolmogorov_smirnov(std::move(a), std::move(b));
    if (!(statistic <= kResetStatistic))
      report.failures.push_back(
          "resets: " + what + "[" + std::to_string(k) + "] has a different distribution (statistic "
          + short_text(statistic) + ", more than " + short_text(kResetStatistic) + ")");
  }
}

void check_resets(GymReplay& replay, GoldenReport& report) {
  if (!replay.has("resets_qpos"))
    return;
  const RecordedTable qpos = replay.get("resets_qpos", replay.nq());
  const RecordedTable qvel = replay.get("resets_qvel", replay.nv(), qpos.rows);
  if (qpos.rows == 0)
    return;
  std::vector<std::vector<double>> our_qpos;
  std::vector<std::vector<double>> our_qvel;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    replay.environment().reset(seed, replay.buffer());
    const auto q = positions(*replay.environment().physics());
    const auto v = velocities(*replay.environment().physics());
    our_qpos.emplace_back(q.begin(), q.end());
    our_qvel.emplace_back(v.begin(), v.end());
  }
  compare_starts("qpos", our_qpos, qpos, report);
  compare_starts("qvel", our_qvel, qvel, report);
}

} // namespace

bool is_gym_recording(const std::string& recording) {
  const std::vector<std::string> names = gym_names();
  return std::find(names.begin(), names.end(), task_of(recording)) != names.end();
}

GoldenReport check_gym_golden(const std::string& folder, const std::string& recording,
                              const std::string& models) {
  GoldenReport report;
  report.task = recording;
  GymReplay replay(folder, recording, read_options(folder, recording, models));
  check_episodes(replay, report);
  check_probes(replay, report);
  check_resets(replay, report);
  judge(report, "observations", report.observation_error, kGoldenTolerance);
  judge(report, "rewards", report.reward_error, kGoldenTolerance);
  judge(report, "probes", report.probe_error, kGoldenProbeTolerance);
  return report;
}

} // namespace troupe::env
