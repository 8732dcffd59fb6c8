// Compiled once per instruction set, like kernels.cpp. Every pass is limited by memory bandwidth;
// the per-channel numbers stay in the first-level cache.
#include "learner/nn/kernels/norm_kernels.hpp"

#include "learner/nn/kernels/vector_loops.hpp"

namespace troupe::learner::TROUPE_KERNELS {
namespace {

Vector over_zero(Vector v) {
  return v < 0.0f ? Vector{} : v; // NaN stays NaN
}

/// Rows of a block, whose column sums stay in registers.
constexpr Index kTogether = 8;

template <class Element>
void moments(const Element* x, const float* shift, float* sums, float* squares, Index rows,
             Index channels) {
  for (Index first = 0; first < rows; first += kTogether, x += kTogether * channels) {
    const Index together = rows - first < kTogether ? rows - first : kTogether;
    each(channels, [=](Index j, Index part) {
      const Vector middle = get(shift + j, part);
      Vector sum = {};
      Vector square = {};
      for (Index i = 0; i < together; ++i) {
        const Vector d = get(x + i * channels + j, part) - middle;
        sum += d;
        square += d * d;
      }
      put(sums + j, get(sums + j, part) + sum, part);
      put(squares + j, get(squares + j, part) + square, part);
    });
  }
}

template <class Element>
void apply(const Element* x, const Element* residual, const float* scale, const float* offset,
           Element* y, Index rows, Index channels) {
  for (Index i = 0; i < rows; ++i, x += channels, y += channels) {
    if (residual == nullptr) {
      each(channels, [=](Index j, Index part) {
        put(y + j, over_zero(get(x + j, part) * get(scale + j, part) + get(offset + j, part)),
            part);
      });
      continue;
    }
    each(channels, [=](Index j, Index part) {
      const Vector normal = get(x + j, part) * get(scale + j, part) + get(offset + j, part);
      put(y + j, over_zero(normal + get(residual + j, part)), part);
    });
    residual += channels;
  }
}

/// Returns the gradient where `value` is above 0 (or NaN), else 0.
Vector let_through(Vector gradient, Vector value) {
  return value <= 0.0f ? Vector{} : gradient;
}

template <class Element>
void gradient_sums(const Element* gradient, const Element* x, const Element* y, const float* scale,
                   const float* offset, const float* mean, Element* masked, float* sums,
                   float* products, Index rows, Index channels) {
  for (Index first = 0; first < rows; first += kTogether) {
    const Index together = rows - first < kTogether ? rows - first : kTogether;
    const Index begin = first * channels;
    each(channels, [=](Index j, Index part) {
      const Vector middle = get(mean + j, part);
      const Vector by = get(scale + j, part);
      const Vector from = get(offset + j, part);
      Vector sum = {};
      Vector product = {};
      for (Index i = 0; i < together; ++i) {
        const Index at = begin + i * channels + j;
        const Vector in = get(x + at, part);
        const Vector value = y == nullptr ? in * by + from : get(y + at, part);
        const Vector g = let_through(get(gradient + at, part), value);
        if (y != nullptr)
          put(masked + at, g, part);
        sum += g;
        product += g * (in - middle);
      }
      put(sums + j, get(sums + j, part) + sum, part);
      put(products + j, get(products + j, part) + product, part);
    });
  }
}

template <class Element>
void input_gradient(const Element* gradient, const Element* x, const float* scale,
                    const float* offset, const float* slope, const float* constant, Element* out,
                    Index rows, Index channels) {
  for (Index i = 0; i < rows; ++i, gradient += channels, x += channels, out += channels)
    each(channels, [=](Index j, Index part) {
      const Vector in = get(x + j, part);
      const Vector by = get(scale + j, part);
      Vector g = get(gradient + j, part);
      if (offset != nullptr)
        g = let_through(g, in * by + get(offset + j, part));
      put(out + j, g * by + in * get(slope + j, part) + get(constant + j, part), part);
    });
}

template <class Element>
constexpr ChannelKernels<Element> kernels_of = {moments<Element>, apply<Element>,
                                                gradient_sums<Element>, input_gradient<Element>};

} // namespace

extern const NormKernels norms;
const NormKernels norms = {kernels_of<float>, kernels_of<std::uint16_t>};

} // namespace troupe::learner::TROUPE_KERNELS
