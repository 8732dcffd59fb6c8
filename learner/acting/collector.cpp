#include "learner/acting/collector.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>

#include "env/split_mix.hpp"
#include "env/state_bytes.hpp"
#include "learner/acting/uniform_actions.hpp"
#include "replay/recordings/episode.hpp"

namespace troupe::learner {

std::uint64_t split_seed(std::uint64_t seed, std::initializer_list<std::uint64_t> path) {
  const auto mix = [](std::uint64_t x) { return env::split_mix(x); };
  std::uint64_t state = mix(seed);
  for (const std::uint64_t part : path)
    state = mix(state ^ mix(part + 1));
  return state;
}

namespace {

constexpr std::size_t kFailuresKept = 16; // between two calls of take_failures()

env::EnvironmentPool::Clock::time_point deadline_of(const CollectorConfig& config) {
  return env::EnvironmentPool::Clock::now() + batch_limit(config);
}

[[noreturn]] void throw_late(const char* what, const CollectorConfig& config) {
  throw std::runtime_error(std::string("an environment's ") + what + "() did not return within "
                           + std::to_string(batch_limit(config).count())
                           + " ms; the actor gives up on its environments");
}

template <class T>
T take_value(std::span<const std::byte>& in) {
  T value;
  env::load_value(in, value, "next number");
  return value;
}

} // namespace

struct Collector::EnvironmentSlot {
  replay::Writer writer;
  ActingRandom random;     // actions and noise
  std::uint64_t index = 0; // index in the whole run
  bool running = false;
};

Collector::Collector(const CollectorConfig& config, const env::EnvironmentPool::Make& make,
                     std::unique_ptr<Policy> policy, const replay::TransitionSpec& transitions)
    : config_(config), policy_(std::move(policy)), transitions_(transitions) {
  const auto first = static_cast<std::uint64_t>(config_.first_lane);
  env::PoolOptions options{.environments = config_.environments,
                           .threads = std::min(config_.threads, config_.environments),
                           .spares = config_.spares};
  options.episode_seed = [seed = config_.seed, incarnation = config_.incarnation,
                          first](int lane, std::uint64_t episode) {
    return split_seed(seed, {2, first + static_cast<std::uint64_t>(lane), incarnation, episode});
  };
  pool_ = std::make_unique<env::EnvironmentPool>(options, make);
  const auto& spec = pool_->spec();
  replay::TransitionSpec single = transitions_;
  single.stack = 1;
  const bool single_frames = spec.observation_bytes() == single.observation_bytes();
  if (spec.observations.size() != 1 + transitions_.vectors.size()
      || (!single_frames && spec.observation_bytes() != transitions_.observation_bytes())
      || static_cast<int>(spec.action.size()) != transitions_.action_size
      || (!spec.action.is_continuous() && spec.action.choices != transitions_.action_choices))
    throw std::invalid_argument("environment " + spec.name
                                + " does not match the transitions in which it is stored");
  const auto count = static_cast<std::size_t>(config_.environments);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t lane = first + i;
    const std::uint64_t writer = (config_.incarnation << 32U) | (lane + 1);
    slots_.push_back(EnvironmentSlot{
        .writer = transitions_.has_hindsight() ? replay::hindsight_transition_writer(
                      transitions_, writer,
                      split_seed(config_.seed, {7, lane, config_.incarnation}), spec.goal)
                                               : replay::transition_writer(transitions_, writer),
        .random = {std::mt19937_64(split_seed(config_.seed, {1, lane, config_.incarnation}))},
        .index = lane});
  }
  for (EnvironmentSlot& slot : slots_)
    randoms_.push_back(&slot.random);
  rows_ = std::make_unique<env::PoolRows>(spec, count);
  places_.resize(count);
  for (std::size_t i = 0; i < count; ++i)
    places_[i] = next_place(i);
  const replay::RowLayout& row = slots_[0].writer.layout();
  bool as_in_a_row = single_frames;
  for (std::size_t i = 0; i < transitions_.vectors.size(); ++i)
    as_in_a_row &= row.columns[replay::kVectors + i].offset == single.vector_offset(i);
  if (as_in_a_row) {
    pool_->observe_in(places_);
    rows_->observations = {};
  }
  frames_.resize(count * static_cast<std::size_t>(transitions_.stack));
  vectors_.resize(count * transitions_.vectors.size());
  actions_.resize(count * static_cast<std::size_t>(transitions_.action_size));
  first_.resize(count);
  states_.resize(count * static_cast<std::size_t>(policy_->state_size()));
}

Collector::~Collector() = default;

int Collector::lanes() const {
  return static_cast<int>(slots_.size());
}

void Collector::load_parameters(std::uint64_t version, std::span<const float> parameters) {
  policy_->load(parameters);
  version_ = version;
  loaded_ = true;
}

std::int64_t Collector::steps_of_run() const {
  return (config_.steps_before + agent_steps_ / lanes()) * config_.total_lanes;
}

void Collector::set_global_progress(std::int64_t run_steps, std::int64_t total_lanes) {
  config_.total_lanes = total_lanes;
  config_.steps_before = run_steps / total_lanes - agent_steps_ / lanes();
}

void Collector::restart_sequences() {
  for (EnvironmentSlot& slot : slots_)
    slot.writer.restart_windows();
}

bool Collector::needs_policy() const {
  return steps_of_run() >= config_.random_steps;
}

void Collector::note_failure(std::size_t lane) {
  slots_[lane].running = false;
  const std::string& words = pool_->error(static_cast<int>(lane));
  if (!pool_->in_service(static_cast<int>(lane)))
    throw std::runtime_error(words);
  if (failures_.size() == kFailuresKept)
    failures_.erase(failures_.begin());
  failures_.push_back(words);
}

std::byte* Collector::next_place(std::size_t i) {
  return slots_[i].writer.next(replay::kFrame).data();
}

/// Copies the newest frame and the vectors into the writer's row, unless they are already there.
void Collector::place_observation(std::size_t i) {
  if (rows_->observations.empty())
    return;
  const env::EnvironmentSpec& spec = pool_->spec();
  const auto observed = rows_->observation(i);
  const std::size_t bytes = transitions_.frame.bytes();
  std::memcpy(places_[i], observed.first(spec.observations[0].bytes()).last(bytes).data(), bytes);
  for (std::size_t k = 0; k < transitions_.vectors.size(); ++k)
    std::ranges::copy(
        observed.subspan(spec.observation_offset(1 + k), transitions_.vectors[k].bytes()),
        slots_[i].writer.next(replay::kVectors + k).begin());
}

/// Begins an episode in a lane whose environment the pool has reset.
void Collector::begin_episode(std::size_t i) {
  EnvironmentSlot& slot = slots_[i];
  place_observation(i);
  replay::begin_episode(slot.writer);
  const std::size_t size = states_.size() / slots_.size();
  std::ranges::fill(std::span(states_).subspan(i * size, size), 0.0F);
  places_[i] = next_place(i);
  slot.running = true;
}

void Collector::begin_episodes() {
  for (;;) { // failed resets are repeated until the pool gives up on the environment
    beginning_.clear();
    for (std::size_t i = 0; i < slots_.size(); ++i)
      if (!slots_[i].running)
        beginning_.push_back(static_cast<std::int32_t>(i));
    if (beginning_.empty())
      return;
    if (!pool_->reset(beginning_, rows_->batch(), deadline_of(config_)))
      throw_late("reset", config_);
    for (const std::int32_t lane : beginning_) {
      const auto i = static_cast<std::size_t>(lane);
      if (rows_->statuses[i] == env::RowStatus::ok)
        begin_episode(i);
      else
        note_failure(i);
    }
  }
}

/// Writes the parameter version of each step. note_probabilities() writes the log-probability of
/// its action, and the policy writes the other extras. Random steps have no other extras.
void Collector::begin_extras(bool random) {
  const std::size_t count = transitions_.extras.size();
  extras_.clear();
  for (std::size_t k = 0; k < count; ++k)
    for (EnvironmentSlot& slot : slots_) {
      const std::span<std::byte> place =
          slot.writer.next(slot.writer.layout().place(replay::kExtras) + k);
      if (k == 0)
        std::memcpy(place.data(), &version_, sizeof version_);
      else if (random)
        std::ranges::fill(place, std::byte{0});
      if (k > 0)
        extras_.push_back(place.data());
    }
}

/// Writes the log-probabilities with which the chosen actions are played: the last extra.
void Collector::note_probabilities(bool random, const Observations& observations,
                                   const Exploration& exploration) {
  std::vector<double> logarithms(slots_.size(), log_uniform(transitions_));
  if (!random)
    policy_->log_probability(observations, exploration, played(), logarithms);
  const std::size_t first = extras_.size() - slots_.size();
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    const auto stored = static_cast<float>(logarithms[i]);
    std::memcpy(extras_[first + i], &stored, sizeof stored);
  }
}

/// The actions as the environments receive them, clipped to [-1, 1].
std::span<const float> Collector::played() {
  const auto size = static_cast<std::size_t>(transitions_.action_size);
  played_.resize(actions_.size());
  for (std::size_t i = 0; i < actions_.size(); ++i)
    played_[i] =
        transitions_.choices_of(i % size) > 0 ? actions_[i] : std::clamp(actions_[i], -1.0F, 1.0F);
  return played_;
}

void Collector::choose_actions() {
  begin_episodes();
  const bool random = !needs_policy();
  begin_extras(random);
  const bool probable = !transitions_.extras.empty()
                        && transitions_.extras.back().name == replay::kPlayedLogProbability;
  Observations observations{.frames = frames_,
                            .frame_bytes = transitions_.frame.bytes(),
                            .batch = lanes(),
                            .vectors = vectors_,
                            .state = states_};
  const Exploration exploration{.steps = steps_of_run() - config_.random_steps,
                                .first_lane = config_.first_lane,
                                .total_lanes = config_.total_lanes,
                                .random = randoms_,
                                .first = first_,
                                .extras = extras_};
  std::vector<float> before; // the states before the actions were chosen
  if (!random) {
    if (!loaded_)
      throw std::logic_error("the collector has no parameters yet");
    const auto stack = static_cast<std::size_t>(transitions_.stack);
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      const replay::Writer& writer = slots_[i].writer;
      const std::int64_t first = writer.rows() - writer.episode_rows();
      first_[i] = writer.episode_rows() == 1 ? 1 : 0;
      for (std::size_t k = 0; k < stack; ++k) { // young episodes repeat their first frame
        const std::int64_t row = writer.rows() - transitions_.stack + static_cast<std::int64_t>(k);
        frames_[i * stack + k] = writer.at(std::max(first, row), replay::kFrame).data();
      }
      const std::size_t vectors = transitions_.vectors.size();
      for (std::size_t k = 0; k < vectors; ++k)
        vectors_[i * vectors + k] = writer.at(writer.rows() - 1, replay::kVectors + k).data();
    }
    if (probable)
      before = states_;
    try {
      policy_->explore(observations, exploration, actions_);
    } catch (const std::runtime_error& error) {
      throw std::runtime_error(std::string(error.what()) + "; row 0 is environment "
                               + std::to_string(config_.first_lane) + ", parameter version "
                               + std::to_string(version_));
    }
  }
  if (random)
    draw_uniform(transitions_, randoms_, actions_);
  if (probable) {
    observations.state = before;
    note_probabilities(random, observations, exploration);
  }
}

void Collector::step_environments() {
  const auto size = static_cast<std::size_t>(transitions_.action_size);
  if (!pool_->step(played(), rows_->batch(), deadline_of(config_)))
    throw_late("step", config_);
  const std::int64_t repeat = pool_->spec().action_repeat;
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    EnvironmentSlot& slot = slots_[i];
    environment_steps_ += repeat;
    ++agent_steps_;
    if (rows_->statuses[i] != env::RowStatus::ok) {
      note_failure(i);
      continue;
    }
    const bool last = rows_->step_types[i] == env::StepType::last;
    place_observation(i);
    replay::append_step(slot.writer, std::span<const float>(actions_).subspan(i * size, size),
                        static_cast<float>(rows_->rewards[i]),
                        static_cast<float>(rows_->discounts[i]), last);
    places_[i] = next_place(i);
    if (last) {
      episodes_.push_back({rows_->episode_returns[i], rows_->episode_steps[i] * repeat});
      slot.running = false;
    }
  }
}

env::Physics* Collector::physics(int lane) {
  return pool_->physics(lane);
}

std::span<const std::byte> Collector::newest_frame(int lane) const {
  const replay::Writer& writer = slots_.at(static_cast<std::size_t>(lane)).writer;
  if (writer.kept_rows() == 0)
    return {};
  return writer.at(writer.rows() - 1, replay::kFrame);
}

replay::InsertionPtr Collector::take(int lane) {
  return slots_.at(static_cast<std::size_t>(lane)).writer.take();
}

std::vector<EpisodeEnd> Collector::take_episodes() {
  return std::exchange(episodes_, {});
}

std::vector<std::string> Collector::take_failures() {
  return std::exchange(failures_, {});
}

void Collector::save_state(std::vector<std::byte>& out) const {
  env::save_value(out, static_cast<std::uint64_t>(slots_.size()));
  env::save_value(out, agent_steps_);
  env::save_value(out, environment_steps_);
  const bool resumes = pool_->spec().saves_state; // otherwise a new episode begins
  for (const EnvironmentSlot& slot : slots_) {
    std::ostringstream random;
    random << slot.random.generator;
    env::save_array<char>(out, random.view());
    env::save_value(out, static_cast<std::uint8_t>(slot.running && resumes));
    std::vector<std::byte> part;
    slot.writer.save_state(part);
    env::save_array<std::byte>(out, part);
  }
  const auto states = std::as_bytes(std::span(states_));
  out.insert(out.end(), states.begin(), states.end());
  policy_->save_exploration(out);
  std::vector<std::byte> pool;
  pool_->save_state(pool);
  env::save_array<std::byte>(out, pool);
}

std::span<const std::byte> Collector::load_state(std::span<const std::byte> in) {
  const auto count = take_value<std::uint64_t>(in);
  if (count != slots_.size())
    throw std::runtime_error("the checkpoint has " + std::to_string(count)
                             + " environments in this actor, but the experiment has "
                             + std::to_string(slots_.size())
                             + "; resume with actors.environments_per_actor as it was");
  agent_steps_ = take_value<std::int64_t>(in);
  environment_steps_ = take_value<std::int64_t>(in);
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    EnvironmentSlot& slot = slots_[i];
    std::istringstream(env::load_text(in, "random numbers")) >> slot.random.generator;
    slot.running = take_value<std::uint8_t>(in) != 0;
    slot.writer.load_state(env::load_bytes(in, "writer"));
    places_[i] = next_place(i);
  }
  for (float& number : states_)
    number = take_value<float>(in);
  in = policy_->load_exploration(in);
  pool_->load_state(env::load_bytes(in, "pool"));
  return in;
}

} // namespace troupe::learner
