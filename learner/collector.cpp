#include "learner/collector.hpp"

#include <algorithm>
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
  std::unique_ptr<env::Environment> environment;
  replay::TransitionWriter writer;
  std::mt19937_64 random; // actions and noise
  std::uint64_t index = 0;
  std::uint64_t episode = 0; // episodes begun
  bool running = false;
  EpisodeEnd sums = {};
  std::vector<double> action = {};
};

Collector::Collector(const CollectorConfig& config,
                     std::vector<std::unique_ptr<env::Environment>> environments,
                     std::unique_ptr<Policy> policy, const replay::TransitionSpec& transitions)
    : config_(config), policy_(std::move(policy)), transitions_(transitions) {
  if (environments.empty())
    throw std::invalid_argument("a collector needs at least one environment");
  const auto whole = transitions_.observation();
  for (std::size_t i = 0; i < environments.size(); ++i) {
    const auto& spec = environments[i]->spec();
    if (spec.observations.size() != 1 || spec.observations[0].bytes() != whole.bytes()
        || static_cast<int>(spec.action.size()) != transitions_.action_size)
      throw std::invalid_argument("environment " + spec.name
                                  + " does not fit the transitions it should be written as");
    const std::uint64_t lane = static_cast<std::uint64_t>(config_.first_lane) + i;
    lanes_.push_back(Lane{
        .environment = std::move(environments[i]),
        .writer = replay::TransitionWriter(transitions_, (config_.incarnation << 32U) | (lane + 1)),
        .random = std::mt19937_64(split_seed(config_.seed, {1, lane, config_.incarnation})),
        .index = lane});
    lanes_.back().action.resize(static_cast<std::size_t>(transitions_.action_size));
  }
  observations_.resize(lanes_.size() * whole.bytes());
  actions_.resize(lanes_.size() * static_cast<std::size_t>(transitions_.action_size));
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

bool Collector::needs_policy() const {
  return steps_of_run() >= config_.random_steps;
}

double Collector::noise() const {
  const double done = static_cast<double>(steps_of_run() - config_.random_steps)
                      / static_cast<double>(config_.noise_steps);
  return config_.noise_start
         + std::clamp(done, 0.0, 1.0) * (config_.noise_end - config_.noise_start);
}

std::span<std::byte> Collector::observation(const Lane& lane) {
  const std::size_t bytes = observations_.size() / lanes_.size();
  const auto i = lane.index - static_cast<std::uint64_t>(config_.first_lane);
  return std::span(observations_).subspan(i * bytes, bytes);
}

void Collector::begin_episode(Lane& lane) {
  const auto whole = observation(lane);
  lane.environment->reset(
      split_seed(config_.seed, {2, lane.index, config_.incarnation, lane.episode++}), whole);
  const auto frame = lane.writer.next_frame();
  std::memcpy(frame.data(), whole.last(frame.size()).data(), frame.size());
  lane.writer.begin();
  lane.sums = {};
  lane.running = true;
}

void Collector::choose_actions() {
  for (Lane& lane : lanes_)
    if (!lane.running)
      begin_episode(lane);
  const bool random = !needs_policy();
  if (!random) {
    if (!loaded_)
      throw std::logic_error("the collector has no parameters yet");
    policy_->act(observations_, lanes(), actions_);
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
  const auto size = static_cast<std::size_t>(transitions_.action_size);
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    Lane& lane = lanes_[i];
    const auto action = std::span<const float>(actions_).subspan(i * size, size);
    std::copy(action.begin(), action.end(), lane.action.begin());
    const auto whole = observation(lane);
    const env::TimeStep step = lane.environment->step(lane.action, whole);
    const bool last = step.step_type == env::StepType::last;
    const auto frame = lane.writer.next_frame();
    std::memcpy(frame.data(), whole.last(frame.size()).data(), frame.size());
    lane.writer.append(action, static_cast<float>(step.reward), static_cast<float>(step.discount),
                       last);
    const std::int64_t repeat = lane.environment->spec().action_repeat;
    lane.sums.episode_return += step.reward;
    lane.sums.environment_steps += repeat;
    environment_steps_ += repeat;
    ++agent_steps_;
    if (last) {
      episodes_.push_back(lane.sums);
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

void Collector::save_state(std::vector<std::byte>& out) const {
  put(out, static_cast<std::uint64_t>(lanes_.size()));
  put(out, agent_steps_);
  put(out, environment_steps_);
  for (const Lane& lane : lanes_) {
    std::ostringstream random;
    random << lane.random;
    put_text(out, random.str());
    put(out, lane.episode);
    put(out, static_cast<std::uint8_t>(lane.running));
    put(out, lane.sums.episode_return);
    put(out, lane.sums.environment_steps);
    std::vector<std::byte> part;
    if (lane.episode > 0) // before the first reset there is nothing to keep
      lane.environment->save_state(part);
    put(out, static_cast<std::uint64_t>(part.size()));
    out.insert(out.end(), part.begin(), part.end());
    part.clear();
    lane.writer.save_state(part);
    put(out, static_cast<std::uint64_t>(part.size()));
    out.insert(out.end(), part.begin(), part.end());
  }
  out.insert(out.end(), observations_.begin(), observations_.end());
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
    lane.episode = take_value<std::uint64_t>(in);
    lane.running = take_value<std::uint8_t>(in) != 0;
    lane.sums.episode_return = take_value<double>(in);
    lane.sums.environment_steps = take_value<std::int64_t>(in);
    if (const auto state = take_block(in); !state.empty())
      lane.environment->load_state(state);
    lane.writer.load_state(take_block(in));
  }
  if (in.size() < observations_.size())
    throw std::runtime_error("the state of an environment actor is truncated");
  std::copy_n(in.begin(), observations_.size(), observations_.begin());
  return in.subspan(observations_.size());
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
