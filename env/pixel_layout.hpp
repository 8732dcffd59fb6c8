#pragma once

#include <cstdint>

namespace troupe::env {

/// One plane per colour ([channels, height, width]), or interleaved pixels ([height, width,
/// channels]).
enum class PixelLayout : std::uint8_t { channels_first, channels_last };

} // namespace troupe::env
