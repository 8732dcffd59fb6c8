#include "experiments/report/video.hpp"

#include <doctest/doctest.h>

#include <png.h>

#include <cmath>
#include <tuple>
#include <vector>

#include "experiments/report/picture.hpp"
#include "tests/temporary_folder.hpp"
#include "tests/text.hpp"

using namespace troupe;
using namespace troupe::experiments;
namespace fs = std::filesystem;

namespace {

std::vector<std::uint8_t> plain(int width, int height, std::uint8_t r, std::uint8_t g,
                                std::uint8_t b) {
  std::vector<std::uint8_t> out;
  for (int i = 0; i < width * height; ++i) {
    out.insert(out.end(), {r, g, b});
  }
  return out;
}

} // namespace

TEST_CASE("A video reads back with its size, frames, length and colours, also for odd sizes") {
  const TemporaryFolder folder;
  for (const auto& [width, height] : {std::pair{64, 48}, {33, 17}, {480, 480}}) {
    CAPTURE(width);
    const fs::path path = folder.path() / (std::to_string(width) + ".mp4");
    const auto writer = write_video(path, width, height, 25);
    for (int i = 0; i < 50; ++i) {
      writer->add(plain(width, height, 200, 100, 50));
    }
    writer->finish();
    writer->finish(); // a second call does nothing
    CHECK(writer->frames() == 50);
    const VideoInfo info = read_video(path);
    CHECK(info.width == (width + 1) / 2 * 2);
    CHECK(info.height == (height + 1) / 2 * 2);
    CHECK(info.frames == 50);
    CHECK(info.seconds == doctest::Approx(2).epsilon(0.02));
    CHECK(info.codec == (writer->codec() == "libx264" ? "h264" : "mpeg4"));
    CHECK(std::abs(info.mean_red - 200) < 8);
    CHECK(std::abs(info.mean_green - 100) < 8);
    CHECK(std::abs(info.mean_blue - 50) < 8);
  }
}

TEST_CASE("A GIF has every frame, its frame rate, and at most 256 pixels a side") {
  const TemporaryFolder folder;
  for (const auto& [width, height, divisor] :
       {std::tuple{64, 48, 1}, {256, 16, 1}, {480, 270, 2}}) {
    CAPTURE(width);
    const fs::path path = folder.path() / "x.gif";
    const auto writer = write_video(path, width, height, 10);
    for (int i = 0; i < 20; ++i) {
      writer->add(plain(width, height, 200, static_cast<std::uint8_t>(10 * i), 50));
    }
    writer->finish();
    CHECK(writer->codec() == "gif");
    const VideoInfo info = read_video(path);
    CHECK(info.codec == "gif");
    CHECK(info.width == width / divisor);
    CHECK(info.height == height / divisor);
    CHECK(info.frames == 20);
    CHECK(info.seconds == doctest::Approx(2).epsilon(0.02));
    CHECK(std::abs(info.mean_red - 200) < 20); // of eight levels
    CHECK(std::abs(info.mean_green) < 20);
    CHECK(std::abs(info.mean_blue - 50) < 20); // of four levels
    CHECK(fs::file_size(path) < 100'000);      // the palette is dithered with a fixed pattern
  }
}

TEST_CASE("An unfinished video leaves no file") {
  const TemporaryFolder folder;
  const fs::path path = folder.path() / "x.mp4";
  {
    const auto writer = write_video(path, 32, 32);
    writer->add(plain(32, 32, 0, 0, 0));
  }
  CHECK_FALSE(fs::exists(path));
}

TEST_CASE("A video that cannot be made is refused with the reason") {
  const TemporaryFolder folder;
  const fs::path path = folder.path() / "x.mp4";
  CHECK(error_of([&] { write_video(folder.path() / "none/x.mp4", 32, 32); }).find("No such file")
        != std::string::npos);
  CHECK(error_of([&] { write_video(path, 1, 32); }).find("from 2 to 4096") != std::string::npos);
  CHECK(error_of([&] { write_video(path, 32, 32, std::nan("")); }).find("frames per second")
        != std::string::npos);
  CHECK(error_of([&] {
          write_video(path, 32, 32)->add(std::vector<std::uint8_t>(5));
        }).find("a frame has 5 bytes")
        != std::string::npos);
  CHECK(error_of([&] { write_video(path, 32, 32)->finish(); }).find("no frames")
        != std::string::npos);
  CHECK(error_of([&] { read_video(folder.path() / "none.mp4"); }).find("No such file")
        != std::string::npos);
}

TEST_CASE("A PNG picture reads back bit for bit") {
  const TemporaryFolder folder;
  const fs::path path = folder.path() / "x.png";
  std::vector<std::uint8_t> pixels(7 * 5 * 3);
  for (std::size_t i = 0; i < pixels.size(); ++i) {
    pixels[i] = static_cast<std::uint8_t>(i * 37);
  }
  write_png(path, 7, 5, pixels);
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  REQUIRE(png_image_begin_read_from_file(&image, path.c_str()) != 0);
  CHECK(image.width == 7);
  CHECK(image.height == 5);
  image.format = PNG_FORMAT_RGB;
  std::vector<std::uint8_t> back(PNG_IMAGE_SIZE(image));
  REQUIRE(png_image_finish_read(&image, nullptr, back.data(), 0, nullptr) != 0);
  CHECK(back == pixels);
  CHECK(error_of([&] { write_png(path, 7, 4, pixels); }).find("does not have 105 bytes")
        != std::string::npos);
  CHECK(error_of([&] { write_png("/nowhere/x.png", 7, 5, pixels); }).find("cannot be written")
        != std::string::npos);
}
