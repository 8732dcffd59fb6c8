#pragma once

#include <functional>

#include "env/render/renderer.hpp"
#include "env/wrappers/wrapper.hpp"

namespace troupe::env {

/// A picture of an episode, for a video.
struct Frame {
  std::span<const std::uint8_t> rgb; // [height, width, 3], top row first; valid during the call
  std::int64_t episode = 0;          // counted from 0 since the wrapper was made
  std::int64_t step = 0;             // steps of the inner environment since the reset
  StepType step_type = StepType::first;
};

struct FrameSinkOptions {
  PixelOptions pixels{.height = 480, .width = 480}; // grey and cameras are ignored
  std::int64_t every = 1; // draws every n-th step, starting with the reset; see steps_per_frame()
  std::int64_t episodes = 0; // number of first episodes to draw; 0: all
};

/// Passes pictures of the simulation to `sink` during reset() and step(), to record videos without
/// changing the agent's observations. The renderer belongs to the thread of the first reset(). The
/// constructor throws what Pixels' constructor throws; exceptions of the sink are passed on.
class FrameSink final : public Wrapper {
public:
  FrameSink(std::unique_ptr<Environment> inner, const FrameSinkOptions& options,
            std::function<void(const Frame&)> sink);

  TimeStep reset(std::uint64_t seed, std::span<std::byte> observation) override;
  TimeStep step(std::span<const double> action, std::span<std::byte> observation) override;

private:
  void draw(StepType step_type);

  FrameSinkOptions options_;
  std::function<void(const Frame&)> sink_;
  std::unique_ptr<Renderer> renderer_;
  std::vector<std::uint8_t> picture_;
  std::int64_t episode_ = -1;
  std::int64_t step_ = 0;
};

/// The smallest number of steps between pictures such that a video at the simulation's own speed
/// has at most `frames_per_second`.
std::int64_t steps_per_frame(const EnvironmentSpec& spec, double frames_per_second);

} // namespace troupe::env
