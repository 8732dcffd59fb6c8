#include "experiments/plan.hpp"

namespace troupe::experiments {
namespace {

env::RendererKind kind_of(Pixels::Renderer renderer) {
  switch (renderer) {
  case Pixels::CASTER:
    return env::RendererKind::caster;
  case Pixels::OPENGL:
  case Pixels::EGL:
  case Pixels::OSMESA:
    return env::RendererKind::opengl;
  case Pixels::AUTO:
    break;
  }
  return env::RendererKind::automatic;
}

env::GlBackend backend_of(Pixels::Renderer renderer) {
  switch (renderer) {
  case Pixels::EGL:
    return env::GlBackend::egl;
  case Pixels::OSMESA:
    return env::GlBackend::osmesa;
  case Pixels::AUTO:
  case Pixels::CASTER:
  case Pixels::OPENGL:
    break;
  }
  return env::GlBackend::automatic;
}

std::string backend_of(Learner::Backend backend) {
  switch (backend) {
  case Learner::THREADS:
    return "threads";
  case Learner::GLOO:
    return "gloo";
  case Learner::NCCL:
    return "nccl";
  case Learner::SHARED_MEMORY:
    return "shared_memory";
  case Learner::AUTO:
    break;
  }
  return "auto";
}

learner::D4pgConfig plan_agent(const D4pg& in) {
  learner::D4pgConfig out;
  out.policy_layers.assign(in.policy_layers().begin(), in.policy_layers().end());
  out.critic_layers.assign(in.critic_layers().begin(), in.critic_layers().end());
  out.layer_norm = in.layer_norm();
  out.atoms = in.atoms();
  out.value_minimum = in.value_minimum();
  out.value_maximum = in.value_maximum();
  out.policy_learning_rate = in.policy_learning_rate();
  out.critic_learning_rate = in.critic_learning_rate();
  out.target_update = in.target_update();
  out.target_period = in.target_period();
  out.gradient_norm = in.gradient_norm();
  out.action_gradient_norm = in.action_gradient_norm();
  out.saturation_penalty = in.saturation_penalty();
  out.reward_scale = in.reward_scale();
  out.encoder = in.encoder();
  out.encoder_channels = in.encoder_channels();
  out.feature_size = in.feature_size();
  out.shift_pixels = in.shift_pixels();
  out.precision = in.precision();
  out.batch_size = in.batch_size();
  return out;
}

} // namespace

env::EnvironmentConfig plan_environment(const Environment& in) {
  env::EnvironmentConfig out;
  out.task = in.task();
  out.frame_stack = in.frame_stack();
  out.action_repeat = in.action_repeat();
  out.models = in.models();
  out.plugin = in.plugin();
  out.options.assign(in.options().begin(), in.options().end());
  out.time_limit = in.time_limit();
  out.episode_log = in.episode_log();
  out.action_clip = in.action_clip();
  out.action_rescale = in.action_rescale();
  out.action_noise = in.action_noise();
  out.reward_scale = in.reward_scale();
  out.reward_clip = in.reward_clip();
  out.observations.assign(in.observations().begin(), in.observations().end());
  out.randomization = {.colours = in.randomization().colours(),
                       .lights = in.randomization().lights(),
                       .camera = in.randomization().camera(),
                       .field_of_view = in.randomization().field_of_view(),
                       .masses = in.randomization().masses(),
                       .friction = in.randomization().friction()};
  out.normalization = {.mode = in.normalization().mode(),
                       .file = in.normalization().file(),
                       .clip = in.normalization().clip()};
  if (in.has_pixels()) {
    const Pixels& pixels = in.pixels();
    out.pixels = env::PixelOptions{.height = pixels.height(),
                                   .width = pixels.width(),
                                   .camera = pixels.camera(),
                                   .grey = pixels.grey(),
                                   .effects = pixels.effects(),
                                   .fog = pixels.fog(),
                                   .renderer = kind_of(pixels.renderer()),
                                   .gl = backend_of(pixels.renderer()),
                                   .cameras = {pixels.cameras().begin(), pixels.cameras().end()}};
  }
  return out;
}

actors::RunConfig plan_run(const Experiment& in) {
  actors::RunConfig out;
  out.seed = in.seed();
  out.deterministic = in.deterministic();
  out.environment = plan_environment(in.environment());
  out.agent = plan_agent(in.d4pg());
  out.replay = {.shards = in.replay().shards(),
                .capacity_items = in.replay().capacity_items(),
                .capacity_bytes = in.replay().capacity_bytes(),
                .minimum_items = in.replay().minimum_items(),
                .samples_per_insert = in.replay().samples_per_insert(),
                .error_buffer = in.replay().error_buffer(),
                .n_step = in.replay().n_step(),
                .discount = in.replay().discount(),
                .sampler = in.replay().sampler(),
                .remover = in.replay().remover(),
                .priority_exponent = in.replay().priority_exponent(),
                .importance_exponent = in.replay().importance_exponent(),
                .importance_updates = in.replay().importance_updates(),
                .max_times_sampled = in.replay().max_times_sampled(),
                .compression = in.replay().compression(),
                .disk_bytes = in.replay().disk_bytes(),
                .disk_folder = in.replay().disk_folder()};
  out.learner = {.replicas = in.learner().replicas(),
                 .threads = in.learner().threads(),
                 .publish_period = in.learner().publish_period(),
                 .prefetch = in.learner().prefetch(),
                 .gather_threads = in.learner().gather_threads(),
                 .backend = backend_of(in.learner().backend()),
                 .device = in.learner().device(),
                 .strategy = in.learner().strategy(),
                 .parameter_servers = in.learner().parameter_servers(),
                 .server_folder = {}}; // as disk_folder: use_run_folder()
  out.actors = {.environment = in.actors().environment(),
                .environments_per_actor = in.actors().environments_per_actor(),
                .threads_per_actor = in.actors().threads_per_actor(),
                .random_steps = in.actors().random_steps(),
                .noise_start = in.actors().noise_start(),
                .noise_end = in.actors().noise_end(),
                .noise_steps = in.actors().noise_steps(),
                .restarts = in.actors().restarts()};
  out.supervision = {.restart_minutes = in.supervision().restart_minutes(),
                     .heartbeat_seconds = in.supervision().heartbeat_seconds(),
                     .lost_seconds = in.supervision().lost_seconds(),
                     .snapshot_seconds = in.supervision().snapshot_seconds(),
                     .folder = {}}; // likewise, where there are processes
  out.evaluation = {.period = in.evaluation().period(),
                    .episodes = in.evaluation().episodes(),
                    .final_episodes = in.evaluation().final_episodes()};
  out.stop = {.environment_steps = in.stop().environment_steps(),
              .minutes = in.stop().minutes(),
              .evaluation_return = in.stop().evaluation_return()};
  out.checkpoint = {.minutes = in.checkpoint().minutes(),
                    .keep = in.checkpoint().keep(),
                    .keep_best = in.checkpoint().keep_best(),
                    .replay = in.checkpoint().replay()};
  return out;
}

void use_run_folder(actors::RunConfig& config, const std::filesystem::path& run_folder,
                    bool processes) {
  if (config.replay.disk_folder.empty()) {
    config.replay.disk_folder = run_folder / "spill";
  }
  config.learner.server_folder = run_folder / "servers";
  if (processes)
    config.supervision.folder = run_folder / "snapshots";
}

} // namespace troupe::experiments
