#pragma once
// Small D4PG learners and batches for the tests.

#include <memory>
#include <span>

#include <ATen/Parallel.h>
#include <torch/types.h>

#include "learner/agents/d4pg/d4pg.hpp"

namespace troupe::tests {

struct Variant {
  std::string name;
  learner::D4pgConfig config;
  replay::TransitionSpec spec;
};

inline replay::TransitionSpec state_spec(std::int64_t observation, int action) {
  return {.frame = {"state", env::ElementType::float32, {observation}}, .action_size = action};
}

inline replay::TransitionSpec pixel_spec(std::int64_t size, int stack, int action) {
  return {.frame = {"pixels", env::ElementType::uint8, {1, size, size}},
          .stack = stack,
          .action_size = action};
}

inline learner::D4pgConfig small_config() {
  learner::D4pgConfig config;
  config.policy_layers = {24, 20};
  config.critic_layers = {28, 20};
  config.value_maximum = 10;
  return config;
}

inline at::Tensor uniform(at::IntArrayRef shape, std::uint64_t seed, double low = -1,
                          double high = 1) {
  at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  return at::rand(shape, generator, at::TensorOptions(at::kFloat)) * (high - low) + low;
}

/// Random sequences in which one row in five is the first of an episode.
inline learner::TensorMap random_sequences(const replay::TransitionSpec& spec, std::int64_t batch,
                                           std::uint64_t seed) {
  const std::int64_t steps = spec.sequence_steps;
  std::vector<std::int64_t> shape = spec.observation().shape;
  shape.insert(shape.begin(), {batch, steps + 1});
  learner::TensorMap out;
  out["observation"] = spec.frame.is_picture() ? uniform(shape, seed, 0, 255.99).to(at::kByte)
                                               : uniform(shape, seed);
  for (const env::ArraySpec& vector : spec.vectors)
    out[replay::vector_name("observation", vector)] =
        uniform({batch, steps + 1, vector.shape.at(0)}, seed + 7);
  out["first"] = uniform({batch, steps + 1}, seed + 1, 0, 1).lt(0.2).to(at::kByte);
  out["action"] = uniform({batch, steps, spec.action_size}, seed + 2);
  if (!spec.action_choices.empty())
    out["action"] = ((out["action"] + 1) * (spec.choices_of(0) / 2.0)).floor();
  out["reward"] = uniform({batch, steps}, seed + 3, 0, 2);
  out["discount"] = uniform({batch, steps}, seed + 4).gt(0).to(at::kFloat);
  for (const env::ArraySpec& extra : spec.extras) {
    std::vector<std::int64_t> of_steps = extra.shape;
    of_steps.insert(of_steps.begin(), {batch, steps});
    if (extra.type == env::ElementType::int64)
      out[extra.name] = at::zeros(of_steps, at::kLong);
    else if (extra.shape.empty())
      out[extra.name] = uniform(of_steps, seed + 5, -2, 0);
    else // a state, whose last number may be a choice
      out[extra.name] = uniform(of_steps, seed + 5).gt(0).to(at::kFloat);
  }
  return out;
}

inline learner::TensorMap random_batch(const replay::TransitionSpec& spec, std::int64_t batch,
                                       std::uint64_t seed) {
  if (spec.is_sequence())
    return random_sequences(spec, batch, seed);
  std::vector<std::int64_t> shape = spec.observation().shape;
  shape.insert(shape.begin(), batch);
  learner::TensorMap out;
  for (const char* name : {"observation", "next_observation"}) {
    ++seed;
    const bool pixels = spec.frame.type == env::ElementType::uint8;
    out[name] = pixels ? uniform(shape, seed, 0, 255.99).to(at::kByte) : uniform(shape, seed);
    for (const env::ArraySpec& vector : spec.vectors)
      out[replay::vector_name(name, vector)] = uniform({batch, vector.shape.at(0)}, seed + 7);
  }
  out["action"] = uniform({batch, spec.action_size}, seed + 1);
  for (int i = 0; i < spec.action_size; ++i)
    if (const std::int64_t n = spec.choices_of(static_cast<std::size_t>(i)); n != 0) {
      at::Tensor column = out["action"].select(1, i);
      column.copy_(((column + 1) * (static_cast<double>(n) / 2)).floor_().clamp_(0, n - 1));
    }
  out["reward"] = uniform({batch}, seed + 2, 0, 2);
  out["discount"] = uniform({batch}, seed + 3, 0, 1);
  if (spec.running_return)
    out["running_return"] = uniform({batch}, seed + 4, 0, 20);
  return out;
}

inline std::unique_ptr<learner::Replica> built(const learner::D4pgConfig& config,
                                               const replay::TransitionSpec& spec,
                                               learner::ReplicaContext& context) {
  at::set_num_threads(1); // tests run in parallel
  auto replica = learner::make_d4pg_agent(config)->make_replica(spec);
  replica->build(context);
  return replica;
}

/// Deep copies. The tensors of parameters() and optimizer_state() may alias the live ones.
inline learner::TensorMap copied(const learner::TensorMap& tensors) {
  learner::TensorMap out;
  for (const auto& [name, tensor] : tensors)
    out[name] = tensor.clone();
  return out;
}

inline bool equal(const learner::TensorMap& a, const learner::TensorMap& b) {
  if (a.size() != b.size())
    return false;
  for (const auto& [name, tensor] : a)
    if (b.find(name) == b.end() || !at::equal(tensor, b.at(name)))
      return false;
  return true;
}

inline std::span<const std::byte> bytes_of(const at::Tensor& tensor) {
  return {static_cast<const std::byte*>(tensor.const_data_ptr()), tensor.nbytes()};
}

/// The action of the policy that `replica` publishes, for `observation` [batch, …].
inline at::Tensor act(learner::Replica& replica, const learner::D4pgConfig& config,
                      const replay::TransitionSpec& spec, const at::Tensor& observation) {
  const auto policy = learner::make_d4pg_agent(config)->make_policy(spec);
  const at::Tensor flat = replica.policy_parameters();
  policy->load({flat.const_data_ptr<float>(), static_cast<std::size_t>(flat.numel())});
  at::Tensor actions = at::empty({observation.size(0), spec.action_size});
  policy->act(bytes_of(observation), observation.size(0),
              {actions.mutable_data_ptr<float>(), static_cast<std::size_t>(actions.numel())});
  return actions;
}

} // namespace troupe::tests
