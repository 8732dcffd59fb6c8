#include <doctest/doctest.h>

#include <cmath>
#include <memory>
#include <set>

#include "learner/data/formats/picture_dataset.hpp"
#include "learner/data/pictures/data_error.hpp"
#include "learner/data/pictures/transform.hpp"
#include "learner/device/safetensors.hpp"
#include "tests/folders.hpp"
#include "tests/learner/data/data_fixture.hpp"

namespace troupe::learner::data {
namespace {

const TensorMap& golden() {
  static const auto file =
      read_safetensors(in_source("tests/learner/data/data_golden.safetensors"));
  return file.tensors;
}

Picture picture_of(const std::string& name) {
  const auto& tensor = golden().at(name);
  const auto* first = tensor.const_data_ptr<std::uint8_t>();
  return {static_cast<int>(tensor.size(0)),
          static_cast<int>(tensor.size(1)),
          {first, first + tensor.numel()}};
}

std::vector<std::byte> file_of(const std::string& name) {
  const auto& tensor = golden().at(name);
  const auto* first = reinterpret_cast<const std::byte*>(tensor.const_data_ptr<std::uint8_t>());
  return {first, first + tensor.numel()};
}

int largest_difference(const std::vector<std::uint8_t>& a, const std::vector<std::uint8_t>& b) {
  REQUIRE(a.size() == b.size());
  int most = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    most = std::max(most, std::abs(int{a[i]} - int{b[i]}));
  return most;
}

std::vector<std::uint8_t> resized(const Picture& in, const Box& box, int height, int width) {
  Resampler resampler;
  std::vector<std::uint8_t> out(static_cast<std::size_t>(height * width * 3));
  resampler.resize(in, box, {height, width}, {0, 0, height, width}, out.data());
  return out;
}

std::vector<std::uint8_t> transformed(const TransformOptions& options, const Picture& picture,
                                      std::uint64_t seed = 1) {
  const PictureSize size{picture.height, picture.width};
  env::Random random(seed);
  const auto draw = draw_transform(options, size, random);
  const auto wanted = transformed_size(options, size);
  std::vector<std::uint8_t> out(static_cast<std::size_t>(wanted.height * wanted.width * 3));
  Transformer(options).apply(picture, size, draw, out.data());
  return out;
}

TEST_CASE("Resizing gives the same levels as torchvision and Pillow") {
  const auto source = picture_of("source");
  CHECK(resized(source, {5, 7, 50, 60}, 24, 24) == picture_of("resized_down").rgb);
  CHECK(resized(source, {40, 30, 12, 15}, 32, 32) == picture_of("resized_up").rgb);
  // Here Pillow 13 resizes along the columns first, and rounds in between.
  CHECK(largest_difference(resized(source, {0, 0, 61, 83}, 20, 64), picture_of("resized_wide").rgb)
        <= 1);
  CHECK(resized(source, {3, 3, 24, 24}, 24, 24) == picture_of("resized_same").rgb);
}

TEST_CASE("Evaluation resizes and crops the centre as torchvision does") {
  CHECK(transformed({.crop = Crop::centre, .size = 32, .resize = 40}, picture_of("source"))
        == picture_of("evaluated").rgb);
  CHECK(transformed({.crop = Crop::centre, .size = 32, .resize = 37}, picture_of("tall"))
        == picture_of("evaluated_tall").rgb);
}

TEST_CASE("Colours are adjusted as in torchvision") {
  const auto source = picture_of("source");
  auto changed = source.rgb;
  adjust_brightness(changed, 1.3);
  CHECK(largest_difference(changed, picture_of("jitter_brightness").rgb) <= 1);
  changed = source.rgb;
  adjust_contrast(changed, 0.6);
  CHECK(largest_difference(changed, picture_of("jitter_contrast").rgb) <= 1);
  changed = source.rgb;
  adjust_saturation(changed, 1.7);
  CHECK(largest_difference(changed, picture_of("jitter_saturation").rgb) <= 1);
  changed = source.rgb;
  adjust_hue(changed, -0.2);
  CHECK(largest_difference(changed, picture_of("jitter_hue").rgb) <= 1);
}

TEST_CASE("JPEG and PNG files of every kind decode as in Pillow") {
  PictureDecoder decoder;
  Picture picture;
  for (const std::string name : {"jpeg", "jpeg_444_progressive", "jpeg_grey", "jpeg_cmyk", "png",
                                 "png_grey", "png_bits", "png_palette", "png_alpha", "png_16"}) {
    CAPTURE(name);
    const auto bytes = file_of("file_" + name);
    const auto size = decoder.size(bytes, name);
    decoder.decode(bytes, name, 1, picture);
    CHECK(size.height == picture.height);
    CHECK(size.width == picture.width);
    const bool jpeg = name.starts_with("jpeg"); // from another version of libjpeg-turbo
    CHECK(largest_difference(picture.rgb, picture_of("pixels_" + name).rgb) <= (jpeg ? 2 : 0));
  }
}

TEST_CASE("A JPEG decoded at a reduced scale resembles the full picture resized") {
  PictureDecoder decoder;
  Picture whole, half;
  const auto bytes = encode_jpeg(numbered_picture(1, 64, 96), 95);
  decoder.decode(bytes, "a", 1, whole);
  decoder.decode(bytes, "a", 2, half);
  CHECK(half.height == 32);
  CHECK(half.width == 48);
  const auto small = resized(whole, {0, 0, 64, 96}, 32, 48);
  double difference = 0;
  for (std::size_t i = 0; i < small.size(); ++i)
    difference += std::abs(int{small[i]} - int{half.rgb[i]});
  CHECK(difference / static_cast<double>(small.size()) < 3);
  const PictureSize size{400, 600};
  CHECK(decoding_scale({.crop = Crop::random_resized, .size = 50}, size, {.box = {0, 0, 300, 220}})
        == 4);
  CHECK(decoding_scale({.crop = Crop::random_resized, .size = 224}, size, {.box = {0, 0, 300, 220}})
        == 1);
  CHECK(decoding_scale({.crop = Crop::centre, .size = 96, .resize = 100}, size, {}) == 4);
  CHECK(decoding_scale({.crop = Crop::centre, .size = 96, .resize = 100, .scaled_decoding = false},
                       size, {})
        == 1);
}

TEST_CASE("Random crops stay inside the picture and cover the requested areas and aspect ratios") {
  const TransformOptions options{.crop = Crop::random_resized, .size = 8};
  const PictureSize size{120, 200};
  env::Random random(3);
  double area = 0;
  for (int i = 0; i < 2000; ++i) {
    const auto box = draw_transform(options, size, random).box;
    CHECK(box.top >= 0);
    CHECK(box.left >= 0);
    CHECK(box.top + box.height <= size.height);
    CHECK(box.left + box.width <= size.width);
    const double ratio = static_cast<double>(box.width) / box.height;
    CHECK(ratio > 0.72);
    CHECK(ratio < 1.39);
    area += box.height * box.width / (120.0 * 200);
  }
  CHECK(area / 2000 > 0.35); // uniform from 0.08 to 1, without crops that do not fit
  CHECK(area / 2000 < 0.55);
}

TEST_CASE("Padded crops shift the picture over black, and half of them are flipped") {
  const auto picture = numbered_picture(3, 32, 32);
  const TransformOptions options{.crop = Crop::padded, .size = 32, .flip = true};
  std::set<std::pair<int, int>> places;
  int flipped = 0;
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    env::Random random(seed);
    const auto draw = draw_transform(options, {32, 32}, random);
    places.insert({draw.box.top, draw.box.left});
    flipped += draw.flip ? 1 : 0;
    if (seed > 8)
      continue;
    const auto out = transformed(options, picture, seed);
    for (int y = 0; y < 32; ++y)
      for (int x = 0; x < 32; ++x) {
        const int from_y = y + draw.box.top, from_x = (draw.flip ? 31 - x : x) + draw.box.left;
        const bool inside = from_y >= 0 && from_y < 32 && from_x >= 0 && from_x < 32;
        const auto expected =
            inside ? picture.rgb[static_cast<std::size_t>((from_y * 32 + from_x) * 3)] : 0;
        REQUIRE(int{out[static_cast<std::size_t>((y * 32 + x) * 3)]} == int{expected});
      }
  }
  CHECK(places.size() == 81);
  CHECK(flipped > 900);
  CHECK(flipped < 1100);
}

TEST_CASE("Normalised levels follow the formula") {
  const auto picture = numbered_picture(2, 4, 6);
  const TransformOptions options{.mean = {0.5F, 0.4F, 0.3F}, .deviation = {0.2F, 0.3F, 0.4F}};
  std::vector<float> out(4 * 6 * 3);
  Transformer(options).apply(picture, {4, 6}, {.box = {0, 0, 4, 6}}, out.data());
  for (std::size_t i = 0; i < out.size(); ++i)
    CHECK(out[i]
          == doctest::Approx((picture.rgb[i] / 255.0 - options.mean[i % 3])
                             / options.deviation[i % 3]));
}

TEST_CASE("Invalid transform options are refused by name") {
  const auto refused = [](const TransformOptions& options, const char* words) {
    CHECK_THROWS_WITH_AS(options.check(), doctest::Contains(words), std::invalid_argument);
  };
  refused({.size = 32}, "size 32 must be 0 without a crop");
  refused({.crop = Crop::centre, .size = 0}, "size 0 must be from 1 to 4096");
  refused({.crop = Crop::centre, .size = 32, .resize = 16}, "resize 16 must be at least the size");
  refused({.crop = Crop::random_resized, .size = 8, .least_area = 0}, "area");
  refused({.jitter = {.hue = 0.6}}, "hue 0.6");
  refused({.mean = {1, 1, 1}}, "must both have 3");
}

TEST_CASE("A corrupt picture is refused by name, whatever is damaged") {
  PictureDecoder decoder;
  Picture picture;
  auto cut_short = file_of("file_jpeg");
  cut_short.resize(cut_short.size() / 2);
  CHECK_THROWS_WITH_AS(decoder.decode(cut_short, "a.jpg", 1, picture),
                       doctest::Contains("a.jpg: is a corrupt JPEG"), DataError);
  cut_short = file_of("file_png");
  cut_short.resize(cut_short.size() / 2);
  CHECK_THROWS_WITH_AS(decoder.decode(cut_short, "a.png", 1, picture),
                       doctest::Contains("a.png: is a corrupt PNG"), DataError);
  cut_short = file_of("file_jpeg");
  cut_short.resize(200); // within the header
  CHECK_THROWS_AS(decoder.size(cut_short, "a.jpg"), DataError);
  decoder.decode(file_of("file_jpeg"), "the next one", 1, picture);
  CHECK(largest_difference(picture.rgb, picture_of("pixels_jpeg").rgb) <= 2);
  CHECK_THROWS_AS(decoder.size({}, "empty"), DataError);
  CHECK_THROWS_AS(decoder.size(as_bytes("GIF89a, which is none"), "a.gif"), DataError);
  CHECK_THROWS_WITH_AS(check_picture_size(70'000, 70'000, "bomb"), doctest::Contains("67108864"),
                       DataError);
  for (const std::string name : {"jpeg", "jpeg_444_progressive", "jpeg_cmyk", "png", "png_palette"})
    mutate(file_of("file_" + name), 300, [&](const std::vector<std::byte>& bytes) {
      try {
        decoder.decode(bytes, "mutant", 1, picture);
        CHECK(picture.rgb.size() == static_cast<std::size_t>(picture.height) * picture.row_bytes());
      } catch (const DataError& error) {
        CHECK(std::string(error.what()).find("mutant") != std::string::npos);
      }
    });
}

/// A picture of 70000 x 1 pixels and one of 8 x 1.
class Strips final : public PictureReader {
public:
  DatasetInfo info() const override { return {.format = "strips", .rows = 2, .classes = 1}; }
  std::string where(std::int64_t row) const override { return "strip " + std::to_string(row); }
  std::int64_t label(std::int64_t) const override { return 0; }
  void read(std::int64_t row, StoredPicture& out) const override {
    out.encoded = false;
    out.picture.height = 1;
    out.picture.width = row == 0 ? 70'000 : 8;
    out.picture.rgb.assign(out.picture.row_bytes(), 7);
  }
};

TEST_CASE("A picture that is too long to be resized is a bad row") {
  const PictureDataset data(std::make_unique<Strips>(),
                            {.transform = evaluation_transform(8), .tolerate = 0.5});
  CHECK(all_rows(data).at("picture").size(0) == 2);
  CHECK(data.info().bad_rows == 1);
  REQUIRE(data.info().messages.size() == 1);
  CHECK(data.info().messages[0]
        == "strip 0: has 70000 x 1 pixels; its longer side must be less than 65536 times the "
           "shorter one");
}

} // namespace
} // namespace troupe::learner::data
