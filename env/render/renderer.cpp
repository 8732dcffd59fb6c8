#include "env/render/renderer.hpp"

#include <stdexcept>

#include "env/mujoco_errors.hpp"
#include "env/render/cast_renderer.hpp"
#include "env/render/cuda_renderer.hpp"
#include "env/render/gl_context.hpp"
#include "env/render/opengl_renderer.hpp"
#include "env/text/number_in.hpp"

namespace troupe::env {

namespace {

void check_buffer(const char* what, std::size_t expected, std::size_t size) {
  if (size != expected)
    throw std::invalid_argument(std::string(what) + " needs a buffer of " + std::to_string(expected)
                                + "; it has " + std::to_string(size));
}

} // namespace

Renderer::Renderer(Physics& physics, const PixelOptions& options, PixelLayout layout)
    : physics_(physics), options_(options), layout_(layout) {
  check_pixel_size(options_);
  camera_ = find_camera(physics_, options_.camera);
}

std::size_t Renderer::pixels() const {
  return static_cast<std::size_t>(options_.height) * static_cast<std::size_t>(options_.width);
}

void Renderer::draw(std::span<std::uint8_t> out) {
  check_buffer("a picture (bytes)", bytes(), out.size());
  const MujocoScope scope(physics_.name());
  draw_colour(out.data());
}

void Renderer::draw_depth(std::span<float> metres) {
  check_buffer("a picture of depths (height x width floats)", pixels(), metres.size());
  const MujocoScope scope(physics_.name());
  draw_metres(metres.data());
}

void Renderer::draw_segmentation(std::span<std::int32_t> out) {
  check_buffer("a segmentation (height x width x 2 numbers)", 2 * pixels(), out.size());
  const MujocoScope scope(physics_.name());
  draw_objects(out.data());
}

RendererKind renderer_of(const PixelOptions& options) {
  return options.renderer == RendererKind::automatic ? kAutomaticRenderer : options.renderer;
}

std::unique_ptr<Renderer> make_renderer(Physics& physics, const PixelOptions& options,
                                        PixelLayout layout) {
  switch (renderer_of(options)) {
  case RendererKind::caster:
    return std::make_unique<CastRenderer>(physics, options, layout);
  case RendererKind::caster_cuda:
    return std::make_unique<CudaRenderer>(physics, options, layout);
  default:
    return std::make_unique<OpenglRenderer>(physics, options, layout);
  }
}

RendererInfo renderer_info(const PixelOptions& options) {
  if (renderer_of(options) == RendererKind::caster)
    return {.description = CastRenderer::cast_description(), .slow = false};
  if (renderer_of(options) == RendererKind::caster_cuda)
    return {.description = CudaRenderer::cuda_description(), .slow = false};
  const auto context = gl_of_this_thread(options.gl);
  return {.description = describe(context->info()), .slow = context->info().software};
}

int find_camera(const Physics& physics, const std::string& camera) {
  const std::vector<std::string> names = physics.names(mjOBJ_CAMERA);
  for (std::size_t i = 0; i < names.size(); ++i)
    if (!camera.empty() && names[i] == camera)
      return static_cast<int>(i);
  if (const auto number = number_in<int>(camera, -1, static_cast<int>(names.size()) - 1))
    return *number;
  std::string message = "camera: '" + camera + "' is not a camera of model '" + physics.name()
                        + "'; it has -1 (free)";
  for (std::size_t i = 0; i < names.size(); ++i)
    message += ", " + std::to_string(i) + (names[i].empty() ? "" : " '" + names[i] + "'");
  throw std::invalid_argument(message);
}

void check_pixel_size(const PixelOptions& options) {
  for (const auto& [key, value] :
       {std::pair("height", options.height), std::pair("width", options.width)})
    if (value < 1 || value > 4096)
      throw std::invalid_argument(std::string(key) + ": " + std::to_string(value)
                                  + " pixels is out of range; it must be from 1 to 4096");
}

} // namespace troupe::env
