#include "collectives/backends/flat_backend.hpp"

#include <algorithm>
#include <numeric>

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

namespace troupe::collectives {
namespace {

/// Copies `flat` back into `tensor` if that tensor was not contiguous.
void give_back(const at::Tensor& flat, at::Tensor& tensor) {
  if (!flat.is_same(tensor)) {
    const at::NoGradGuard guard;
    tensor.copy_(flat);
  }
}

} // namespace

void FlatBackend::require(bool held, Kind kind, const std::string& rule) {
  if (!held)
    refuse(kind, rule);
}

void FlatBackend::call(Fingerprint fingerprint, const at::Tensor& input, const at::Tensor& output) {
  fingerprint.sequence = sequence_++;
  run({fingerprint, input, output, in_splits_, out_splits_});
}

FlatBackend::Work FlatBackend::allreduce(std::vector<at::Tensor>& tensors,
                                         const c10d::AllreduceOptions& options) {
  auto& tensor = only(tensors, Kind::all_reduce);
  const auto op = operation(options.reduceOp, tensor, Kind::all_reduce);
  const auto flat = tensor.contiguous();
  call(fingerprint_of(Kind::all_reduce, tensor, static_cast<int>(op)), flat, flat);
  give_back(flat, tensor);
  return done_work(tensors);
}

FlatBackend::Work FlatBackend::broadcast(std::vector<at::Tensor>& tensors,
                                         const c10d::BroadcastOptions& options) {
  auto& tensor = only(tensors, Kind::broadcast);
  const auto root = root_of(options.rootRank, Kind::broadcast);
  const auto flat = tensor.contiguous();
  call(fingerprint_of(Kind::broadcast, tensor, Fingerprint::kNoOp, root), flat, flat);
  give_back(flat, tensor);
  return done_work(tensors);
}

FlatBackend::Work FlatBackend::_allgather_base(at::Tensor& output, at::Tensor& input,
                                               const c10d::AllgatherOptions&) {
  require(output.is_contiguous() && output.scalar_type() == input.scalar_type()
              && output.numel() == input.numel() * getSize(),
          Kind::all_gather,
          "the output must be contiguous, of the input's type and as large as all inputs");
  std::vector<at::Tensor> inputs{input};
  call(fingerprint_of(Kind::all_gather, only(inputs, Kind::all_gather)), input.contiguous(),
       output);
  return done_work({output});
}

FlatBackend::Work FlatBackend::allgather(std::vector<std::vector<at::Tensor>>& outputs,
                                         std::vector<at::Tensor>& inputs,
                                         const c10d::AllgatherOptions& options) {
  auto& input = only(inputs, Kind::all_gather);
  require(outputs.size() == 1 && outputs[0].size() == static_cast<std::size_t>(getSize()),
          Kind::all_gather, "it takes one list with an output per rank");
  for (const auto& output : outputs[0])
    require(output.sizes() == input.sizes() && output.scalar_type() == input.scalar_type(),
            Kind::all_gather, "every output must have the input's shape and type");
  auto flat = at::empty({getSize() * input.numel()}, input.options().requires_grad(false));
  _allgather_base(flat, input, options);
  const at::NoGradGuard guard;
  for (std::size_t i = 0; i < outputs[0].size(); ++i)
    outputs[0][i].copy_(flat.narrow(0, static_cast<std::int64_t>(i) * input.numel(), input.numel())
                            .view(input.sizes()));
  return done_work(outputs[0]);
}

FlatBackend::Work FlatBackend::_reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                                                    const c10d::ReduceScatterOptions& options) {
  const auto op = operation(options.reduceOp, input, Kind::reduce_scatter);
  require(output.is_contiguous() && output.scalar_type() == input.scalar_type()
              && output.numel() * getSize() == input.numel(),
          Kind::reduce_scatter,
          "the output must be contiguous, of the input's type and as large as one rank's share");
  std::vector<at::Tensor> inputs{input};
  call(fingerprint_of(Kind::reduce_scatter, only(inputs, Kind::reduce_scatter),
                      static_cast<int>(op)),
       input.contiguous(), output);
  return done_work({output});
}

FlatBackend::Work FlatBackend::reduce_scatter(std::vector<at::Tensor>& outputs,
                                              std::vector<std::vector<at::Tensor>>& inputs,
                                              const c10d::ReduceScatterOptions& options) {
  auto& output = only(outputs, Kind::reduce_scatter);
  require(inputs.size() == 1 && inputs[0].size() == static_cast<std::size_t>(getSize()),
          Kind::reduce_scatter, "it takes one list with an input per rank");
  for (const auto& input : inputs[0])
    require(input.sizes() == output.sizes() && input.scalar_type() == output.scalar_type(),
            Kind::reduce_scatter, "every input must have the output's shape and type");
  const at::NoGradGuard guard;
  std::vector<at::Tensor> rows;
  for (const auto& input : inputs[0])
    rows.push_back(input.reshape({-1}));
  auto flat = at::cat(rows);
  auto result = output.contiguous();
  _reduce_scatter_base(result, flat, options);
  give_back(result, output);
  return done_work(outputs);
}

void FlatBackend::set_splits(const at::Tensor& output, const at::Tensor& input,
                             const std::vector<int64_t>& output_splits,
                             const std::vector<int64_t>& input_splits) {
  const auto fill = [&](const at::Tensor& tensor, const std::vector<int64_t>& splits,
                        std::vector<std::size_t>& bytes) {
    const auto ranks = static_cast<std::size_t>(getSize());
    const auto rows = tensor.dim() > 0 ? tensor.size(0) : 1;
    if (splits.empty()) {
      require(rows % getSize() == 0, Kind::all_to_all,
              std::to_string(rows) + " rows cannot be split evenly over the ranks; give splits");
      bytes.assign(ranks, tensor.nbytes() / ranks);
      return;
    }
    const auto sum = std::accumulate(splits.begin(), splits.end(), std::int64_t{0});
    require(splits.size() == ranks && sum == rows
                && std::all_of(splits.begin(), splits.end(), [](auto n) { return n >= 0; }),
            Kind::all_to_all, "the splits must be one per rank and add up to the rows");
    const auto row = rows > 0 ? tensor.nbytes() / static_cast<std::size_t>(rows) : 0;
    bytes.resize(ranks);
    for (std::size_t i = 0; i < ranks; ++i)
      bytes[i] = static_cast<std::size_t>(splits[i]) * row;
  };
  fill(output, output_splits, out_splits_);
  fill(input, input_splits, in_splits_);
  const auto own = static_cast<std::size_t>(getRank());
  require(in_splits_[own] == out_splits_[own], Kind::all_to_all,
          "the input has " + std::to_string(in_splits_[own]) + " bytes for this rank itself, the "
              + "output " + std::to_string(out_splits_[own])
              + "; make both tensors equally large, or their splits for this rank equal");
}

FlatBackend::Work FlatBackend::alltoall_base(at::Tensor& output, at::Tensor& input,
                                             std::vector<int64_t>& output_splits,
                                             std::vector<int64_t>& input_splits,
                                             const c10d::AllToAllOptions&) {
  std::vector<at::Tensor> inputs{input};
  only(inputs, Kind::all_to_all);
  require(output.is_contiguous() && output.scalar_type() == input.scalar_type(), Kind::all_to_all,
          "the output must be contiguous and of the input's type");
  set_splits(output, input, output_splits, input_splits);
  auto fingerprint = fingerprint_of(Kind::all_to_all, input);
  if (!output_splits.empty() || !input_splits.empty()) {
    fingerprint.dimensions = Fingerprint::kNoShape;
    fingerprint.shape = {};
  }
  call(fingerprint, input.contiguous(), output);
  return done_work({output});
}

FlatBackend::Work FlatBackend::alltoall(std::vector<at::Tensor>& outputs,
                                        std::vector<at::Tensor>& inputs,
                                        const c10d::AllToAllOptions& options) {
  require(inputs.size() == static_cast<std::size_t>(getSize()) && outputs.size() == inputs.size(),
          Kind::all_to_all, "it takes one input and one output per rank");
  const at::NoGradGuard guard;
  std::vector<at::Tensor> rows;
  std::vector<int64_t> sent, taken;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    require(inputs[i].scalar_type() == inputs[0].scalar_type()
                && outputs[i].scalar_type() == inputs[0].scalar_type(),
            Kind::all_to_all, "all tensors must be of one type");
    rows.push_back(inputs[i].reshape({-1}));
    sent.push_back(inputs[i].numel());
    taken.push_back(outputs[i].numel());
  }
  auto input = at::cat(rows);
  auto output =
      at::empty({std::accumulate(taken.begin(), taken.end(), std::int64_t{0})}, input.options());
  alltoall_base(output, input, taken, sent, options);
  std::int64_t begin = 0;
  for (auto& tensor : outputs) {
    tensor.copy_(output.narrow(0, begin, tensor.numel()).view(tensor.sizes()));
    begin += tensor.numel();
  }
  return done_work(outputs);
}

FlatBackend::Work FlatBackend::reduce(std::vector<at::Tensor>& tensors,
                                      const c10d::ReduceOptions& options) {
  auto& tensor = only(tensors, Kind::all_reduce);
  const auto op = operation(options.reduceOp, tensor, Kind::all_reduce);
  const auto root = root_of(options.rootRank, Kind::all_reduce);
  const auto flat = tensor.contiguous();
  const auto result = root == getRank() ? flat : at::empty_like(flat);
  call(fingerprint_of(Kind::all_reduce, tensor, static_cast<int>(op), root), flat, result);
  if (root == getRank())
    give_back(flat, tensor);
  return done_work(tensors);
}

FlatBackend::Work FlatBackend::gather(std::vector<std::vector<at::Tensor>>& outputs,
                                      std::vector<at::Tensor>& inputs,
                                      const c10d::GatherOptions& options) {
  auto& input = only(inputs, Kind::all_gather);
  const auto root = root_of(options.rootRank, Kind::all_gather);
  const auto ranks = static_cast<std::size_t>(getSize());
  require(root == getRank() ? outputs.size() == 1 && outputs[0].size() == ranks : outputs.empty(),
          Kind::all_gather, "it takes one list with an output per rank, at the root only");
  const auto flat = at::empty({getSize(), input.numel()}, input.options().requires_grad(false));
  call(fingerprint_of(Kind::all_gather, input, Fingerprint::kNoOp, root), input.contiguous(), flat);
  if (root != getRank())
    return done_work({});
  const at::NoGradGuard guard;
  for (std::size_t i = 0; i < ranks; ++i)
    outputs[0][i].copy_(flat[static_cast<std::int64_t>(i)].view(input.sizes()));
  return done_work(outputs[0]);
}

FlatBackend::Work FlatBackend::scatter(std::vector<at::Tensor>& outputs,
                                       std::vector<std::vector<at::Tensor>>& inputs,
                                       const c10d::ScatterOptions& options) {
  auto& output = only(outputs, Kind::broadcast);
  const auto root = root_of(options.rootRank, Kind::broadcast);
  const auto ranks = static_cast<std::size_t>(getSize());
  require(root == getRank() ? inputs.size() == 1 && inputs[0].size() == ranks : inputs.empty(),
          Kind::broadcast, "it takes one list with an input per rank, at the root only");
  const at::NoGradGuard guard;
  auto sizes = output.sizes().vec();
  sizes.insert(sizes.begin(), getSize());
  auto all = at::empty(sizes, output.options().requires_grad(false));
  if (root == getRank())
    for (std::size_t i = 0; i < ranks; ++i)
      all[static_cast<std::int64_t>(i)].copy_(inputs[0][i]);
  call(fingerprint_of(Kind::broadcast, all, Fingerprint::kNoOp, root), all, all);
  output.copy_(all[getRank()]);
  return done_work(outputs);
}

FlatBackend::Work FlatBackend::barrier(const c10d::BarrierOptions&) {
  call(Fingerprint{}, {}, {});
  return done_work({});
}

} // namespace troupe::collectives
