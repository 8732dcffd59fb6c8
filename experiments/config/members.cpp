#include "experiments/config/members.hpp"

#include <map>

#include <google/protobuf/descriptor.h>
#include <google/protobuf/reflection.h>

#include "experiments/config/keys.hpp"

namespace troupe::experiments {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

template <class T>
struct is_list : std::false_type {};
template <class T>
struct is_list<std::vector<T>> : std::true_type {};

/// The value of a field that its message has.
template <class T>
void read(const Message& from, const Reflection& view, const FieldDescriptor* field, T& to) {
  if constexpr (is_list<T>::value) {
    const auto& values = view.GetRepeatedFieldRef<typename T::value_type>(from, field);
    to.assign(values.begin(), values.end());
  } else if constexpr (std::is_same_v<T, bool>)
    to = view.GetBool(from, field);
  else if constexpr (std::is_same_v<T, int>)
    to = view.GetInt32(from, field);
  else if constexpr (std::is_same_v<T, std::int64_t>)
    to = view.GetInt64(from, field);
  else if constexpr (std::is_same_v<T, std::uint64_t>)
    to = view.GetUInt64(from, field);
  else if constexpr (std::is_same_v<T, double>)
    to = view.GetDouble(from, field);
  else
    to = view.GetString(from, field);
}

std::string text_of(bool value) {
  return value ? "true" : "false";
}
std::string text_of(double value) {
  return number_text(value);
}
std::string text_of(const std::string& value) {
  return value;
}
std::string text_of(const std::filesystem::path& value) {
  return value.string();
}
template <class T>
requires std::is_integral_v<T> std::string text_of(T value) {
  return std::to_string(value);
}
template <class T>
std::string text_of(const std::vector<T>& values) {
  std::string text;
  for (const T& value : values)
    text += (text.empty() ? "" : ",") + text_of(value);
  return text;
}

template <class Config>
void add_defaults(const Descriptor& block, std::map<const FieldDescriptor*, std::string>& out) {
  Config config{};
  for (const Member& member : members(config))
    out[find_key(member.key, block)] =
        std::visit([](const auto* value) { return text_of(*value); }, member.value);
}

std::map<const FieldDescriptor*, std::string> all_defaults() {
  using actors::RunConfig;
  std::map<const FieldDescriptor*, std::string> out;
  add_defaults<RunConfig>(*Experiment::descriptor(), out);
  add_defaults<env::EnvironmentConfig>(*Environment::descriptor(), out);
  add_defaults<env::PixelOptions>(*Pixels::descriptor(), out);
  add_defaults<learner::D4pgConfig>(*D4pg::descriptor(), out);
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
  out[find_key("epochs", *Data::descriptor())] = text_of(learner::ClassifierConfig{}.epochs);
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

Members members(learner::D4pgConfig& config) {
  return {{"policy_layers", &config.policy_layers},
          {"critic_layers", &config.critic_layers},
          {"layer_norm", &config.layer_norm},
          {"atoms", &config.atoms},
          {"value_minimum", &config.value_minimum},
          {"value_maximum", &config.value_maximum},
          {"policy_learning_rate", &config.policy_learning_rate},
          {"critic_learning_rate", &config.critic_learning_rate},
          {"target_update", &config.target_update},
          {"target_period", &config.target_period},
          {"gradient_norm", &config.gradient_norm},
          {"action_gradient_norm", &config.action_gradient_norm},
          {"saturation_penalty", &config.saturation_penalty},
          {"reward_scale", &config.reward_scale},
          {"encoder", &config.encoder},
          {"encoder_channels", &config.encoder_channels},
          {"feature_size", &config.feature_size},
          {"shift_pixels", &config.shift_pixels},
          {"precision", &config.precision},
          {"batch_size", &config.batch_size}};
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
          {"importance_exponent", &config.importance_exponent},
          {"importance_updates", &config.importance_updates},
          {"max_times_sampled", &config.max_times_sampled},
          {"compression", &config.compression},
          {"disk_bytes", &config.disk_bytes},
          {"disk_folder", &config.disk_folder}};
}

Members members(actors::RunConfig::Learner& config) {
  return {{"replicas", &config.replicas},
          {"threads", &config.threads},
          {"publish_period", &config.publish_period},
          {"prefetch", &config.prefetch},
          {"gather_threads", &config.gather_threads},
          {"device", &config.device},
          {"strategy", &config.strategy},
          {"parameter_servers", &config.parameter_servers}};
}

Members members(actors::RunConfig::Actors& config) {
  return {{"environment", &config.environment},
          {"environments_per_actor", &config.environments_per_actor},
          {"threads_per_actor", &config.threads_per_actor},
          {"random_steps", &config.random_steps},
          {"noise_start", &config.noise_start},
          {"noise_end", &config.noise_end},
          {"noise_steps", &config.noise_steps},
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
          {"replay", &config.replay}};
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

void assign(const Message& block, const Members& members) {
  for (const Member& member : members) {
    const Message* holder = &block;
    std::string key = member.key;
    if (const auto dot = key.find('.'); dot != std::string::npos) {
      const auto* inner = block.GetDescriptor()->FindFieldByName(key.substr(0, dot));
      holder = &block.GetReflection()->GetMessage(block, inner);
      key = key.substr(dot + 1);
    }
    const auto* field = holder->GetDescriptor()->FindFieldByName(key);
    const auto& view = *holder->GetReflection();
    const bool given =
        field->is_repeated() ? view.FieldSize(*holder, field) > 0 : view.HasField(*holder, field);
    if (given)
      std::visit([&](auto* value) { read(*holder, view, field, *value); }, member.value);
  }
}

std::optional<std::string> member_default(const FieldDescriptor& key) {
  static const auto defaults = all_defaults();
  const auto found = defaults.find(&key);
  return found == defaults.end() ? std::nullopt : std::optional(found->second);
}

} // namespace troupe::experiments
