#include "collectives/backends/checked_backend.hpp"

#include <algorithm>

namespace troupe::collectives {
namespace {

using std::chrono::milliseconds;

/// Wraps the inner backend's work. If it fails, the group is poisoned.
class CheckedWork : public c10d::Work {
public:
  CheckedWork(c10::intrusive_ptr<c10d::Work> inner, std::shared_ptr<ControlMesh> mesh,
              const Fingerprint& call)
      : inner_(std::move(inner)), mesh_(std::move(mesh)), call_(call) {}

  bool isCompleted() override { return inner_->isCompleted(); }
  bool isSuccess() const override { return inner_->isSuccess(); }
  std::exception_ptr exception() const override { return inner_->exception(); }
  std::vector<at::Tensor> result() override { return inner_->result(); }
  void synchronize() override { inner_->synchronize(); }
  void abort() override { inner_->abort(); }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override { return inner_->getFuture(); }

  bool wait(milliseconds timeout) override {
    try {
      return inner_->wait(timeout);
    } catch (const CollectiveError&) {
      throw;
    } catch (const std::exception& error) {
      mesh_->data_failed(call_, error.what());
    }
  }

private:
  c10::intrusive_ptr<c10d::Work> inner_;
  std::shared_ptr<ControlMesh> mesh_;
  Fingerprint call_;
};

} // namespace

CheckedBackend::CheckedBackend(c10::intrusive_ptr<c10d::Backend> inner,
                               std::shared_ptr<ControlMesh> mesh, c10::DeviceType device)
    : GuardedBackend(inner->getRank(), inner->getSize()),
      inner_(std::move(inner)),
      mesh_(std::move(mesh)),
      device_(device) {}

void CheckedBackend::poison(const std::string& message) {
  mesh_->abort(message);
}

template <class Start>
CheckedBackend::Work CheckedBackend::checked(const Fingerprint& agreed, Start start) {
  Work inner;
  try {
    inner = start();
  } catch (const std::exception& error) {
    mesh_->data_failed(agreed, error.what());
  }
  return c10::make_intrusive<CheckedWork>(std::move(inner), mesh_, agreed);
}

template <class Start>
CheckedBackend::Work CheckedBackend::start(const Fingerprint& call, std::vector<at::Tensor> result,
                                           Start start) {
  const auto agreed = mesh_->agree(call);
  // In an uneven exchange, other ranks may have data even if this one receives none.
  const bool uneven = call.dimensions == Fingerprint::kNoShape;
  if (!uneven
      && std::all_of(result.begin(), result.end(), [](const auto& t) { return t.numel() == 0; }))
    return done_work(std::move(result));
  return checked(agreed, start);
}

CheckedBackend::Work CheckedBackend::allreduce(std::vector<at::Tensor>& tensors,
                                               const c10d::AllreduceOptions& options) {
  auto& tensor = only(tensors, Kind::all_reduce);
  const auto op = operation(options.reduceOp, tensor, Kind::all_reduce);
  return start(fingerprint_of(Kind::all_reduce, tensor, static_cast<int>(op)), tensors,
               [&] { return inner_->allreduce(tensors, options); });
}

CheckedBackend::Work CheckedBackend::broadcast(std::vector<at::Tensor>& tensors,
                                               const c10d::BroadcastOptions& options) {
  auto& tensor = only(tensors, Kind::broadcast);
  const auto root = root_of(options.rootRank, Kind::broadcast);
  return start(fingerprint_of(Kind::broadcast, tensor, Fingerprint::kNoOp, root), tensors,
               [&] { return inner_->broadcast(tensors, options); });
}

CheckedBackend::Work CheckedBackend::allgather(std::vector<std::vector<at::Tensor>>& outputs,
                                               std::vector<at::Tensor>& inputs,
                                               const c10d::AllgatherOptions& options) {
  auto& input = only(inputs, Kind::all_gather);
  if (outputs.size() != 1 || outputs[0].size() != static_cast<std::size_t>(getSize()))
    refuse(Kind::all_gather, "it takes one list with an output per rank");
  return start(fingerprint_of(Kind::all_gather, input), outputs[0],
               [&] { return inner_->allgather(outputs, inputs, options); });
}

CheckedBackend::Work CheckedBackend::_allgather_base(at::Tensor& output, at::Tensor& input,
                                                     const c10d::AllgatherOptions& options) {
  std::vector<at::Tensor> inputs{input};
  return start(
      fingerprint_of(Kind::all_gather, only(inputs, Kind::all_gather)), {output},
      [&] { // flattened because LibTorch treats the first dimension as ranks, even with one rank
        auto from = input.contiguous().view({-1});
        auto to = output.view({-1});
        return inner_->_allgather_base(to, from, options);
      });
}

CheckedBackend::Work
CheckedBackend::_reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                                     const c10d::ReduceScatterOptions& options) {
  std::vector<at::Tensor> inputs{input};
  only(inputs, Kind::reduce_scatter);
  const auto op = operation(options.reduceOp, input, Kind::reduce_scatter);
  return start(fingerprint_of(Kind::reduce_scatter, input, static_cast<int>(op)), {output},
               [&] { return inner_->_reduce_scatter_base(output, input, options); });
}

CheckedBackend::Work CheckedBackend::alltoall_base(at::Tensor& output, at::Tensor& input,
                                                   std::vector<int64_t>& output_splits,
                                                   std::vector<int64_t>& input_splits,
                                                   const c10d::AllToAllOptions& options) {
  std::vector<at::Tensor> inputs{input};
  auto call = fingerprint_of(Kind::all_to_all, only(inputs, Kind::all_to_all));
  if (!output_splits.empty() || !input_splits.empty()) {
    call.dimensions = Fingerprint::kNoShape;
    call.shape = {};
  }
  return start(call, {output}, [&] {
    return inner_->alltoall_base(output, input, output_splits, input_splits, options);
  });
}

CheckedBackend::Work CheckedBackend::reduce(std::vector<at::Tensor>& tensors,
                                            const c10d::ReduceOptions& options) {
  auto& tensor = only(tensors, Kind::all_reduce);
  const auto op = operation(options.reduceOp, tensor, Kind::all_reduce);
  const auto root = root_of(options.rootRank, Kind::all_reduce);
  return start(fingerprint_of(Kind::all_reduce, tensor, static_cast<int>(op), root), tensors,
               [&] { return inner_->reduce(tensors, options); });
}

CheckedBackend::Work CheckedBackend::gather(std::vector<std::vector<at::Tensor>>& outputs,
                                            std::vector<at::Tensor>& inputs,
                                            const c10d::GatherOptions& options) {
  auto& input = only(inputs, Kind::all_gather);
  const auto root = root_of(options.rootRank, Kind::all_gather);
  return start(fingerprint_of(Kind::all_gather, input, Fingerprint::kNoOp, root), {input},
               [&] { return inner_->gather(outputs, inputs, options); });
}

CheckedBackend::Work CheckedBackend::scatter(std::vector<at::Tensor>& outputs,
                                             std::vector<std::vector<at::Tensor>>& inputs,
                                             const c10d::ScatterOptions& options) {
  auto& output = only(outputs, Kind::broadcast);
  const auto root = root_of(options.rootRank, Kind::broadcast);
  return start(fingerprint_of(Kind::broadcast, output, Fingerprint::kNoOp, root), outputs,
               [&] { return inner_->scatter(outputs, inputs, options); });
}

CheckedBackend::Work CheckedBackend::barrier(const c10d::BarrierOptions& options) {
  return checked(mesh_->agree(Fingerprint{}), [&] { return inner_->barrier(options); });
}

} // namespace troupe::collectives
