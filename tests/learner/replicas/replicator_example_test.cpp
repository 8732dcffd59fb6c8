#include <ATen/CPUGeneratorImpl.h>
#include <torch/nn.h>
#include <torch/optim/adam.h>

#include "tests/doctest_torch.hpp"

// [example]
#include "learner/gradients/wrapped_optimizer.hpp"
#include "learner/replicas/replicator.hpp"

namespace {

using namespace troupe::learner;

/// Fits y = 3 x on a batch that is spread over the replicas.
class Line : public Replica {
public:
  void build(ReplicaContext& context) override {
    slope_ = torch::zeros({1}).requires_grad_();
    optimizer_ = context.wrap_optimizer(std::make_unique<torch::optim::Adam>(
        std::vector<at::Tensor>{slope_}, torch::optim::AdamOptions(0.1)));
  }

  Input input_fn(const InputContext& context) override {
    const auto rows = context.per_replica_batch_size(64);
    const auto seed = 100 + static_cast<std::uint64_t>(context.input_pipeline_id);
    return [=, generator = at::make_generator<at::CPUGeneratorImpl>(seed)]() mutable {
      return TensorMap{{"x", torch::randn({rows}, generator)}};
    };
  }

  Metrics step_fn(ReplicaContext&, const TensorMap& batch) override {
    optimizer_->zero_grad();
    const auto& x = batch.at("x");
    const auto loss = (slope_ * x - 3 * x).pow(2).mean();
    loss.backward();
    optimizer_->step(); // the gradients are averaged over the replicas first
    return {{"loss", loss.item<double>()}};
  }

  TensorMap parameters() override { return {{"slope", slope_}}; }
  TensorMap optimizer_state() override { return {}; }
  void load(const TensorMap& parameters, const TensorMap&) override {
    const at::NoGradGuard guard;
    slope_.copy_(parameters.at("slope"));
  }

private:
  at::Tensor slope_;
  std::unique_ptr<WrappedOptimizer> optimizer_;
};

} // namespace

TEST_CASE("The README's example fits a line with two replicas") {
  Replicator replicator(make_mirrored_strategy(2));
  ReplicaProgram program(replicator, [] { return std::make_unique<Line>(); });
  const auto reports = program.run(200); // per replica: steps, last and mean metrics
  CHECK(reports[0].last.at("loss") < 0.01);
  CHECK(program.replica(1).parameters().at("slope").item<float>()
        == doctest::Approx(3).epsilon(0.05));
}
// [example]
