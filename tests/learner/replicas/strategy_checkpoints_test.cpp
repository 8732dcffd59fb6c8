#include <torch/optim/adam.h>

#include "tests/doctest_torch.hpp"

#include "learner/gradients/wrapped_optimizer.hpp"
#include "learner/replicas/replicator.hpp"
#include "learner/replicas/strategy_options.hpp"

namespace troupe::learner {
namespace {

constexpr std::int64_t kPointBatch = 24;

/// Fits y = 3 x0 - 2 x1 with Adam, from other parameters on each replica.
class ResumedLine {
public:
  explicit ResumedLine(ReplicaContext& context)
      : slope_(torch::full({2, 1}, 1.0 + context.replica_id(), at::kDouble).requires_grad_()),
        optimizer_(context.wrap_optimizer(std::make_unique<torch::optim::Adam>(
            std::vector<at::Tensor>{slope_}, torch::optim::AdamOptions(0.05)))) {}
  void step(const at::Tensor& x) {
    optimizer_->zero_grad();
    (x.matmul(slope_) - x.matmul(torch::tensor({{3.0}, {-2.0}}, at::kDouble)))
        .pow(2)
        .mean()
        .backward();
    optimizer_->step();
  }
  TensorMap save() {
    auto saved = optimizer_->state();
    saved["slope"] = slope();
    return saved;
  }
  void load(const TensorMap& saved) {
    const at::NoGradGuard guard;
    slope_.copy_(saved.at("slope"));
    optimizer_->load(saved);
  }
  at::Tensor slope() const { return slope_.detach().clone(); }

private:
  at::Tensor slope_;
  std::unique_ptr<WrappedOptimizer> optimizer_;
};

Input points(const InputContext& context) {
  const auto mine = context.per_replica_batch_size(kPointBatch);
  const int parts = static_cast<int>(kPointBatch / mine);
  return [=, step = context.first_step]() mutable {
    const auto x =
        torch::sin(torch::arange(kPointBatch * 2, at::kDouble) * 1.7 + static_cast<double>(++step))
            .view({kPointBatch, 2});
    return part_of_batch({{"x", x}}, context.input_pipeline_id % parts, parts);
  };
}

/// One run of a program, from `saved` unless that is empty. Returns replica 0's checkpoint.
TensorMap run_of(const std::string& strategy, std::int64_t first_step, std::int64_t steps,
                 const TensorMap& saved) {
  Replicator replicator(make_strategy(parse_strategy(strategy)));
  const auto lines = replicator.build<ResumedLine>(
      [](ReplicaContext& context) { return std::make_shared<ResumedLine>(context); });
  const auto input = replicator.input(points, {.first_step = first_step});
  if (!saved.empty())
    replicator.call([&](ReplicaContext& context) {
      lines.of(context).load(saved);
      return TensorMap{};
    });
  replicator.call([&](ReplicaContext& context) {
    for (std::int64_t i = 0; i < steps; ++i)
      lines.of(context).step(input->next(context).at("x"));
    return TensorMap{};
  });
  return lines[0].save();
}

} // namespace

TEST_CASE("A program resumes from its checkpoint under strategies whose parameters it serves") {
  for (const std::string strategy :
       {"mirrored replicas=2", "central_storage replicas=2", "parameter_server replicas=1",
        "sync_groups replicas=4 sync_groups=1", "backup_workers replicas=2 backup_workers=0"}) {
    CAPTURE(strategy);
    const auto whole = run_of(strategy, 0, 20, {});
    const auto half = run_of(strategy, 0, 10, {});
    CHECK_FALSE(half.at("slope").allclose(whole.at("slope"), 1e-3, 1e-3));
    const auto resumed = run_of(strategy, 10, 10, half);
    CHECK(resumed.at("slope").allclose(whole.at("slope"), 1e-12, 1e-12));
  }
}

TEST_CASE("A checkpoint without the servers' part is refused where a program serves parameters") {
  const auto alone = run_of("one_device", 0, 3, {});
  CHECK_THROWS_WITH_AS(
      run_of("central_storage replicas=2", 3, 3, alone),
      doctest::Contains("lacks the parameters and moments of the parameter servers"), ReplicaError);
}

} // namespace troupe::learner
