#include "learner/replicas/differentiable.hpp"

#include <stdexcept>

#include <torch/csrc/autograd/custom_function.h>

#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

namespace troupe::learner {
namespace {

using collectives::Communicator;
using collectives::ReduceOp;
using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

/// Saves the communicator's address as a number, because autograd cannot save pointers. The
/// communicator outlives its replica's graphs.
void keep(AutogradContext* context, Communicator& communicator, std::int64_t number) {
  context->saved_data["communicator"] =
      static_cast<std::int64_t>(reinterpret_cast<std::intptr_t>(&communicator));
  context->saved_data["number"] = number;
}

Communicator& communicator_of(AutogradContext* context) {
  return *reinterpret_cast<Communicator*>(
      static_cast<std::intptr_t>(context->saved_data["communicator"].toInt()));
}

std::int64_t number_of(AutogradContext* context) {
  return context->saved_data["number"].toInt();
}

at::Tensor all_reduced(Communicator& communicator, const at::Tensor& tensor, ReduceOp op) {
  auto result = tensor.detach().clone(at::MemoryFormat::Contiguous);
  communicator.all_reduce(result, op);
  return result;
}

[[noreturn]] void no_derivative(const char* what) {
  throw std::invalid_argument(std::string(what)
                              + " has no derivative; detach() its argument, or use sum or mean");
}

struct AllReduce : Function<AllReduce> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& tensor,
                            Communicator* communicator, std::int64_t op) {
    keep(context, *communicator, op);
    auto result = all_reduced(*communicator, tensor, static_cast<ReduceOp>(op));
    if (const auto kind = static_cast<ReduceOp>(op); kind == ReduceOp::min || kind == ReduceOp::max)
      context->save_for_backward({tensor, result});
    return result;
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    auto& communicator = communicator_of(context);
    const auto& gradient = gradients[0];
    at::Tensor result;
    switch (static_cast<ReduceOp>(number_of(context))) {
    case ReduceOp::sum:
      result = all_reduced(communicator, gradient, ReduceOp::sum);
      break;
    case ReduceOp::mean:
      result = all_reduced(communicator, gradient, ReduceOp::mean);
      break;
    case ReduceOp::first:
      result = all_reduced(communicator, gradient, ReduceOp::sum);
      if (communicator.rank() != 0)
        result.zero_();
      break;
    case ReduceOp::min:
    case ReduceOp::max: {
      const auto saved = context->get_saved_variables();
      const auto attains = saved[0].eq(saved[1]).to(gradient.scalar_type());
      result = all_reduced(communicator, gradient, ReduceOp::sum) * attains
               / all_reduced(communicator, attains, ReduceOp::sum);
      break;
    }
    case ReduceOp::product:
      no_derivative("all_reduce product");
    }
    return {result, at::Tensor(), at::Tensor()};
  }
};

struct AllGather : Function<AllGather> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& tensor,
                            Communicator* communicator) {
    keep(context, *communicator, 0);
    return at::stack(communicator->all_gather(tensor));
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    auto mine = communicator_of(context).reduce_scatter(gradients[0].contiguous(), ReduceOp::sum);
    return {mine.squeeze(0), at::Tensor()};
  }
};

struct ReduceScatter : Function<ReduceScatter> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& tensor,
                            Communicator* communicator, std::int64_t op) {
    keep(context, *communicator, op);
    return communicator->reduce_scatter(tensor, static_cast<ReduceOp>(op));
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    auto& communicator = communicator_of(context);
    const auto op = static_cast<ReduceOp>(number_of(context));
    if (op != ReduceOp::sum && op != ReduceOp::mean)
      no_derivative("reduce_scatter of min, max and product");
    auto result = at::stack(communicator.all_gather(gradients[0])).flatten(0, 1);
    if (op == ReduceOp::mean)
      result.div_(communicator.size());
    return {result, at::Tensor(), at::Tensor()};
  }
};

struct Broadcast : Function<Broadcast> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& tensor,
                            Communicator* communicator, std::int64_t root) {
    keep(context, *communicator, root);
    auto result = tensor.detach().clone(at::MemoryFormat::Contiguous);
    communicator->broadcast(result, static_cast<int>(root));
    return result;
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    auto& communicator = communicator_of(context);
    auto result = all_reduced(communicator, gradients[0], ReduceOp::sum);
    if (communicator.rank() != number_of(context))
      result.zero_();
    return {result, at::Tensor(), at::Tensor()};
  }
};

at::Tensor all_to_all(Communicator& communicator, const at::Tensor& tensor) {
  return at::stack(communicator.all_to_all(tensor.detach().unbind(0)));
}

struct AllToAll : Function<AllToAll> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& tensor,
                            Communicator* communicator) {
    keep(context, *communicator, 0);
    return all_to_all(*communicator, tensor);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    return {all_to_all(communicator_of(context), gradients[0].contiguous()), at::Tensor()};
  }
};

} // namespace

at::Tensor reduced(Communicator& communicator, const at::Tensor& tensor, ReduceOp op) {
  return AllReduce::apply(tensor, &communicator, static_cast<std::int64_t>(op));
}

at::Tensor gathered(Communicator& communicator, const at::Tensor& tensor) {
  return AllGather::apply(tensor, &communicator);
}

at::Tensor scattered(Communicator& communicator, const at::Tensor& tensor, ReduceOp op) {
  return ReduceScatter::apply(tensor, &communicator, static_cast<std::int64_t>(op));
}

at::Tensor broadcasted(Communicator& communicator, const at::Tensor& tensor, int root) {
  return Broadcast::apply(tensor, &communicator, static_cast<std::int64_t>(root));
}

at::Tensor exchanged(Communicator& communicator, const at::Tensor& tensor) {
  return AllToAll::apply(tensor, &communicator);
}

} // namespace troupe::learner
