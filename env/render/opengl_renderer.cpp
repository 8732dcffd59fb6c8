#include "env/render/opengl_renderer.hpp"

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "env/caster/draw_list.hpp"
#include "env/mujoco_errors.hpp"

namespace troupe::env {

namespace {

/// In pixels. Small pictures without effects are drawn with half the facets, because vertices take
/// most of their time. The mean pixel changes by at most a quarter of a grey level.
constexpr int kSmallPicture = 128;

} // namespace

/// MuJoCo's textures, display lists and frame buffer for one model and size.
class DrawContext {
public:
  DrawContext(const Physics& physics, const PixelOptions& options, const OpenglQuality& quality,
              std::shared_ptr<GlContext> gl)
      : gl_(std::move(gl)), compiled_(physics.compiled()) {
    mjModel model = physics.model(); // a view, in which only options are changed
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
    if (!quality.multisampling)
      model.vis.quality.offsamples = 0;
    if (quality.slices > 0) {
      model.vis.quality.numslices = quality.slices;
      model.vis.quality.numstacks = quality.slices / 2;
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
      // Another thread uses the context; these objects end with the context.
    }
  }

  DrawContext(const DrawContext&) = delete;
  DrawContext& operator=(const DrawContext&) = delete;

  GlContext& gl() const { return *gl_; }
  /// Binds the frame buffer and returns the context. DrawContexts of one OpenGL context compete for
  /// it.
  const mjrContext& bind() {
    gl_->make_current();
    mjr_setBuffer(mjFB_OFFSCREEN, &context_);
    return context_;
  }

  /// OpenGL has the heights of the last upload, which may be from another episode or environment.
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
  std::shared_ptr<const CompiledModel> compiled_; // keeps the key of the shared table valid
  mjrContext context_;
  std::vector<float> heights_; // all height fields, as last uploaded
};

namespace {

std::shared_ptr<DrawContext> shared_draw_context(const Physics& physics,
                                                 const PixelOptions& options,
                                                 const OpenglQuality& quality) {
  auto gl = gl_of_this_thread(options.gl);
  gl->make_current();
  std::weak_ptr<void>& known =
      gl->shared()[{physics.compiled().get(), options.height, options.width, options.effects,
                    quality.multisampling ? 1 : 0, quality.slices}];
  if (auto present = known.lock())
    return std::static_pointer_cast<DrawContext>(present);
  auto made = std::make_shared<DrawContext>(physics, options, quality, gl);
  known = made;
  return made;
}

std::uint8_t luma(const std::uint8_t* rgb) { // Rec. 601: .299, .587, .114 in 1/256
  return static_cast<std::uint8_t>((77 * rgb[0] + 150 * rgb[1] + 29 * rgb[2] + 128) >> 8);
}

} // namespace

struct OpenglRenderer::Impl {
  Impl(const Physics& physics, const PixelOptions& options, const OpenglQuality& quality,
       int camera_number)
      : context(shared_draw_context(physics, options, quality)),
        view{0, 0, options.width, options.height},
        rgb(static_cast<std::size_t>(options.height) * static_cast<std::size_t>(options.width)
            * 3) {
    mjv_defaultOption(&option);
    option.flags[mjVIS_RANGEFINDER] = 0; // as in dm_control; otherwise its rays are drawn
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
    mjv_makeScene(&physics.model(), &scene, caster::most_listed_geoms(physics.model()));
    scene.flags[mjRND_FOG] = options.fog ? 1 : 0;
    if (!options.effects) {
      scene.flags[mjRND_SHADOW] = 0;
      scene.flags[mjRND_REFLECTION] = 0;
    }
  }

  ~Impl() { mjv_freeScene(&scene); }

  /// Draws the current state off-screen.
  const mjrContext& render(Physics& physics) {
    const mjrContext& drawn = context->bind();
    context->upload_height_fields(physics.model());
    mjv_updateScene(&physics.model(), &physics.data(), &option, &perturb, &camera, mjCAT_ALL,
                    &scene);
    mjr_render(view, &scene, &drawn);
    return drawn;
  }

  std::shared_ptr<DrawContext> context;
  mjrRect view;
  mjvScene scene;
  mjvOption option;
  mjvPerturb perturb;
  mjvCamera camera;
  std::vector<std::uint8_t> rgb;     // as read from OpenGL: interleaved, bottom row first
  std::vector<float> depth;          // the same; allocated on the first request
  std::vector<std::int32_t> objects; // object and type, indexed by segmentation number + 1
};

OpenglRenderer::OpenglRenderer(Physics& physics, const PixelOptions& options, PixelLayout layout,
                               const OpenglQuality& quality)
    : Renderer(physics, options, layout),
      impl_(std::make_unique<Impl>(physics, options, quality, camera_)) {}

OpenglRenderer::~OpenglRenderer() = default;

const GlInfo& OpenglRenderer::gl() const {
  return impl_->context->gl().info();
}

std::string OpenglRenderer::description() const {
  return describe(gl());
}

void OpenglRenderer::draw_colour(std::uint8_t* out) {
  Impl& impl = *impl_;
  const mjrContext& context = impl.render(physics_);
  mjr_readPixels(impl.rgb.data(), nullptr, impl.view, &context);

  const auto columns = static_cast<std::size_t>(width());
  const auto rows = static_cast<std::size_t>(height());
  const std::size_t plane = pixels();
  for (std::size_t y = 0; y < rows; ++y) {
    const std::uint8_t* row = impl.rgb.data() + (rows - 1 - y) * columns * 3;
    std::uint8_t* to = out + y * columns;
    if (options_.grey) {
      for (std::size_t x = 0; x < columns; ++x)
        to[x] = luma(row + 3 * x);
    } else if (layout_ == PixelLayout::channels_last) {
      std::copy(row, row + 3 * columns, out + 3 * y * columns);
    } else {
      for (std::size_t x = 0; x < columns; ++x) {
        to[x] = row[3 * x];
        to[x + plane] = row[3 * x + 1];
        to[x + 2 * plane] = row[3 * x + 2];
      }
    }
  }
}

void OpenglRenderer::draw_metres(float* out) {
  Impl& impl = *impl_;
  impl.depth.resize(pixels());
  const mjrContext& context = impl.render(physics_);
  mjr_readPixels(nullptr, impl.depth.data(), impl.view, &context);
  const mjModel& model = physics_.model();
  const double near = static_cast<double>(model.vis.map.znear) * model.stat.extent;
  const double far = static_cast<double>(model.vis.map.zfar) * model.stat.extent;
  const bool orthographic = impl.scene.camera[0].orthographic != 0;
  const auto columns = static_cast<std::size_t>(width());
  const auto rows = static_cast<std::size_t>(height());
  for (std::size_t y = 0; y < rows; ++y)
    for (std::size_t x = 0; x < columns; ++x) {
      const auto d = static_cast<double>(impl.depth[(rows - 1 - y) * columns + x]); // 0 near, 1 far
      out[y * columns + x] = static_cast<float>(orthographic ? near + d * (far - near)
                                                             : near / (1 - d * (1 - near / far)));
    }
}

void OpenglRenderer::draw_objects(std::int32_t* out) {
  Impl& impl = *impl_;
  impl.scene.flags[mjRND_SEGMENT] = 1;
  impl.scene.flags[mjRND_IDCOLOR] = 1;
  const mjrContext& context = impl.render(physics_);
  impl.scene.flags[mjRND_SEGMENT] = 0;
  impl.scene.flags[mjRND_IDCOLOR] = 0;
  mjr_readPixels(impl.rgb.data(), nullptr, impl.view, &context);
  impl.objects.assign(2 * (static_cast<std::size_t>(impl.scene.ngeom) + 1), -1);
  for (const mjvGeom& geom :
       std::span(impl.scene.geoms, static_cast<std::size_t>(impl.scene.ngeom)))
    if (geom.segid >= 0 && geom.segid < impl.scene.ngeom) {
      const std::size_t at = 2 * (static_cast<std::size_t>(geom.segid) + 1);
      impl.objects[at] = geom.objid;
      impl.objects[at + 1] = geom.objtype;
    }
  const auto columns = static_cast<std::size_t>(width());
  const auto rows = static_cast<std::size_t>(height());
  for (std::size_t y = 0; y < rows; ++y)
    for (std::size_t x = 0; x < columns; ++x) {
      const std::uint8_t* in = impl.rgb.data() + ((rows - 1 - y) * columns + x) * 3;
      const std::size_t colour = in[0] + 256U * in[1] + 65536U * in[2];
      const std::size_t at = 2 * colour < impl.objects.size() ? 2 * colour : 0;
      std::copy_n(impl.objects.begin() + static_cast<std::ptrdiff_t>(at), 2,
                  out + 2 * (y * columns + x));
    }
}

std::string describe(const GlInfo& info) {
  return "OpenGL by " + info.backend + ": " + info.vendor + ", " + info.renderer;
}

} // namespace troupe::env
