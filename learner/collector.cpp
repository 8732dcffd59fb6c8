#include "learner/collector.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <numbers>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>

#include "env/split_mix.hpp"

namespace troupe::learner {

std::uint64_t split_seed(std::uint64_t seed, std::initializer_list<std::uint64_t> path) {
  const auto mix = [](std::uint64_t x) { return env::split_mix(x); };
  std::uint64_t state = mix(seed);
  for (const std::uint64_t part : path)
    state = mix(state ^ mix(part + 1));
  return state;
}

namespace {

constexpr std::size_t kFailuresKept = 16; // until somebody takes them
constexpr std::chrono::minutes kStepTime{1};

env::EnvironmentPool::Clock::time_point step_deadline() {
  return env::EnvironmentPool::Clock::now() + kStepTime;
}

[[noreturn]] void throw_late(const char* what) {
  throw std::runtime_error(std::string("an environment's ") + what
                           + "() gave no answer for a minute; the environments are given up");
}

double uniform(std::mt19937_64& random) {
  return static_cast<double>(random() >> 11) * 0x1.0p-53;
}

/// Box-Muller, one value a call, so that the state of the generator is the whole state.
double normal(std::mt19937_64& random) {
  const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform(random)));
  return radius * std::cos(2.0 * std::numbers::pi * uniform(random));
}

template <class T>
void put(std::vector<std::byte>& out, const T& value) {
  const auto* bytes = reinterpret_cast<const std::byte*>(&value);
  out.insert(out.end(), bytes, bytes + sizeof(T));
}

template <class T>
T take_value(std::span<const std::byte>& in) {
  if (in.size() < sizeof(T))
    throw std::runtime_error("the state of an environment actor is truncated: "
                             + std::to_string(in.size()) + " bytes left where "
                             + std::to_string(sizeof(T)) + " are needed");
  T value;
  std::memcpy(&value, in.data(), sizeof(T));
  in = in.subspan(sizeof(T));
  return value;
}

void put_text(std::vector<std::byte>& out, const std::string& text) {
  put(out, static_cast<std::uint64_t>(text.size()));
  const auto* bytes = reinterpret_cast<const std::byte*>(text.data());
  out.insert(out.end(), bytes, bytes + text.size());
}

std::span<const std::byte> take_block(std::span<const std::byte>& in) {
  const auto size = take_value<std::uint64_t>(in);
  if (size > in.size())
    throw std::runtime_error("the state of an environment actor is truncated");
  const auto block = in.first(size);
  in = in.subspan(size);
  return block;
}

} // namespace

struct Collector::Lane {
  replay::TransitionWriter writer;
  std::mt19937_64 random;  // actions and noise
  std::uint64_t index = 0; // in the whole run
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
  if (spec.observations.size() != 1
      || spec.observations[0].bytes() != transitions_.observation().bytes()
      || static_cast<int>(spec.action.size()) != transitions_.action_size)
    throw std::invalid_argument("environment " + spec.name
                                + " does not fit the transitions it should be written as");
  const auto count = static_cast<std::size_t>(config_.environments);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t lane = first + i;
    lanes_.push_back(Lane{
        .writer = replay::TransitionWriter(transitions_, (config_.incarnation << 32U) | (lane + 1)),
        .random = std::mt19937_64(split_seed(config_.seed, {1, lane, config_.incarnation})),
        .index = lane});
  }
  rows_ = std::make_unique<env::PoolRows>(spec, count);
  actions_.resize(count * static_cast<std::size_t>(transitions_.action_size));
}

Collector::~Collector() = default;

int Collector::lanes() const {
  return static_cast<int>(lanes_.size());
}

void Collector::load_parameters(std::uint64_t version, std::span<const float> parameters) {
  policy_->load(parameters);
  version_ = version;
  loaded_ = true;
}

std::int64_t Collector::steps_of_run() const {
  return (config_.steps_before + agent_steps_ / lanes()) * config_.total_lanes;
}

void Collector::share_run(std::int64_t run_steps, std::int64_t total_lanes) {
  config_.total_lanes = total_lanes;
  config_.steps_before = run_steps / total_lanes - agent_steps_ / lanes();
}

bool Collector::needs_policy() const {
  return steps_of_run() >= config_.random_steps;
}

double Collector::noise() const {
  const double done = static_cast<double>(steps_of_run() - config_.random_steps)
                      / static_cast<double>(config_.noise_steps);
  return config_.noise_start
         + std::clamp(done, 0.0, 1.0) * (config_.noise_end - config_.noise_start);
}

void Collector::note_failure(std::size_t lane) {
  lanes_[lane].running = false;
  const std::string& words = pool_->error(static_cast<int>(lane));
  if (!pool_->in_service(static_cast<int>(lane)))
    throw std::runtime_error(words);
  if (failures_.size() == kFailuresKept)
    failures_.erase(failures_.begin());
  failures_.push_back(words);
}

/// The pool has reset lane's environment.
void Collector::begin_episode(std::size_t i) {
  Lane& lane = lanes_[i];
  const auto frame = lane.writer.next_frame();
  std::memcpy(frame.data(), rows_->observation(i).last(frame.size()).data(), frame.size());
  lane.writer.begin();
  lane.running = true;
}

void Collector::begin_episodes() {
  for (;;) { // until the resets that fail have had their chances
    beginning_.clear();
    for (std::size_t i = 0; i < lanes_.size(); ++i)
      if (!lanes_[i].running)
        beginning_.push_back(static_cast<std::int32_t>(i));
    if (beginning_.empty())
      return;
    if (!pool_->reset(beginning_, rows_->batch(), step_deadline()))
      throw_late("reset");
    for (const std::int32_t lane : beginning_) {
      const auto i = static_cast<std::size_t>(lane);
      if (rows_->statuses[i] == env::RowStatus::ok)
        begin_episode(i);
      else
        note_failure(i);
    }
  }
}

void Collector::choose_actions() {
  begin_episodes();
  const bool random = !needs_policy();
  if (!random) {
    if (!loaded_)
      throw std::logic_error("the collector has no parameters yet");
    policy_->act(rows_->observations, lanes(), actions_);
  }
  const double sigma = noise();
  const auto size = static_cast<std::size_t>(transitions_.action_size);
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    for (std::size_t k = 0; k < size; ++k) {
      double value = actions_[i * size + k];
      if (random)
        value = 2.0 * uniform(lanes_[i].random) - 1.0;
      else if (!std::isfinite(value))
        throw std::runtime_error("the policy's action " + std::to_string(k) + " in environment "
                                 + std::to_string(lanes_[i].index) + " is not finite (parameters "
                                 + std::to_string(version_) + ")");
      else if (sigma > 0)
        value += sigma * normal(lanes_[i].random);
      actions_[i * size + k] = static_cast<float>(std::clamp(value, -1.0, 1.0));
    }
  }
}

void Collector::step_environments() {
  if (!pool_->step(actions_, rows_->batch(), step_deadline()))
    throw_late("step");
  const auto size = static_cast<std::size_t>(transitions_.action_size);
  const std::int64_t repeat = pool_->spec().action_repeat;
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    Lane& lane = lanes_[i];
    environment_steps_ += repeat;
    ++agent_steps_;
    if (rows_->statuses[i] != env::RowStatus::ok) {
      note_failure(i);
      continue;
    }
    const bool last = rows_->step_types[i] == env::StepType::last;
    const auto frame = lane.writer.next_frame();
    std::memcpy(frame.data(), rows_->observation(i).last(frame.size()).data(), frame.size());
    lane.writer.append(std::span<const float>(actions_).subspan(i * size, size),
                       static_cast<float>(rows_->rewards[i]),
                       static_cast<float>(rows_->discounts[i]), last);
    if (last) {
      episodes_.push_back({rows_->episode_returns[i], rows_->episode_steps[i] * repeat});
      lane.running = false;
    }
  }
}

replay::InsertionPtr Collector::take(int lane) {
  return lanes_.at(static_cast<std::size_t>(lane)).writer.take();
}

std::vector<EpisodeEnd> Collector::take_episodes() {
  return std::exchange(episodes_, {});
}

std::vector<std::string> Collector::take_failures() {
  return std::exchange(failures_, {});
}

void Collector::save_state(std::vector<std::byte>& out) const {
  put(out, static_cast<std::uint64_t>(lanes_.size()));
  put(out, agent_steps_);
  put(out, environment_steps_);
  const bool goes_on = pool_->spec().saves_state; // else the lane begins a new episode there
  for (const Lane& lane : lanes_) {
    std::ostringstream random;
    random << lane.random;
    put_text(out, random.str());
    put(out, static_cast<std::uint8_t>(lane.running && goes_on));
    std::vector<std::byte> part;
    lane.writer.save_state(part);
    put(out, static_cast<std::uint64_t>(part.size()));
    out.insert(out.end(), part.begin(), part.end());
  }
  std::vector<std::byte> pool;
  pool_->save_state(pool);
  put(out, static_cast<std::uint64_t>(pool.size()));
  out.insert(out.end(), pool.begin(), pool.end());
  out.insert(out.end(), rows_->observations.begin(), rows_->observations.end());
}

std::span<const std::byte> Collector::load_state(std::span<const std::byte> in) {
  const auto count = take_value<std::uint64_t>(in);
  if (count != lanes_.size())
    throw std::runtime_error("the checkpoint has " + std::to_string(count)
                             + " environments in this actor, the experiment "
                             + std::to_string(lanes_.size())
                             + "; resume with actors.environments_per_actor as it was");
  agent_steps_ = take_value<std::int64_t>(in);
  environment_steps_ = take_value<std::int64_t>(in);
  for (Lane& lane : lanes_) {
    const auto random = take_block(in);
    std::istringstream text(
        std::string(reinterpret_cast<const char*>(random.data()), random.size()));
    text >> lane.random;
    lane.running = take_value<std::uint8_t>(in) != 0;
    lane.writer.load_state(take_block(in));
  }
  pool_->load_state(take_block(in));
  auto& observations = rows_->observations;
  if (in.size() < observations.size())
    throw std::runtime_error("the state of an environment actor is truncated");
  std::copy_n(in.begin(), observations.size(), observations.begin());
  return in.subspan(observations.size());
}

replay::TransitionSpec transition_spec(const env::EnvironmentSpec& spec, int n_step,
                                       double discount) {
  if (spec.observations.size() != 1)
    throw std::invalid_argument("environment " + spec.name + " has "
                                + std::to_string(spec.observations.size())
                                + " observations where the agent takes one");
  replay::TransitionSpec made;
  made.frame = spec.observations[0];
  made.stack = spec.frame_stack;
  made.frame.shape.at(0) /= spec.frame_stack;
  made.action_size = static_cast<int>(spec.action.size());
  made.n_step = n_step;
  made.discount = discount;
  return made;
}

} // namespace troupe::learner
