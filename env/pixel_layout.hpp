#pragma once

#include <cstdint>

namespace troupe::env {

/// Planes of one colour ([channels, height, width]) or pixels ([height, width, channels]).
enum class PixelLayout : std::uint8_t { channels_first, channels_last };

} // namespace troupe::env
