#pragma once

#include <pybind11/numpy.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "env/caster/ray_caster.hpp"

namespace troupe::python {

/// What a picture shows: colours uint8 [height, width, channels], depths in metres float32 [height,
/// width], or object ids and types int32 [height, width, 2].
enum class PictureKind : std::uint8_t { colour, depth, segmentation };

template <typename T>
std::span<T> elements_of(std::span<std::byte> memory) {
  return {reinterpret_cast<T*>(memory.data()), memory.size() / sizeof(T)};
}

/// Bytes of one picture of a caster with these options.
std::size_t picture_bytes(PictureKind kind, const env::CastOptions& options);

/// Returns an uninitialised array for `count` pictures, [count, height, width, …].
pybind11::array empty_pictures(PictureKind kind, std::size_t count,
                               const env::CastOptions& options);

/// Draws the state of the caster's last update() into `out`, picture_bytes() bytes.
void draw_picture(env::RayCaster& caster, PictureKind kind, std::span<std::byte> out);

} // namespace troupe::python
