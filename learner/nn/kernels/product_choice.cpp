#include "learner/nn/kernels/product_choice.hpp"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <sstream>
#include <utility>

#include <ATen/Parallel.h>
#include <ATen/ops/ones.h>
#include <torch/version.h>

#include "env/whole_file.hpp"
#include "learner/nn/kernels/kernel_table.hpp"
#include "learner/nn/kernels/ops.hpp"
#include "learner/nn/kernels/precision.hpp"
#include "learner/nn/kernels/rounded_product.hpp"

namespace troupe::learner {
namespace {

namespace fs = std::filesystem;

constexpr int kRevision = 4; // of our kernels; raise it when they take another time
constexpr const char* kNames[] = {"forward", "weight_gradient", "input_gradient"};
constexpr std::int64_t kMeasuredRows[] = {1, 16, 256};
constexpr std::pair<std::int64_t, std::int64_t> kMeasuredLayers[] = {
    {24, 256}, {64, 64}, {256, 1}, {256, 256}, {512, 512}}; // inputs, outputs
constexpr int kTakes = 4;
constexpr double kTakeSeconds = 50e-6;
constexpr double kNever = 1e9; // seconds of what the processor has no instructions for

/// The shapes that are measured, without timings.
std::vector<ProductTiming> shapes() {
  std::vector<ProductTiming> all;
  for (const Product product :
       {Product::forward, Product::weight_gradient, Product::input_gradient})
    for (const std::int64_t rows : kMeasuredRows)
      for (const auto& [inputs, outputs] : kMeasuredLayers)
        all.push_back({.product = product, .rows = rows, .inputs = inputs, .outputs = outputs});
  return all;
}

/// The ways to multiply, in the order in which ProductTiming has them.
enum class Way : std::uint8_t { ours, library, one_part, two_parts };

double& seconds_of(ProductTiming& timing, Way way) {
  switch (way) {
  case Way::ours:
    return timing.ours;
  case Way::library:
    return timing.library;
  case Way::one_part:
    return timing.one_part;
  case Way::two_parts:
    break;
  }
  return timing.two_parts;
}

bool exists(Way way) {
  return way == Way::one_part    ? has_bfloat16_instructions()
         : way == Way::two_parts ? multiplies_rounded()
                                 : true;
}

double seconds_of(const std::function<void()>& multiply) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  double seconds = 0;
  int count = 0;
  do {
    multiply();
    ++count;
    seconds = std::chrono::duration<double>(Clock::now() - start).count();
  } while (seconds < kTakeSeconds);
  return seconds / count;
}

void measure_shape(ProductTiming& timing, Workspace& workspace) {
  const at::Tensor x = at::ones({timing.rows, timing.inputs}, at::kFloat);
  const at::Tensor weight = at::ones({timing.inputs, timing.outputs}, at::kFloat);
  const at::Tensor bias = at::ones({timing.outputs}, at::kFloat);
  const at::Tensor gradient = at::ones({timing.rows, timing.outputs}, at::kFloat);
  const at::Tensor half_weight = weight.to(at::kBFloat16);
  at::Tensor half_x = x.to(at::kBFloat16), half_gradient = gradient.to(at::kBFloat16);
  at::Tensor y = at::empty_like(gradient);
  at::Tensor x_gradient = at::empty_like(x);
  at::Tensor weight_gradient = at::empty_like(weight);
  const auto multiply = [&] {
    switch (timing.product) {
    case Product::forward:
      return linear(x, weight, bias, y, workspace);
    case Product::weight_gradient:
      return linear_weight_gradient(x, gradient, weight_gradient, workspace);
    case Product::input_gradient:
      return linear_input_gradient(gradient, weight, x_gradient, workspace);
    }
  };
  RoundedWeight one_part(weight, Halves(weight, Rounding::one_part));
  RoundedWeight two_parts(weight, Halves(weight, Rounding::two_parts));
  const auto multiply_rounded = [&](RoundedWeight& rounded, Rounding rounding) {
    switch (timing.product) {
    case Product::forward:
      return rounded_linear(x, rounded, bias, y);
    case Product::weight_gradient:
      return rounded_weight_gradient(x, gradient, rounding, weight_gradient, workspace);
    case Product::input_gradient:
      return rounded_input_gradient(gradient, rounded, x_gradient);
    }
  };
  const auto multiply_halves = [&] {
    switch (timing.product) {
    case Product::forward:
      narrow_into(x, half_x);
      return half_linear(half_x, half_weight, bias, y, workspace);
    case Product::weight_gradient:
      narrow_into(gradient, half_gradient);
      return half_weight_gradient(half_x, half_gradient, weight_gradient, workspace);
    case Product::input_gradient:
      return half_input_gradient(half_gradient, half_weight, x_gradient, workspace);
    }
  };
  const ProductChoice library({{.product = timing.product, .ours = 1, .library = 0}});
  const ProductChoice* before = use_products(nullptr);
  const auto multiply_by = [&](Way way) {
    if (way == Way::two_parts)
      return multiply_rounded(two_parts, Rounding::two_parts);
    if (way == Way::one_part && multiplies_rounded())
      return multiply_rounded(one_part, Rounding::one_part);
    if (way == Way::one_part)
      return multiply_halves();
    multiply();
  };
  for (const Way way : {Way::ours, Way::library, Way::one_part, Way::two_parts})
    seconds_of(timing, way) = kNever;
  for (int take = 0; take <= kTakes; ++take)
    for (const Way way : {Way::ours, Way::library, Way::one_part, Way::two_parts}) {
      if (!exists(way))
        continue;
      use_products(way == Way::library ? &library : nullptr);
      const double seconds = seconds_of([&] { multiply_by(way); });
      if (take > 0) // the first take loads code and data
        seconds_of(timing, way) = std::min(seconds_of(timing, way), seconds);
    }
  use_products(before);
}

/// Timings of another processor, LibTorch, set of instructions or revision do not apply.
std::string header() {
  const char* limit = std::getenv("ONEDNN_MAX_CPU_ISA");
  return std::string("products, seconds of ours, of LibTorch's, and with factors in one and two "
                     "parts of bfloat16; "
                     "LibTorch ")
         + TORCH_VERSION + "; kernels: " + kernel_table().name + ", revision "
         + std::to_string(kRevision) + (multiplies_rounded() ? " and AMX" : "")
         + (limit != nullptr ? "; oneDNN: " + std::string(limit) : "");
}

std::optional<std::vector<ProductTiming>> read(const fs::path& file) {
  std::ifstream in(file);
  std::string line;
  if (!std::getline(in, line) || line != header())
    return std::nullopt;
  std::vector<ProductTiming> all = shapes();
  for (ProductTiming& timing : all) {
    std::string product;
    std::int64_t rows = 0, inputs = 0, outputs = 0;
    in >> product >> rows >> inputs >> outputs >> timing.ours >> timing.library >> timing.one_part
        >> timing.two_parts;
    const bool valid = in && product == kNames[static_cast<std::size_t>(timing.product)]
                       && rows == timing.rows && inputs == timing.inputs
                       && outputs == timing.outputs && timing.ours > 0 && timing.library > 0
                       && timing.one_part > 0 && timing.two_parts > 0;
    if (!valid)
      return std::nullopt;
  }
  return all;
}

void write(const fs::path& file, const std::vector<ProductTiming>& timings) {
  std::ostringstream text;
  text << header() << '\n';
  for (const ProductTiming& t : timings)
    text << kNames[static_cast<std::size_t>(t.product)] << ' ' << t.rows << ' ' << t.inputs << ' '
         << t.outputs << ' ' << t.ours << ' ' << t.library << ' ' << t.one_part << ' '
         << t.two_parts << '\n';
  fs::create_directories(file.parent_path());
  env::WholeFileWriter out(file);
  const std::string bytes = text.str();
  out.write(bytes.data(), bytes.size());
  out.commit();
}

std::size_t size_class(std::int64_t size, std::size_t classes) {
  return std::min<std::size_t>(
      std::bit_width(static_cast<std::uint64_t>(std::max<std::int64_t>(size, 1))) - 1, classes - 1);
}

/// How much a measured size differs from the sizes of a class, in powers of two.
double distance(std::int64_t measured, std::size_t size_class) {
  return std::abs(std::log2(static_cast<double>(std::max<std::int64_t>(measured, 1)))
                  - static_cast<double>(size_class) - (size_class == 0 ? 0 : 0.3));
}

/// Names the kind of processor, for example "GenuineIntel-6-143-8".
std::string processor_kind() {
  std::ifstream in("/proc/cpuinfo");
  std::string kind;
  for (std::string line; std::getline(in, line) && !line.empty();)
    for (const char* key :
         {"vendor_id", "cpu family", "model\t", "stepping", "CPU implementer", "CPU part"})
      if (line.starts_with(key)) {
        kind += kind.empty() ? "" : "-";
        for (const char c : line.substr(std::min(line.size(), line.find(':') + 2)))
          kind += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
      }
  return kind.empty() ? "unknown" : kind;
}

} // namespace

ProductChoice::ProductChoice(std::vector<ProductTiming> timings) : timings_(std::move(timings)) {
  for (std::size_t rows = 0; rows < kSizes; ++rows)
    for (std::size_t inputs = 0; inputs < kSizes; ++inputs)
      for (std::size_t outputs = 0; outputs < kSizes; ++outputs) {
        double floats = 0, one_part = 0, two_parts = 0; // of the three products together
        for (std::size_t product = 0; product < library_.size(); ++product) {
          const ProductTiming* nearest = nullptr;
          double least = std::numeric_limits<double>::max();
          for (const ProductTiming& t : timings_) {
            const double far =
                distance(t.rows, rows) + distance(t.inputs, inputs) + distance(t.outputs, outputs);
            if (static_cast<std::size_t>(t.product) == product && far < least) {
              nearest = &t;
              least = far;
            }
          }
          if (nearest == nullptr)
            continue;
          library_[product][rows][inputs][outputs] = nearest->library < nearest->ours;
          floats += std::min(nearest->library, nearest->ours);
          one_part += nearest->one_part;
          two_parts += nearest->two_parts;
        }
        rounded_[0][rows][inputs][outputs] = one_part < floats;
        rounded_[1][rows][inputs][outputs] = two_parts < floats;
      }
}

ProductChoice ProductChoice::measure() {
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  std::vector<ProductTiming> all = shapes();
  Workspace workspace;
  for (ProductTiming& timing : all)
    measure_shape(timing, workspace);
  at::set_num_threads(threads);
  return ProductChoice(std::move(all));
}

ProductChoice ProductChoice::load(const fs::path& file) {
  if (auto known = file.empty() ? std::nullopt : read(file))
    return ProductChoice(std::move(*known));
  ProductChoice choice = measure();
  try {
    if (!file.empty())
      write(file, choice.timings());
  } catch (const std::exception&) { // no permission, a full disk: the next process measures again
  }
  return choice;
}

bool ProductChoice::prefers_library(Product product, std::int64_t rows, std::int64_t inputs,
                                    std::int64_t outputs) const {
  return library_[static_cast<std::size_t>(product)][size_class(rows, kSizes)]
                 [size_class(inputs, kSizes)][size_class(outputs, kSizes)];
}

bool ProductChoice::prefers(Rounding rounding, std::int64_t rows, std::int64_t inputs,
                            std::int64_t outputs) const {
  return rounding != Rounding::none
         && rounded_[rounding == Rounding::two_parts ? 1 : 0][size_class(rows, kSizes)]
                    [size_class(inputs, kSizes)][size_class(outputs, kSizes)];
}

fs::path product_timings_file() {
  fs::path cache;
  if (const char* set = std::getenv("XDG_CACHE_HOME"); set && *set == '/')
    cache = set;
  else if (const char* home = std::getenv("HOME"); home && *home == '/')
    cache = fs::path(home) / ".cache";
  return cache.empty() ? cache : cache / "troupe" / ("products-" + processor_kind() + ".txt");
}

const ProductChoice& measured_products() {
  static const ProductChoice choice = ProductChoice::load(product_timings_file());
  return choice;
}

} // namespace troupe::learner
