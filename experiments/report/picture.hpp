#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace troupe::experiments {

/// Encodes a picture as PNG; `rgb` is [height, width, 3], top row first. Throws
/// std::invalid_argument if the size is wrong.
std::vector<std::byte> encode_png(int width, int height, std::span<const std::uint8_t> rgb);

/// Like encode_png(), but JPEG with `quality` from 1 to 100.
std::string encode_jpeg(int width, int height, std::span<const std::uint8_t> rgb, int quality);

/// Writes a PNG file. Throws what encode_png() throws, and std::runtime_error naming path and
/// reason.
void write_png(const std::filesystem::path& path, int width, int height,
               std::span<const std::uint8_t> rgb);

} // namespace troupe::experiments
