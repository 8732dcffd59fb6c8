#include "actors/roles/live_picture.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <stdexcept>

#include "env/render/renderer.hpp"
#include "learner/acting/collector.hpp"

namespace troupe::actors {

namespace {

constexpr int kSceneHeight = 240;
constexpr int kSceneWidth = 320;

using Colour = std::array<std::uint8_t, 3>;

/// Colours of a board's planes, repeated if there are more planes. They are easy to tell apart on
/// black.
constexpr std::array<Colour, 10> kPlaneColours{{{230, 159, 0},
                                                {86, 180, 233},
                                                {0, 158, 115},
                                                {240, 228, 66},
                                                {0, 114, 178},
                                                {213, 94, 0},
                                                {204, 121, 167},
                                                {153, 153, 153},
                                                {255, 255, 255},
                                                {148, 103, 189}}};

wire::LivePicture empty_picture(std::int64_t height, std::int64_t width) {
  wire::LivePicture made;
  made.set_height(static_cast<std::int32_t>(height));
  made.set_width(static_cast<std::int32_t>(width));
  made.mutable_rgb()->resize(static_cast<std::size_t>(height * width * 3));
  return made;
}

std::span<std::uint8_t> bytes_of(wire::LivePicture& picture) {
  return {reinterpret_cast<std::uint8_t*>(picture.mutable_rgb()->data()), picture.rgb().size()};
}

wire::LivePicture scene(env::Physics& physics, const std::string& camera, SceneRenderer& kept) {
  wire::LivePicture made = empty_picture(kSceneHeight, kSceneWidth);
  if (kept.of != &physics) {
    kept = {};
    kept.renderer = env::make_renderer(physics,
                                       {.height = kSceneHeight,
                                        .width = kSceneWidth,
                                        .camera = camera,
                                        .renderer = env::RendererKind::caster},
                                       env::PixelLayout::channels_last);
    kept.of = &physics;
  }
  kept.renderer->draw(bytes_of(made));
  return made;
}

/// Whether the frame has only 0 and 1 or only 0 and 255.
bool is_board(std::span<const std::byte> planes) {
  const auto shows = [&](std::byte lit) {
    return std::ranges::all_of(planes, [&](std::byte b) { return b == std::byte{0} || b == lit; });
  };
  return shows(std::byte{1}) || shows(std::byte{255});
}

/// Later planes cover earlier ones.
void draw_board(std::span<const std::byte> planes, std::size_t pixels,
                std::span<std::uint8_t> rgb) {
  for (std::size_t i = 0; i < planes.size(); ++i)
    if (planes[i] != std::byte{0})
      std::ranges::copy(kPlaneColours[i / pixels % kPlaneColours.size()],
                        rgb.subspan(i % pixels * 3).begin());
}

wire::LivePicture observed(std::span<const std::byte> frame, const env::ArraySpec& spec) {
  const std::int64_t channels = spec.shape[0];
  wire::LivePicture made = empty_picture(spec.shape[1], spec.shape[2]);
  made.set_observed(true);
  const std::span<std::uint8_t> rgb = bytes_of(made);
  const std::size_t pixels = rgb.size() / 3;
  if (channels > 3 && is_board(frame)) {
    draw_board(frame, pixels, rgb);
    return made;
  }
  const std::size_t plane = channels % 3 == 0 ? pixels : 0; // grey: the same plane three times
  for (std::size_t i = 0; i < pixels; ++i)
    for (std::size_t c = 0; c < 3; ++c)
      rgb[3 * i + c] = static_cast<std::uint8_t>(frame[c * plane + i]);
  return made;
}

} // namespace

wire::LivePicture live_picture(learner::Collector& collector, const env::ArraySpec& frame,
                               const std::string& camera, const wire::PictureOrder& order,
                               SceneRenderer& kept) {
  const int lane = order.environment();
  if (lane < 0 || lane >= collector.lanes())
    throw std::invalid_argument("environment=" + std::to_string(lane)
                                + ": the actor has environments 0 to "
                                + std::to_string(collector.lanes() - 1));
  env::Physics* const physics = collector.physics(lane);
  if (physics == nullptr && !frame.is_picture())
    throw std::invalid_argument("there is nothing to show: the environment has no MuJoCo "
                                "simulation, and its observation is not a picture");
  if (order.observed() && !frame.is_picture())
    throw std::invalid_argument("the agent gets numbers, not a picture; ask for the scene");
  const bool wants_frame = order.observed() || physics == nullptr;
  const auto newest = wants_frame ? collector.newest_frame(lane) : std::span<const std::byte>();
  if (wants_frame && newest.empty())
    throw std::invalid_argument("the environment has not begun its first episode; try again");
  wire::LivePicture made = wants_frame ? observed(newest, frame) : scene(*physics, camera, kept);
  made.set_agent_steps(collector.agent_steps());
  made.set_environments(collector.lanes());
  return made;
}

} // namespace troupe::actors
