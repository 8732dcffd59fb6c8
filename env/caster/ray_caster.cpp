#include "env/caster/ray_caster.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "env/caster/caster_model.hpp"
#include "env/caster/frame_builder.hpp"
#include "env/caster/picture.hpp"

namespace troupe::env {

namespace {

constexpr int kMostPixels = 4096; // per side

void check(const mjModel& model, const CastOptions& options) {
  for (const auto& [key, value] :
       {std::pair("height", options.height), std::pair("width", options.width)})
    if (value < 1 || value > kMostPixels)
      throw std::invalid_argument(std::string(key) + ": " + std::to_string(value)
                                  + " pixels is out of range; it must be from 1 to "
                                  + std::to_string(kMostPixels));
  if (options.camera < -1 || options.camera >= model.ncam)
    throw std::invalid_argument(
        "camera: " + std::to_string(options.camera) + " is not a camera of the model; it has "
        + std::to_string(model.ncam) + ", numbered from 0, and -1, the free camera");
}

} // namespace

struct RayCaster::Impl {
  Impl(std::shared_ptr<const CasterModel> shared_model, const CastOptions& wanted)
      : shared(std::move(shared_model)), options(wanted), builder(*shared, wanted) {
    picture.resize(builder.frame.block_columns, builder.frame.block_rows);
  }

  template <typename T>
  void check_output(const char* what, std::span<T> out, std::size_t size) const {
    if (out.size() != size)
      throw std::invalid_argument(std::string(what) + " needs a buffer of " + std::to_string(size)
                                  + (sizeof(T) == 1 ? " bytes" : " numbers") + "; it has "
                                  + std::to_string(out.size()));
    if (!updated)
      throw std::invalid_argument(std::string(what) + " needs a state; call update() first");
  }

  std::size_t pixels() const {
    return static_cast<std::size_t>(options.height) * static_cast<std::size_t>(options.width);
  }

  void write(std::uint8_t* out) const {
    const bool interleaved = options.layout == PixelLayout::channels_last && !options.grey;
    const std::size_t row = static_cast<std::size_t>(options.width) * (interleaved ? 3 : 1);
    for (int y = 0; y < options.height; ++y) {
      const std::int32_t* from = picture.smooth.data() + picture.at(0, y);
      std::uint8_t* to = out + static_cast<std::size_t>(y) * row;
      if (options.grey)
        caster::write_bytes(from, options.width, 0, true, to);
      else if (interleaved)
        for (int x = 0; x < options.width; ++x)
          for (int c = 0; c < 3; ++c)
            to[3 * x + c] = static_cast<std::uint8_t>(from[x] >> (8 * c) & 255);
      else
        for (int c = 0; c < 3; ++c)
          caster::write_bytes(from, options.width, 8 * c, false,
                              to + static_cast<std::size_t>(c) * pixels());
    }
  }

  std::shared_ptr<const CasterModel> shared;
  CastOptions options;
  caster::FrameBuilder builder;
  caster::Picture picture;
  bool updated = false;
};

RayCaster::RayCaster(std::shared_ptr<const CasterModel> model, const CastOptions& options) {
  if (!model)
    throw std::invalid_argument("a RayCaster needs a CasterModel, but got none");
  check(model->model(), options);
  impl_ = std::make_unique<Impl>(std::move(model), options);
}

RayCaster::~RayCaster() = default;
RayCaster::RayCaster(RayCaster&&) noexcept = default;
RayCaster& RayCaster::operator=(RayCaster&&) noexcept = default;

const CastOptions& RayCaster::options() const {
  return impl_->options;
}

std::size_t RayCaster::bytes() const {
  return static_cast<std::size_t>(channels()) * impl_->pixels();
}

void RayCaster::look_through(const mjvCamera& camera) {
  impl_->builder.list.look_through(impl_->shared->model(), camera);
}

void RayCaster::show(const mjvOption& option) {
  impl_->builder.list.show(option);
}

void RayCaster::update(const mjModel& model, const mjData& data) {
  impl_->builder.update(model, data);
  impl_->updated = true;
}

void RayCaster::draw(std::span<std::uint8_t> out) {
  impl_->check_output("a picture", out, bytes());
  kernels_of(impl_->builder.frame).draw(impl_->builder.frame, impl_->picture);
  impl_->write(out.data());
}

void RayCaster::draw_depth(std::span<float> out) {
  impl_->check_output("a depth picture", out, impl_->pixels());
  // MuJoCo draws transparent objects without writing their depths.
  kernels_of(impl_->builder.frame)
      .look(impl_->builder.frame, impl_->picture, impl_->builder.frame.opaque, out.data(), nullptr);
}

void RayCaster::draw_segmentation(std::span<std::int32_t> out, std::span<float> distances) {
  const std::size_t pixels = impl_->pixels();
  impl_->check_output("a segmentation", out, 2 * pixels);
  if (!distances.empty())
    impl_->check_output("a picture of distances", distances, pixels);
  kernels_of(impl_->builder.frame)
      .look(impl_->builder.frame, impl_->picture,
            static_cast<int>(impl_->builder.frame.shapes.size()),
            distances.empty() ? nullptr : distances.data(), out.data());
  for (std::size_t pixel = pixels; pixel-- > 0;) { // expand [pixels] to [pixels, 2]
    const std::int32_t number = out[pixel];
    const bool seen = number >= 0;
    const auto i = static_cast<std::size_t>(number);
    out[2 * pixel] = seen ? impl_->builder.frame.shapes[i].object_id : -1;
    out[2 * pixel + 1] = seen ? impl_->builder.frame.shapes[i].object_type : -1;
  }
}

void RayCaster::draw(const mjModel& model, const mjData& data, std::span<std::uint8_t> out) {
  update(model, data);
  draw(out);
}

void RayCaster::draw_depth(const mjModel& model, const mjData& data, std::span<float> out) {
  update(model, data);
  draw_depth(out);
}

void RayCaster::draw_segmentation(const mjModel& model, const mjData& data,
                                  std::span<std::int32_t> out, std::span<float> distances) {
  update(model, data);
  draw_segmentation(out, distances);
}

} // namespace troupe::env
