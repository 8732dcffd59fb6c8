#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "learner/nn/kernels/rounding.hpp"

namespace troupe::learner {

/// The three matrix products of a layer with `inputs` and `outputs` columns.
enum class Product : std::uint8_t { forward, weight_gradient, input_gradient };

/// Seconds that one product of a shape takes on one thread: in float32 with our kernels and with
/// LibTorch, and with factors rounded to one and two parts, including conversions. One part is by
/// our kernels for AMX or LibTorch, two parts are by ours alone.
struct ProductTiming {
  Product product = Product::forward;
  std::int64_t rows = 0, inputs = 0, outputs = 0;
  double ours = 0, library = 0, one_part = 0, two_parts = 0;
};

/// Which implementation of a float32 product is faster on this processor, that of kernel_table.hpp
/// or LibTorch's library, and where rounded factors are faster than both. A shape that was not
/// measured is treated like the most similar one. Immutable, so threads may share it.
class ProductChoice {
public:
  /// Uses ours for every shape if `timings` is empty.
  explicit ProductChoice(std::vector<ProductTiming> timings = {});

  /// Measures typical shapes on this thread, which takes about a tenth of a second.
  static ProductChoice measure();

  /// Reads the timings that another process measured on this kind of processor with this LibTorch.
  /// If the file is missing or has others, measures and writes it. If it cannot be written, the
  /// next process measures again.
  static ProductChoice load(const std::filesystem::path& file);

  bool prefers_library(Product product, std::int64_t rows, std::int64_t inputs,
                       std::int64_t outputs) const;

  /// Whether the three products of a layer together are faster with factors so rounded.
  bool prefers(Rounding rounding, std::int64_t rows, std::int64_t inputs,
               std::int64_t outputs) const;

  const std::vector<ProductTiming>& timings() const { return timings_; }

private:
  static constexpr std::size_t kSizes = 12; // powers of two; larger sizes count as the last one
  std::vector<ProductTiming> timings_;
  template <class Value>
  using OfShape = std::array<std::array<std::array<Value, kSizes>, kSizes>, kSizes>;
  std::array<OfShape<bool>, 3> library_{};
  std::array<OfShape<bool>, 2> rounded_{}; // to one and two parts
};

/// Where load() keeps the timings of this user and kind of processor; empty without a home folder.
std::filesystem::path product_timings_file();

/// The choice of this process, which is loaded at the first call.
const ProductChoice& measured_products();

} // namespace troupe::learner
