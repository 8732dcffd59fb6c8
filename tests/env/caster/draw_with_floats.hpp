#pragma once

#include <cstdint>
#include <span>

#include "env/caster/cuda/frame_view.hpp"

namespace troupe::env::caster {

/// Draws one packed frame on the processor with the functions that the kernel calls for its pixels,
/// in plain floats.
void draw_with_floats(const FrameView& frame, const PictureFormat& format,
                      std::span<std::uint8_t> out);

} // namespace troupe::env::caster
