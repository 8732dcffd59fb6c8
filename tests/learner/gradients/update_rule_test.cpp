#include <torch/optim/sgd.h>

#include "tests/doctest_torch.hpp"

#include "learner/gradients/update_rule.hpp"
#include "learner/gradients/wrapped_optimizer.hpp"
#include "learner/replicas/replica_context.hpp"
#include "tests/text.hpp"

namespace troupe::learner {
namespace {

/// Subtracts the gradient, and remembers the optimizer.
class Subtract : public UpdateRule {
public:
  explicit Subtract(std::vector<int>& begun, int number) : begun_(&begun), number_(number) {}
  void begin(torch::optim::Optimizer&, const std::vector<at::Tensor>& parameters) override {
    begun_->push_back(number_);
    parameters_ = parameters;
  }
  void update() override {
    const at::NoGradGuard guard;
    for (auto& parameter : parameters_)
      parameter.sub_(parameter.grad());
  }
  std::int64_t updates_applied() const override { return 3 + number_; }

private:
  std::vector<int>* begun_;
  int number_;
  std::vector<at::Tensor> parameters_;
};

std::unique_ptr<torch::optim::Optimizer> sgd_of(const at::Tensor& parameter) {
  return std::make_unique<torch::optim::SGD>(std::vector<at::Tensor>{parameter},
                                             torch::optim::SGDOptions(1000));
}

} // namespace

TEST_CASE("An assignment's rule gets the clipped gradients and makes the update, one rule per "
          "optimizer") {
  std::vector<int> begun;
  ReplicaContext context(ReplicaAssignment{
      .update_rule = [&](int number) { return std::make_unique<Subtract>(begun, number); }});
  auto first = torch::zeros({2}).requires_grad_();
  auto second = torch::zeros({1}).requires_grad_();
  const auto a = context.wrap_optimizer(sgd_of(first));
  const auto b = context.wrap_optimizer(sgd_of(second), {.max_gradient_norm = 1});
  CHECK(begun == std::vector<int>{0, 1});
  (first.sum() + 5 * second.sum()).backward();
  CHECK(a->updates_applied() == 0);
  a->step();
  b->step();
  CHECK(a->updates_applied() == 3);
  CHECK(b->updates_applied() == 4);
  CHECK(first.equal(torch::full({2}, -1.0)));
  CHECK(second.item<double>() == doctest::Approx(-1));
  CHECK(b->gradient_norm() == doctest::Approx(5));
}

TEST_CASE("An assignment identifies the replica and its sync group") {
  const ReplicaContext context(
      ReplicaAssignment{.replica_id = 5, .num_replicas = 8, .sync_group = 2, .num_sync_groups = 4});
  CHECK(context.replica_id() == 5);
  CHECK(context.num_replicas() == 8);
  CHECK(context.sync_group() == 2);
  CHECK(context.num_sync_groups() == 4);
  CHECK(context.num_replicas_in_sync() == 1);
}

TEST_CASE("A schedule under a rule scales with the replicas that form an update") {
  std::vector<int> begun;
  ReplicaContext context(
      ReplicaAssignment{.num_replicas = 4, .replicas_in_sync = 4, .update_rule = [&](int number) {
                          return std::make_unique<Subtract>(begun, number);
                        }});
  const auto optimizer = context.wrap_optimizer(sgd_of(torch::zeros({2})),
                                                {.schedules = {{.scale_by_replicas = true}}});
  CHECK(optimizer->next_learning_rates().at(0) == doctest::Approx(4000));
}

TEST_CASE("Options of the average over replicas are refused under a rule") {
  std::vector<int> begun;
  ReplicaContext context(ReplicaAssignment{
      .update_rule = [&](int number) { return std::make_unique<Subtract>(begun, number); }});
  const auto message = [&](const WrappedOptimizerOptions& options) {
    return error_of<std::invalid_argument>(
        [&] { context.wrap_optimizer(sgd_of(torch::zeros({2})), options); });
  };
  CHECK(message({.operation = GradientOperation::sum}).starts_with("operation: only for replicas"));
  CHECK(message({.compression = {.kind = CompressionKind::fp16}}).starts_with("compression: "));
  CHECK(message({.join_mean_over_all = true}).starts_with("join_mean_over_all: "));
  CHECK(message({.shard_optimizer_state = true}).starts_with("shard_optimizer_state: "));
  CHECK(begun.empty());
}

} // namespace troupe::learner
