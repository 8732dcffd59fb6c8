#pragma once

#include <cstdint>
#include <span>

#include "env/caster/cuda/frame_view.hpp"

namespace troupe::env::caster {

/// Draws one packed frame on the CPU in scalar code, with the functions that the CUDA kernel calls
/// for each pixel.
void draw_with_floats(const FrameView& frame, const PictureFormat& format,
                      std::span<std::uint8_t> out);

} // namespace troupe::env::caster
