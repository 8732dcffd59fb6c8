#include "env/render/renderer.hpp"

#include <algorithm>
#include <charconv>
#include <stdexcept>
#include <vector>

#include "env/mujoco_errors.hpp"

namespace troupe::env {

namespace {

/// Pixels. A small picture without effects is drawn with half the facets: its time goes to
/// vertices, and the mean pixel moves by at most a quarter of a grey level (env/README.md).
constexpr int kSmallPicture = 128;
constexpr int kSceneGeoms = 2000; // beyond what any model of the suite shows

/// MuJoCo's textures, display lists and frame buffer for one model and size.
class DrawContext {
public:
  DrawContext(const Physics& physics, const PixelOptions& options, std::shared_ptr<GlContext> gl)
      : gl_(std::move(gl)), compiled_(physics.compiled()) {
    mjModel model = physics.model(); // a view: only options are changed
    model.vis.global.offwidth = options.width;
    model.vis.global.offheight = options.height;
    if (!options.effects) {
      model.vis.quality.offsamples = 0;
      model.vis.quality.shadowsize = 0;
      if (options.width <= kSmallPicture && options.height <= kSmallPicture) {
        model.vis.quality.numslices = std::min(model.vis.quality.numslices, 14);
        model.vis.quality.numstacks = std::min(model.vis.quality.numstacks, 8);
      }
    }
    const MujocoScope scope(physics.name());
    mjr_defaultContext(&context_);
    mjr_makeContext(&model, &context_, mjFONTSCALE_100);
    mjr_setBuffer(mjFB_OFFSCREEN, &context_);
    if (context_.currentBuffer != mjFB_OFFSCREEN) {
      mjr_freeContext(&context_);
      throw std::runtime_error(
          "OpenGL (" + gl_->info().renderer + ") has no off-screen frame buffer of "
          + std::to_string(options.width) + "x" + std::to_string(options.height) + " pixels");
    }
    heights_.assign(model.hfield_data, model.hfield_data + model.nhfielddata);
  }

  ~DrawContext() {
    try {
      gl_->make_current();
      mjr_freeContext(&context_);
    } catch (const std::exception&) {
      // Held by another thread: its objects go with the context itself.
    }
  }

  DrawContext(const DrawContext&) = delete;
  DrawContext& operator=(const DrawContext&) = delete;

  GlContext& gl() const { return *gl_; }
  /// With its frame buffer bound: contexts of one OpenGL context take it from each other.
  const mjrContext& bind() {
    gl_->make_current();
    mjr_setBuffer(mjFB_OFFSCREEN, &context_);
    return context_;
  }

  /// Height fields are drawn from what OpenGL was last given, which may be another episode's or
  /// another environment's.
  void upload_height_fields(const mjModel& model) {
    const std::span<const float> present(model.hfield_data,
                                         static_cast<std::size_t>(model.nhfielddata));
    if (std::equal(present.begin(), present.end(), heights_.begin(), heights_.end()))
      return;
    for (int i = 0; i < static_cast<int>(model.nhfield); ++i)
      mjr_uploadHField(&model, &context_, i);
    heights_.assign(present.begin(), present.end());
  }

private:
  std::shared_ptr<GlContext> gl_;
  std::shared_ptr<const CompiledModel> compiled_; // keeps the key of the shared table its own
  mjrContext context_;
  std::vector<float> heights_; // that OpenGL has, of all height fields
};

std::shared_ptr<DrawContext> shared_draw_context(const Physics& physics,
                                                 const PixelOptions& options) {
  auto gl = gl_of_this_thread(options.gl);
  gl->make_current();
  std::weak_ptr<void>& known =
      gl->shared()[{physics.compiled().get(), options.height, options.width, options.effects}];
  if (auto present = known.lock())
    return std::static_pointer_cast<DrawContext>(present);
  auto made = std::make_shared<DrawContext>(physics, options, gl);
  known = made;
  return made;
}

std::uint8_t luma(const std::uint8_t* rgb) { // Rec. 601: .299, .587, .114 in 1/256
  return static_cast<std::uint8_t>((77 * rgb[0] + 150 * rgb[1] + 29 * rgb[2] + 128) >> 8);
}

} // namespace

struct Renderer::Impl {
  Impl(const Physics& physics, const PixelOptions& options)
      : camera_number(find_camera(physics, options.camera)),
        context(shared_draw_context(physics, options)),
        rgb(static_cast<std::size_t>(options.height) * static_cast<std::size_t>(options.width)
            * 3) {
    mjv_defaultOption(&option);
    option.flags[mjVIS_RANGEFINDER] = 0; // as in dm_control: else its rays are drawn
    mjv_defaultPerturb(&perturb);
    mjv_defaultCamera(&camera);
    if (camera_number < 0) {
      mjv_defaultFreeCamera(&physics.model(), &camera);
    } else {
      camera.type = mjCAMERA_FIXED;
      camera.fixedcamid = camera_number;
    }
    mjv_defaultScene(&scene);
    const MujocoScope scope(physics.name());
    mjv_makeScene(&physics.model(), &scene, kSceneGeoms);
    if (!options.effects) {
      scene.flags[mjRND_SHADOW] = 0;
      scene.flags[mjRND_REFLECTION] = 0;
    }
  }

  ~Impl() { mjv_freeScene(&scene); }

  int camera_number;
  std::shared_ptr<DrawContext> context;
  mjvScene scene;
  mjvOption option;
  mjvPerturb perturb;
  mjvCamera camera;
  std::vector<std::uint8_t> rgb; // as OpenGL gives it: pixels, bottom row first
};

Renderer::Renderer(Physics& physics, const PixelOptions& options, PixelLayout layout)
    : physics_(physics), options_(options), layout_(layout) {
  check_pixel_size(options_);
  impl_ = std::make_unique<Impl>(physics_, options_);
}

Renderer::~Renderer() = default;

std::size_t Renderer::bytes() const {
  return static_cast<std::size_t>(channels()) * static_cast<std::size_t>(options_.height)
         * static_cast<std::size_t>(options_.width);
}

const GlInfo& Renderer::gl() const {
  return impl_->context->gl().info();
}

void Renderer::draw(std::span<std::uint8_t> out) {
  if (out.size() != bytes())
    throw std::invalid_argument("a picture needs a buffer of " + std::to_string(bytes())
                                + " bytes; it has " + std::to_string(out.size()));
  Impl& impl = *impl_;
  const MujocoScope scope(physics_.name());
  const mjrContext& context = impl.context->bind();
  impl.context->upload_height_fields(physics_.model());
  mjv_updateScene(&physics_.model(), &physics_.data(), &impl.option, &impl.perturb, &impl.camera,
                  mjCAT_ALL, &impl.scene);
  const mjrRect view{0, 0, options_.width, options_.height};
  mjr_render(view, &impl.scene, &context);
  mjr_readPixels(impl.rgb.data(), nullptr, view, &context);

  const auto width = static_cast<std::size_t>(options_.width);
  const auto height = static_cast<std::size_t>(options_.height);
  const std::size_t plane = width * height;
  for (std::size_t y = 0; y < height; ++y) {
    const std::uint8_t* row = impl.rgb.data() + (height - 1 - y) * width * 3;
    std::uint8_t* to = out.data() + y * width;
    if (options_.grey) {
      for (std::size_t x = 0; x < width; ++x)
        to[x] = luma(row + 3 * x);
    } else if (layout_ == PixelLayout::channels_last) {
      std::copy(row, row + 3 * width, out.data() + 3 * y * width);
    } else {
      for (std::size_t x = 0; x < width; ++x) {
        to[x] = row[3 * x];
        to[x + plane] = row[3 * x + 1];
        to[x + 2 * plane] = row[3 * x + 2];
      }
    }
  }
}

int find_camera(const Physics& physics, const std::string& camera) {
  const std::vector<std::string> names = physics.names(mjOBJ_CAMERA);
  for (std::size_t i = 0; i < names.size(); ++i)
    if (!camera.empty() && names[i] == camera)
      return static_cast<int>(i);
  int number = 0;
  const auto [end, error] = std::from_chars(camera.data(), camera.data() + camera.size(), number);
  if (error == std::errc() && end == camera.data() + camera.size() && number >= -1
      && number < static_cast<int>(names.size()))
    return number;
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
