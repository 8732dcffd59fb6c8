#include "collectives/backends/mpi_backend.hpp"

#include <algorithm>
#include <thread>

#include <ATen/ops/empty_like.h>

namespace troupe::collectives {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kPart = std::int64_t{1} << 30; // most elements in one MPI call
constexpr int kSpins = 200;                           // MPI tests between other checks
constexpr std::chrono::milliseconds kGrace{1000};     // a rank may complete its part, then leave

} // namespace

MpiBackend::MpiBackend(std::unique_ptr<MpiGroup> group, std::shared_ptr<ControlMesh> mesh,
                       std::unique_ptr<RendezvousServer> server, std::chrono::milliseconds timeout)
    : FlatBackend(group->rank(), group->size()),
      group_(std::move(group)),
      mesh_(std::move(mesh)),
      server_(std::move(server)),
      timeout_(timeout) {}

void MpiBackend::run(const FlatCall& call) {
  mesh_->agree(call.fingerprint);
  const at::NoGradGuard guard;
  switch (call.fingerprint.kind) {
  case Kind::all_reduce:
  case Kind::reduce_scatter:
    reduce(call);
    break;
  case Kind::barrier:
    break; // the agreement itself is the barrier
  default:
    move(call);
  }
}

void MpiBackend::reduce(const FlatCall& call) {
  const auto type = call.input.scalar_type();
  const auto wide = at::isReducedFloatingType(type) ? at::kFloat : type;
  const auto op = static_cast<ReduceOp>(call.fingerprint.op);
  const auto arithmetic = op == ReduceOp::mean ? ReduceOp::sum : op;
  const auto in = call.input.to(wide);
  auto out = at::isReducedFloatingType(type) ? at::empty_like(call.output, wide) : call.output;
  const auto* from = static_cast<const std::byte*>(in.const_data_ptr());
  auto* to = static_cast<std::byte*>(out.mutable_data_ptr());
  const auto size = static_cast<std::int64_t>(c10::elementSize(wide));
  if (call.fingerprint.kind == Kind::reduce_scatter && out.numel() > 0) {
    group_->reduce_scatter(from, to, static_cast<std::size_t>(out.numel()), wide, arithmetic);
    finish(call.fingerprint, {in, out});
  }
  for (std::int64_t begin = 0; call.fingerprint.kind == Kind::all_reduce && begin < out.numel();
       begin += kPart) {
    const auto count = static_cast<std::size_t>(std::min(kPart, out.numel() - begin));
    group_->all_reduce(from + begin * size, to + begin * size, count, wide, arithmetic);
    finish(call.fingerprint, {in, out});
  }
  if (op == ReduceOp::mean)
    out.div_(getSize());
  if (!out.is_same(call.output))
    at::Tensor(call.output).copy_(out);
}

void MpiBackend::move(const FlatCall& call) {
  const void* in = call.input.const_data_ptr();
  auto* out = static_cast<std::byte*>(call.output.mutable_data_ptr());
  const auto bytes = static_cast<std::int64_t>(call.input.nbytes());
  if (call.fingerprint.kind == Kind::broadcast) {
    for (std::int64_t begin = 0; begin < bytes; begin += kPart) {
      group_->broadcast(out + begin, static_cast<std::size_t>(std::min(kPart, bytes - begin)),
                        call.fingerprint.root);
      finish(call.fingerprint, {call.input, call.output});
    }
    return;
  }
  if (call.fingerprint.kind == Kind::all_gather)
    group_->all_gather(in, out, static_cast<std::size_t>(bytes));
  else
    group_->all_to_all(in, call.in_splits, out, call.out_splits);
  finish(call.fingerprint, {call.input, call.output});
}

void MpiBackend::finish(const Fingerprint& call, const std::vector<at::Tensor>& memory) {
  auto deadline = Clock::now() + timeout_;
  std::string error = "not complete by the deadline";
  try {
    for (;;) {
      for (int i = 0; i < kSpins; ++i)
        if (group_->done())
          return;
      if (mesh_->someone_left())
        deadline = std::min(deadline, Clock::now() + kGrace);
      if (Clock::now() >= deadline)
        break;
      std::this_thread::yield();
    }
  } catch (const CollectiveError&) { // another rank has aborted
    group_->abandon(std::make_shared<std::vector<at::Tensor>>(memory));
    throw;
  } catch (const std::runtime_error& thrown) {
    error = thrown.what();
  }
  group_->abandon(std::make_shared<std::vector<at::Tensor>>(memory));
  mesh_->data_failed(call, error);
}

} // namespace troupe::collectives
