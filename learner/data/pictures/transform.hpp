#pragma once

#include <cstdint>
#include <vector>

#include "env/random.hpp"
#include "learner/data/pictures/colour_jitter.hpp"
#include "learner/data/pictures/picture.hpp"
#include "learner/data/pictures/resample.hpp"

namespace troupe::learner::data {

/// Which part of a picture is used.
enum class Crop : std::uint8_t {
  none,           // the whole picture; all pictures must then have the same size
  random_resized, // a part of random area and shape, resized: torchvision's RandomResizedCrop
  centre,         // resized by the shorter side, then the centre: Resize, CenterCrop
  padded          // a random part of the picture with a black border: RandomCrop(size, padding)
};

struct TransformOptions {
  Crop crop = Crop::none;
  int size = 0;             // height and width of the result, in pixels; Crop::none: 0
  int resize = 0;           // Crop::centre: the shorter side before cropping; 0: size · 256 / 224
  int padding = 4;          // Crop::padded, pixels on each side
  double least_area = 0.08; // Crop::random_resized, as fractions of the picture's area
  double most_area = 1;
  double least_ratio = 3.0 / 4; // width / height
  double most_ratio = 4.0 / 3;
  bool flip = false; // flip left and right with probability 1/2
  JitterOptions jitter{};
  std::vector<float> mean{}; // of red, green, blue in [0, 1]; with `deviation`: float32 results
  std::vector<float> deviation{};
  bool scaled_decoding = true; // decode JPEGs that are larger than needed at 1/2, 1/4 or 1/8

  bool normalises() const { return !mean.empty(); }
  /// Throws std::invalid_argument naming the key and its rule.
  void check() const;
};

/// The transforms for training and for evaluating a ResNet at `size` pixels.
TransformOptions training_transform(int size);
TransformOptions evaluation_transform(int size);

/// The random choices for one picture: a function of its size and the random stream alone.
struct TransformDraw {
  Box box{}; // in the picture; for Crop::padded, in the picture with its border
  bool flip = false;
  JitterDraw jitter{};
};

TransformDraw draw_transform(const TransformOptions& options, const PictureSize& size,
                             env::Random& random);

/// The factor by which a JPEG may be decoded smaller: 1, 2, 4 or 8.
int decoding_scale(const TransformOptions& options, const PictureSize& size,
                   const TransformDraw& draw);

/// The size of the result for a picture of this size.
PictureSize transformed_size(const TransformOptions& options, const PictureSize& size);

/// Applies draws to pictures. One thread at a time; buffers are reused for the next picture.
class Transformer {
public:
  explicit Transformer(const TransformOptions& options);

  /// `picture` has the original size `size` and is decoded at 1/scale. Writes transformed_size()
  /// pixels, [height, width, 3], as bytes or, if the options normalise, as float32.
  void apply(const Picture& picture, const PictureSize& size, const TransformDraw& draw,
             std::uint8_t* out);
  void apply(const Picture& picture, const PictureSize& size, const TransformDraw& draw,
             float* out);

private:
  void crop(const Picture& picture, const PictureSize& size, const TransformDraw& draw,
            const PictureSize& wanted, std::uint8_t* out);

  TransformOptions options_;
  Resampler resampler_;
  std::vector<std::uint8_t> bytes_;
  std::vector<float> normal_; // [3, 256]: the normalised value of each byte
};

} // namespace troupe::learner::data
