#pragma once

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <ATen/ops/arange.h>

#include "env/random.hpp"
#include "learner/data/formats/open_dataset.hpp"
#include "learner/data/pictures/data_error.hpp"
#include "tests/temporary_folder.hpp"

namespace troupe::learner::data {

/// A picture whose first level encodes its number. It is smooth, so that JPEG changes it little.
inline Picture numbered_picture(int number, int height, int width) {
  Picture picture{height, width, {}};
  picture.rgb.resize(static_cast<std::size_t>(height * width * 3));
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      for (int c = 0; c < 3; ++c)
        picture.rgb[static_cast<std::size_t>((y * width + x) * 3 + c)] =
            static_cast<std::uint8_t>((number * 20 + 3 * y + 2 * x + 10 * c) % 256);
  return picture;
}

inline void write_bytes(const std::filesystem::path& path, const std::vector<std::byte>& bytes) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream out(path, std::ios::binary);
  out.write(reinterpret_cast<const char*>(bytes.data()),
            static_cast<std::streamsize>(bytes.size()));
}

inline std::vector<std::byte> as_bytes(const std::string& text) {
  const auto* first = reinterpret_cast<const std::byte*>(text.data());
  return {first, first + text.size()};
}

inline std::vector<std::byte> bytes_of(const std::filesystem::path& path) {
  return as_bytes(read_text(path));
}

/// A row of CIFAR's binary files; of CIFAR-100 if it has a coarse label.
inline std::string cifar_row(int label, int coarse = -1) {
  std::string row = coarse < 0 ? "" : std::string(1, static_cast<char>(coarse));
  row += static_cast<char>(label);
  for (const int level : {10 + label, 20, 30})
    row += std::string(1024, static_cast<char>(level));
  return row;
}

/// The bytes of a file of MNIST's format.
inline std::string idx(const std::vector<int>& shape, const std::string& values) {
  std::string text = {0, 0, 8, static_cast<char>(shape.size())};
  for (const int length : shape)
    for (int shift = 24; shift >= 0; shift -= 8)
      text += static_cast<char>(length >> shift);
  return text + values;
}

/// Calls `reads` with damaged copies of valid bytes: truncated, with flipped bits, with replaced
/// parts.
template <typename Reads>
void mutate(const std::vector<std::byte>& good, int times, const Reads& reads) {
  env::Random random(5);
  const auto below = [&random](std::size_t n) {
    return static_cast<std::size_t>(random.uniform() * static_cast<double>(n));
  };
  for (int i = 0; i < times; ++i) {
    auto bad = good;
    if (i % 4 == 0)
      bad.resize(below(bad.size()));
    for (std::size_t k = below(8) + 1; k > 0 && !bad.empty(); --k)
      bad[below(bad.size())] = static_cast<std::byte>(random.bits());
    if (i % 4 == 1 && bad.size() > 40)
      for (std::size_t k = 0, at = below(bad.size() - 8); k < 8; ++k)
        bad[at + k] = std::byte{0xff};
    reads(bad);
  }
}

inline TensorMap all_rows(const Dataset& data, std::int64_t epoch = 0) {
  return data.rows(at::arange(data.size(), at::kLong), epoch);
}

inline std::vector<std::int64_t> labels_of(const Dataset& data) {
  const auto label = all_rows(data).at("label").contiguous();
  const auto* first = label.const_data_ptr<std::int64_t>();
  return {first, first + label.numel()};
}

inline void refused(const DatasetOptions& options, const std::string& words) {
  CAPTURE(words);
  try {
    all_rows(*open_dataset(options));
    FAIL("not refused");
  } catch (const std::exception& error) {
    const std::string told = error.what();
    CAPTURE(told);
    CHECK(told.find(words) != std::string::npos);
  }
}

inline void write_text(const std::filesystem::path& path, const std::string& text) {
  write_bytes(path, as_bytes(text));
}

} // namespace troupe::learner::data
