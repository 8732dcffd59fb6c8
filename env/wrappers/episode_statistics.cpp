#include "env/wrappers/episode_statistics.hpp"

#include <memory>
#include <stdexcept>

#include <nlohmann/json.hpp>

#include "env/appended_file.hpp"
#include "env/state_bytes.hpp"

namespace troupe::env {

EpisodeStatistics::EpisodeStatistics(std::unique_ptr<Environment> wrapped, EpisodeFunction on_end)
    : Wrapper(std::move(wrapped)), on_end_(std::move(on_end)) {}

TimeStep EpisodeStatistics::reset(std::uint64_t seed, std::span<std::byte> observation) {
  const TimeStep result = inner().reset(seed, observation);
  episode_ = {.seed = seed};
  return result;
}

TimeStep EpisodeStatistics::step(std::span<const double> action, std::span<std::byte> observation) {
  const TimeStep result = inner().step(action, observation);
  episode_.episode_return += result.reward;
  ++episode_.steps;
  episode_.seconds += spec_.control_timestep_seconds * static_cast<double>(spec_.action_repeat);
  if (result.step_type == StepType::last) {
    episode_.terminated = result.discount == 0;
    on_end_(episode_);
  }
  return result;
}

void EpisodeStatistics::save_state(std::vector<std::byte>& out) const {
  save_value(out, episode_.seed);
  save_value(out, episode_.episode_return);
  save_value(out, episode_.steps);
  save_value(out, episode_.seconds);
  Wrapper::save_state(out);
}

std::span<const std::byte> EpisodeStatistics::load_state(std::span<const std::byte> in) {
  EpisodeSummary episode;
  load_value(in, episode.seed, "seed of the episode");
  load_value(in, episode.episode_return, "return of the episode");
  load_value(in, episode.steps, "steps of the episode");
  load_value(in, episode.seconds, "seconds of the episode");
  in = Wrapper::load_state(in);
  episode_ = episode;
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
