#include "env/wrappers/episode_statistics.hpp"

#include <memory>
#include <stdexcept>

#include <nlohmann/json.hpp>

#include "env/appended_file.hpp"
#include "env/state_bytes.hpp"

namespace troupe::env {

namespace {

void save_summary(std::vector<std::byte>& out, const EpisodeSummary& episode) { // without padding
  save_value(out, episode.seed);
  save_value(out, episode.episode_return);
  save_value(out, episode.steps);
  save_value(out, episode.seconds);
  save_value(out, static_cast<std::uint8_t>(episode.terminated));
}

EpisodeSummary load_summary(std::span<const std::byte>& in) {
  EpisodeSummary episode;
  std::uint8_t terminated = 0;
  load_value(in, episode.seed, "seed of the episode");
  load_value(in, episode.episode_return, "return of the episode");
  load_value(in, episode.steps, "steps of the episode");
  load_value(in, episode.seconds, "seconds of the episode");
  load_value(in, terminated, "end of the episode");
  episode.terminated = terminated != 0;
  return episode;
}

} // namespace

EpisodeStatistics::EpisodeStatistics(std::unique_ptr<Environment> wrapped, EpisodeFunction on_end)
    : Wrapper(std::move(wrapped)), on_end_(std::move(on_end)) {}

TimeStep EpisodeStatistics::reset(std::uint64_t seed, std::span<std::byte> observation) {
  const TimeStep result = inner().reset(seed, observation);
  running_ = {.seed = seed};
  return result;
}

TimeStep EpisodeStatistics::step(std::span<const double> action, std::span<std::byte> observation) {
  const TimeStep result = inner().step(action, observation);
  running_.episode_return += result.reward;
  ++running_.steps;
  running_.seconds += spec_.control_timestep_seconds * static_cast<double>(spec_.action_repeat);
  if (result.step_type == StepType::last) {
    running_.terminated = result.discount == 0;
    last_ = running_;
    ++episodes_;
    if (on_end_)
      on_end_(running_);
  }
  return result;
}

void EpisodeStatistics::save_state(std::vector<std::byte>& out) const {
  save_summary(out, running_);
  save_value(out, static_cast<std::uint8_t>(last_.has_value()));
  save_summary(out, last_.value_or(EpisodeSummary{}));
  save_value(out, episodes_);
  Wrapper::save_state(out);
}

std::span<const std::byte> EpisodeStatistics::load_state(std::span<const std::byte> in) {
  const EpisodeSummary running = load_summary(in);
  std::uint8_t has_last = 0;
  load_value(in, has_last, "flag of the last episode");
  const EpisodeSummary last = load_summary(in);
  std::int64_t episodes = 0;
  load_value(in, episodes, "count of episodes");
  in = Wrapper::load_state(in);
  running_ = running;
  last_ = has_last != 0 ? std::optional(last) : std::nullopt;
  episodes_ = episodes;
  return in;
}

EpisodeFunction append_to_log(const std::filesystem::path& path, std::string environment) {
  std::shared_ptr<AppendedFile> file;
  try {
    file = std::make_shared<AppendedFile>(path);
  } catch (const std::runtime_error& failure) {
    throw std::runtime_error(std::string("episode_log ") + failure.what());
  }
  return [file, name = std::move(environment)](const EpisodeSummary& episode) {
    const nlohmann::ordered_json json = {
        {"environment", name},    {"seed", episode.seed},       {"return", episode.episode_return},
        {"steps", episode.steps}, {"seconds", episode.seconds}, {"terminated", episode.terminated}};
    if (!file->append(json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n"))
      throw std::runtime_error("episode_log " + file->flush() + "; "
                               + std::to_string(AppendedFile::kMostWaiting >> 20)
                               + " MiB of its lines are already waiting");
  };
}

} // namespace troupe::env
