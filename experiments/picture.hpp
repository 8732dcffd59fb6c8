#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

namespace troupe::experiments {

/// Writes one picture as PNG; `rgb` is [height, width, 3], top row first. Throws
/// std::invalid_argument on a wrong size, std::runtime_error naming path and reason.
void write_png(const std::filesystem::path& path, int width, int height,
               std::span<const std::uint8_t> rgb);

} // namespace troupe::experiments
