#include "experiments/config/plan.hpp"

#include "experiments/config/agent_choice.hpp"
#include "experiments/config/members.hpp"
#include "replay/objects/folder_copies.hpp"

namespace troupe::experiments {
namespace {

env::RendererKind kind_of(Pixels::Renderer renderer) {
  switch (renderer) {
  case Pixels::CASTER:
    return env::RendererKind::caster;
  case Pixels::CASTER_CUDA:
    return env::RendererKind::caster_cuda;
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
  case Pixels::CASTER_CUDA:
  case Pixels::OPENGL:
    break;
  }
  return env::GlBackend::automatic;
}

std::string backend_of(Learner::Backend backend) {
  switch (backend) {
  case Learner::THREADS:
    return "threads";
  case Learner::TCP:
    return "tcp";
  case Learner::NCCL:
    return "nccl";
  case Learner::SHARED_MEMORY:
    return "shared_memory";
  case Learner::AUTO:
    break;
  }
  return "auto";
}

} // namespace

env::EnvironmentConfig plan_environment(const Environment& in) {
  env::EnvironmentConfig out;
  assign(in, members(out));
  if (in.has_pixels()) {
    auto& pixels = out.pixels.emplace();
    assign(in.pixels(), members(pixels));
    pixels.renderer = kind_of(in.pixels().renderer());
    pixels.gl = backend_of(in.pixels().renderer());
  }
  return out;
}

actors::RunConfig plan_run(const Experiment& in) {
  actors::RunConfig out;
  assign(in, members(out));
  out.environment = plan_environment(in.environment());
  if (const AgentChoice agent = chosen_agent(in); agent.options != nullptr)
    out.agent = agent.kind->make(*agent.options);
  assign(in.replay(), members(out.replay));
  assign(in.learner(), members(out.learner));
  out.learner.backend = backend_of(in.learner().backend());
  assign(in.actors(), members(out.actors));
  assign(in.supervision(), members(out.supervision));
  assign(in.evaluation(), members(out.evaluation));
  assign(in.stop(), members(out.stop));
  assign(in.checkpoint(), members(out.checkpoint));
  if (in.has_recording()) {
    const std::string& path = in.recording().path();
    out.recording = path;
    if (replay::is_object_address(path))
      out.recording = recording_copy(replay::parse_object_address(path, "recording.path"));
    out.stop.updates = in.recording().updates();
    out.actors.environment = 0;
    out.checkpoint.replay = out.deterministic; // otherwise the shards fill up again
  }
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
