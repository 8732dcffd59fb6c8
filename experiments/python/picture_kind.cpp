#include "experiments/python/picture_kind.hpp"

#include <vector>

namespace py = pybind11;

namespace troupe::python {

std::size_t picture_bytes(PictureKind kind, const env::CastOptions& options) {
  const auto pixels =
      static_cast<std::size_t>(options.height) * static_cast<std::size_t>(options.width);
  switch (kind) {
  case PictureKind::colour:
    return pixels * (options.grey ? 1U : 3U);
  case PictureKind::depth:
    return pixels * sizeof(float);
  case PictureKind::segmentation:
    break;
  }
  return 2 * pixels * sizeof(std::int32_t);
}

py::array empty_pictures(PictureKind kind, std::size_t count, const env::CastOptions& options) {
  std::vector<py::ssize_t> shape{static_cast<py::ssize_t>(count), options.height, options.width};
  switch (kind) {
  case PictureKind::colour:
    shape.push_back(options.grey ? 1 : 3);
    return py::array_t<std::uint8_t>(shape);
  case PictureKind::depth:
    return py::array_t<float>(shape);
  case PictureKind::segmentation:
    break;
  }
  shape.push_back(2);
  return py::array_t<std::int32_t>(shape);
}

void draw_picture(env::RayCaster& caster, PictureKind kind, std::span<std::byte> out) {
  switch (kind) {
  case PictureKind::colour:
    return caster.draw(elements_of<std::uint8_t>(out));
  case PictureKind::depth:
    return caster.draw_depth(elements_of<float>(out));
  case PictureKind::segmentation:
    return caster.draw_segmentation(elements_of<std::int32_t>(out));
  }
}

} // namespace troupe::python
