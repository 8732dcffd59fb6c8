// Images per second of one thread, from JPEGs in the page cache to augmented rows of a batch,
// interleaved with libjpeg-turbo's decoding of the same files alone.
#include <algorithm>
#include <chrono>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include <ATen/ops/arange.h>

#include "env/random.hpp"
#include "experiments/bench/bench.hpp"
#include "experiments/bench/bench_folder.hpp"
#include "learner/data/formats/open_dataset.hpp"
#include "learner/data/pictures/picture.hpp"

namespace troupe::experiments {
namespace {

namespace data = learner::data;
namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr int kPictures = 64;
constexpr int kHeight = 256; // pixels
constexpr int kWidth = 320;
constexpr int kSize = 224; // of the resulting images
constexpr std::int64_t kLoaderBatch = 32;

/// Gradients, edges and noise, with as many bytes per pixel as a photograph.
data::Picture photograph(int number) {
  data::Picture picture{kHeight, kWidth, {}};
  picture.rgb.resize(static_cast<std::size_t>(kHeight) * picture.row_bytes());
  env::Random random(static_cast<std::uint64_t>(number));
  for (int y = 0; y < kHeight; ++y)
    for (int x = 0; x < kWidth; ++x)
      for (int c = 0; c < 3; ++c) {
        const int block = ((x / 37 + y / 23 + number) % 3) * 60;
        const int level = (x * (c + 1) / 3 + y / 2 + block) % 256;
        picture.rgb[static_cast<std::size_t>(y) * picture.row_bytes()
                    + static_cast<std::size_t>(3 * x + c)] =
            static_cast<std::uint8_t>(
                std::clamp(level + static_cast<int>(random.uniform(-12, 12)), 0, 255));
      }
  return picture;
}

void write_photographs(const fs::path& folder) {
  for (int i = 0; i < kPictures; ++i) {
    const auto bytes = data::encode_jpeg(photograph(i), 90);
    const auto path = folder / std::to_string(i % 4) / (std::to_string(i) + ".jpg");
    fs::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
  }
}

std::vector<std::vector<std::byte>> files_of(const fs::path& folder) {
  std::vector<std::vector<std::byte>> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file() && data::is_picture_name(entry.path().filename().string())) {
      std::ifstream in(entry.path(), std::ios::binary);
      const std::string text{std::istreambuf_iterator<char>(in), {}};
      const auto* first = reinterpret_cast<const std::byte*>(text.data());
      files.emplace_back(first, first + text.size());
      if (files.size() == 256)
        break;
    }
  if (files.empty())
    throw std::invalid_argument("--data " + folder.string() + ": has no pictures");
  return files;
}

void measure(const BenchOptions& options, const Report& report, const fs::path& folder,
             const std::string& metric, const data::TransformOptions& transform) {
  const auto dataset = data::open_dataset({.path = folder, .transform = transform});
  std::int64_t batch = 0;
  const auto rates = measure_rates(options, [&] {
    const auto count = std::min(kLoaderBatch, dataset->size());
    const auto first = batch * count % (dataset->size() - count + 1);
    dataset->rows(at::arange(first, first + count, at::kLong), batch++);
    return static_cast<double>(count);
  });
  report_values(report, "data", metric, "pictures/s", rates, {{"size", std::to_string(kSize)}});
}

} // namespace

void bench_data(const BenchOptions& options, const Report& report) {
  const BenchFolder own;
  fs::path folder = options.data;
  if (options.data.empty()) {
    folder = own.path;
    write_photographs(folder);
  }
  const auto files = files_of(folder);
  data::PictureDecoder decoder;
  data::Picture picture;
  const auto rates = measure_rates(options, [&] {
    for (const auto& file : files)
      decoder.decode(file, "picture", 1, picture);
    return static_cast<double>(files.size());
  });
  report_values(report, "data", "JPEGs decoded alone", "pictures/s", rates);
  auto transform = data::training_transform(kSize);
  measure(options, report, folder, "decoded, random resized crop, flip, normalised", transform);
  transform.mean = transform.deviation = {};
  measure(options, report, folder, "the same as bytes", transform);
  transform.jitter = {.brightness = 0.4, .contrast = 0.4, .saturation = 0.4, .hue = 0.1};
  measure(options, report, folder, "as bytes with all of colour jitter", transform);
  auto evaluation = data::evaluation_transform(kSize);
  measure(options, report, folder, "decoded, resized, middle cut, normalised", evaluation);
}

} // namespace troupe::experiments
