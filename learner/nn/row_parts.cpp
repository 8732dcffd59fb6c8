#include "learner/nn/row_parts.hpp"

#include <algorithm>

#include <ATen/Parallel.h>
#include <torch/types.h>

#include "learner/nn/activation_probe.hpp"
#include "learner/nn/kernels/parallel.hpp"

namespace troupe::learner {
namespace {

constexpr std::int64_t kFewestRows = 64;          // of a part
constexpr std::int64_t kFewestProducts = 2 << 20; // multiplications of a part
constexpr std::int64_t kRowGrain = 32;            // parts begin at multiples of it

at::Tensor narrowed(const at::Tensor& tensor, std::int64_t first, std::int64_t count) {
  return tensor.defined() ? tensor.narrow(0, first, count) : tensor;
}

std::size_t parts_of(const std::vector<LayerTensors>& parameters, const Tape& tape) {
  const at::Tensor& output = tape.layers.back().output;
  if (!uses_kernels(output) || thread_products() == nullptr || ActivationProbe::active() != nullptr
      || at::in_parallel_region())
    return 0;
  const std::int64_t rows = output.size(0);
  std::int64_t products = 0;
  for (const LayerTensors& layer : parameters)
    products += rows * layer.weight.numel();
  const std::int64_t parts = std::min({static_cast<std::int64_t>(at::get_num_threads()),
                                       rows / kFewestRows, products / kFewestProducts});
  return parts < 2 ? 0 : static_cast<std::size_t>(parts);
}

/// Gives the thread these products while it lives, also if a pass throws.
class Borrowed {
public:
  explicit Borrowed(const ProductChoice* products) : before_(use_products(products)) {}
  ~Borrowed() { use_products(before_); }
  Borrowed(const Borrowed&) = delete;
  Borrowed& operator=(const Borrowed&) = delete;

private:
  const ProductChoice* before_;
};

/// Adds one of `parts` shares of the rows of a tensor to those of another.
void add_rows(const at::Tensor& to, const at::Tensor& from, std::size_t part, std::size_t parts) {
  if (!to.defined())
    return;
  const auto at_part = [&](std::size_t i) {
    return to.size(0) * static_cast<std::int64_t>(i) / static_cast<std::int64_t>(parts);
  };
  const std::int64_t first = at_part(part), count = at_part(part + 1) - first;
  to.narrow(0, first, count).add_(from.narrow(0, first, count));
}

} // namespace

Tape rows_of(const Tape& tape, std::int64_t first, std::int64_t count) {
  const auto part = [&](const at::Tensor& tensor) { return narrowed(tensor, first, count); };
  Tape made;
  for (const Tape::Layer& layer : tape.layers)
    made.layers.push_back({part(layer.input), part(layer.output), part(layer.normalised),
                           part(layer.inverse), part(layer.gradient), part(layer.half_input),
                           part(layer.half_gradient), layer.rounding});
  made.input_gradient = part(tape.input_gradient);
  made.extra_gradient = part(tape.extra_gradient);
  return made;
}

void split_rows(const std::vector<LayerTensors>& parameters, Tape& tape) {
  tape.used_parts = parts_of(parameters, tape);
  if (tape.used_parts == 0 || tape.parts.size() == tape.used_parts)
    return;
  tape.parts.clear();
  const std::int64_t rows = tape.output().size(0);
  const auto parts = static_cast<std::int64_t>(tape.used_parts);
  for (std::int64_t i = 0; i < parts; ++i) {
    const std::int64_t first = rows * i / parts / kRowGrain * kRowGrain;
    const std::int64_t last =
        i + 1 == parts ? rows : rows * (i + 1) / parts / kRowGrain * kRowGrain;
    tape.parts.push_back({first, last - first, rows_of(tape, first, last - first)});
  }
}

void pack_weights(const std::vector<LayerTensors>& parameters, const Tape& tape, bool transposed) {
  if (tape.used_parts == 0)
    return;
  over_threads(
      static_cast<std::int64_t>(parameters.size()), 1, [&](std::int64_t first, std::int64_t last) {
        for (auto i = static_cast<std::size_t>(first); i < static_cast<std::size_t>(last); ++i)
          if (tape.layers[i].rounding == Rounding::none)
            continue;
          else if (transposed)
            parameters[i].rounded->transposed();
          else
            parameters[i].rounded->forward();
      });
}

void over_parts(Tape& tape, const std::function<void(RowPart&)>& pass) {
  if (tape.used_parts == 0)
    return;
  const ProductChoice* const products = thread_products();
  over_threads(static_cast<std::int64_t>(tape.used_parts), 1,
               [&](std::int64_t first, std::int64_t last) {
                 const WithoutAutograd without;
                 const Borrowed borrowed(products);
                 for (std::int64_t i = first; i < last; ++i)
                   pass(tape.parts[static_cast<std::size_t>(i)]);
               });
}

std::vector<LayerTensors> gradients_of(RowPart& part, const std::vector<LayerTensors>& gradients) {
  if (part.first == 0)
    return gradients;
  part.gradients.resize(gradients.size());
  std::vector<LayerTensors> own(gradients.size());
  for (std::size_t i = 0; i < gradients.size(); ++i)
    for (at::Tensor LayerTensors::*tensor :
         {&LayerTensors::weight, &LayerTensors::bias, &LayerTensors::gain, &LayerTensors::shift})
      if ((gradients[i].*tensor).defined()) {
        if (!(part.gradients[i].*tensor).defined())
          part.gradients[i].*tensor = at::empty_like(gradients[i].*tensor);
        own[i].*tensor = part.gradients[i].*tensor;
      }
  return own;
}

void add_gradients(const Tape& tape, std::vector<LayerTensors>& gradients, bool with_weights) {
  const std::size_t parts = tape.used_parts;
  over_threads(static_cast<std::int64_t>(parts), 1, [&](std::int64_t first, std::int64_t last) {
    const WithoutAutograd without;
    for (auto share = static_cast<std::size_t>(first); share < static_cast<std::size_t>(last);
         ++share)
      for (std::size_t p = 1; p < parts; ++p)
        for (std::size_t i = 0; i < gradients.size(); ++i) {
          const LayerTensors& to = gradients[i];
          const LayerTensors& from = tape.parts[p].gradients[i];
          if (with_weights)
            add_rows(to.weight, from.weight, share, parts);
          add_rows(to.bias, from.bias, share, parts);
          add_rows(to.gain, from.gain, share, parts);
          add_rows(to.shift, from.shift, share, parts);
        }
  });
}

} // namespace troupe::learner
