#include "experiments/config/members.hpp"

#include <map>

#include <google/protobuf/descriptor.h>

#include "experiments/config/keys.hpp"
#include "learner/agents/agent_kinds.hpp"

namespace troupe::experiments {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

using Defaults = std::map<const FieldDescriptor*, std::string>;

void add(const std::map<std::string, std::string>& texts, const Descriptor& block, Defaults& out) {
  for (const auto& [key, text] : texts)
    out[find_key(key, block)] = text;
}

template <class Config>
void add_defaults(const Descriptor& block, Defaults& out) {
  Config config{};
  add(learner::texts(members(config)), block, out);
}

Defaults all_defaults() {
  using actors::RunConfig;
  Defaults out;
  add_defaults<RunConfig>(*Experiment::descriptor(), out);
  add_defaults<env::EnvironmentConfig>(*Environment::descriptor(), out);
  add_defaults<env::PixelOptions>(*Pixels::descriptor(), out);
  add_defaults<RunConfig::Replay>(*Replay::descriptor(), out);
  add_defaults<RunConfig::Learner>(*Learner::descriptor(), out);
  add_defaults<RunConfig::Actors>(*Actors::descriptor(), out);
  add_defaults<RunConfig::Supervision>(*Supervision::descriptor(), out);
  add_defaults<RunConfig::Evaluation>(*Evaluation::descriptor(), out);
  add_defaults<RunConfig::Stop>(*Stop::descriptor(), out);
  add_defaults<RunConfig::Checkpoint>(*Checkpoint::descriptor(), out);
  add_defaults<learner::ClassifierConfig>(*Classifier::descriptor(), out);
  add_defaults<learner::SnganConfig>(*Sngan::descriptor(), out);
  add_defaults<learner::data::DatasetOptions>(*Data::descriptor(), out);
  add_defaults<learner::data::LoaderOptions>(*Data::descriptor(), out);
  out[find_key("epochs", *Data::descriptor())] = number_text(learner::ClassifierConfig{}.epochs);
  for (const learner::AgentKind& kind : learner::agent_kinds())
    add(kind.defaults, *kind.options, out);
  add({{"name", ""}, {"plugin", ""}, {"options", ""}}, *agents::OwnAgent::descriptor(), out);
  return out;
}

} // namespace

Members members(actors::RunConfig& config) {
  return {{"seed", &config.seed}, {"deterministic", &config.deterministic}};
}

Members members(env::EnvironmentConfig& config) {
  auto& randomization = config.randomization;
  auto& normalization = config.normalization;
  return {{"task", &config.task},
          {"frame_stack", &config.frame_stack},
          {"action_repeat", &config.action_repeat},
          {"models", &config.models},
          {"plugin", &config.plugin},
          {"options", &config.options},
          {"time_limit", &config.time_limit},
          {"episode_log", &config.episode_log},
          {"action_clip", &config.action_clip},
          {"action_rescale", &config.action_rescale},
          {"action_noise", &config.action_noise},
          {"reward_scale", &config.reward_scale},
          {"reward_clip", &config.reward_clip},
          {"observations", &config.observations},
          {"randomization.colours", &randomization.colours},
          {"randomization.lights", &randomization.lights},
          {"randomization.camera", &randomization.camera},
          {"randomization.field_of_view", &randomization.field_of_view},
          {"randomization.masses", &randomization.masses},
          {"randomization.friction", &randomization.friction},
          {"normalization.mode", &normalization.mode},
          {"normalization.file", &normalization.file},
          {"normalization.clip", &normalization.clip}};
}

Members members(env::PixelOptions& config) {
  return {{"height", &config.height},  {"width", &config.width},     {"camera", &config.camera},
          {"grey", &config.grey},      {"effects", &config.effects}, {"fog", &config.fog},
          {"cameras", &config.cameras}};
}

Members members(actors::RunConfig::Replay& config) {
  return {{"shards", &config.shards},
          {"capacity_items", &config.capacity_items},
          {"capacity_bytes", &config.capacity_bytes},
          {"minimum_items", &config.minimum_items},
          {"samples_per_insert", &config.samples_per_insert},
          {"error_buffer", &config.error_buffer},
          {"n_step", &config.n_step},
          {"discount", &config.discount},
          {"sampler", &config.sampler},
          {"remover", &config.remover},
          {"priority_exponent", &config.priority_exponent},
          {"priority_fade", &config.priority_fade},
          {"least_priority_fade", &config.least_priority_fade},
          {"importance_exponent", &config.importance_exponent},
          {"importance_updates", &config.importance_updates},
          {"max_times_sampled", &config.max_times_sampled},
          {"hindsight.goals", &config.hindsight.goals},
          {"hindsight.strategy", &config.hindsight.strategy},
          {"compression", &config.compression},
          {"disk_bytes", &config.disk_bytes},
          {"disk_folder", &config.disk_folder}};
}

Members members(actors::RunConfig::Learner& config) {
  Members all{{"replicas", &config.replicas},
              {"threads", &config.threads},
              {"publish_period", &config.publish_period},
              {"prefetch", &config.prefetch},
              {"gather_threads", &config.gather_threads},
              {"device", &config.device},
              {"strategy", &config.strategy},
              {"parameter_servers", &config.parameter_servers}};
  config.training.add_members(all);
  return all;
}

Members members(actors::RunConfig::Actors& config) {
  return {{"environment", &config.environment},
          {"environments_per_actor", &config.environments_per_actor},
          {"threads_per_actor", &config.threads_per_actor},
          {"random_steps", &config.random_steps},
          {"restarts", &config.restarts}};
}

Members members(actors::RunConfig::Supervision& config) {
  return {{"restart_minutes", &config.restart_minutes},
          {"heartbeat_seconds", &config.heartbeat_seconds},
          {"lost_seconds", &config.lost_seconds},
          {"snapshot_seconds", &config.snapshot_seconds}};
}

Members members(actors::RunConfig::Evaluation& config) {
  return {{"period", &config.period},
          {"episodes", &config.episodes},
          {"final_episodes", &config.final_episodes}};
}

Members members(actors::RunConfig::Stop& config) {
  return {{"environment_steps", &config.environment_steps},
          {"minutes", &config.minutes},
          {"evaluation_return", &config.evaluation_return}};
}

Members members(actors::RunConfig::Checkpoint& config) {
  return {{"minutes", &config.minutes},
          {"keep", &config.keep},
          {"keep_best", &config.keep_best},
          {"replay", &config.replay},
          {"store", &config.store}};
}

Members members(learner::ClassifierConfig& config) {
  return {{"model", &config.model},
          {"layers", &config.layers},
          {"zero_last_gamma", &config.zero_last_gamma},
          {"auxiliary_weight", &config.auxiliary_weight},
          {"dropout", &config.dropout},
          {"mean", &config.mean},
          {"standard_deviation", &config.standard_deviation},
          {"label_smoothing", &config.label_smoothing},
          {"batch_size", &config.batch_size},
          {"optimizer", &config.optimizer},
          {"learning_rate", &config.learning_rate},
          {"linear_scaling", &config.linear_scaling},
          {"momentum", &config.momentum},
          {"nesterov", &config.nesterov},
          {"rmsprop_decay", &config.rmsprop_decay},
          {"rmsprop_epsilon", &config.rmsprop_epsilon},
          {"weight_decay", &config.weight_decay},
          {"gradient_norm", &config.gradient_norm},
          {"schedule", &config.schedule},
          {"warmup_epochs", &config.warmup_epochs},
          {"milestones", &config.milestones},
          {"decay", &config.decay},
          {"decay_epochs", &config.decay_epochs},
          {"average_decay", &config.average_decay},
          {"precision", &config.precision},
          {"global_batch_norm", &config.global_batch_norm}};
}

Members members(learner::SnganConfig& config) {
  return {{"latent", &config.latent},
          {"generator_channels", &config.generator_channels},
          {"critic_channels", &config.critic_channels},
          {"tapered", &config.tapered},
          {"critic_steps", &config.critic_steps},
          {"batch_size", &config.batch_size},
          {"generator_learning_rate", &config.generator_learning_rate},
          {"critic_learning_rate", &config.critic_learning_rate},
          {"beta1", &config.beta1},
          {"beta2", &config.beta2},
          {"average_decay", &config.average_decay},
          {"precision", &config.precision},
          {"global_batch_norm", &config.global_batch_norm},
          {"evaluation_samples", &config.evaluation_samples}};
}

Members members(learner::data::DatasetOptions& options) {
  auto& transform = options.transform;
  return {{"path", &options.path},
          {"format", &options.format},
          {"label", &options.label},
          {"columns", &options.columns},
          {"header", &options.header},
          {"classes", &options.classes},
          {"tolerate", &options.tolerate},
          {"padding", &transform.padding},
          {"least_area", &transform.least_area},
          {"flip", &transform.flip},
          {"brightness", &transform.jitter.brightness},
          {"contrast", &transform.jitter.contrast},
          {"saturation", &transform.jitter.saturation},
          {"hue", &transform.jitter.hue}};
}

Members members(learner::data::LoaderOptions& options) {
  return {{"threads", &options.threads}, {"prefetch", &options.prefetch}};
}

std::optional<std::string> member_default(const FieldDescriptor& key) {
  static const auto defaults = all_defaults();
  const auto found = defaults.find(&key);
  return found == defaults.end() ? std::nullopt : std::optional(found->second);
}

} // namespace troupe::experiments
