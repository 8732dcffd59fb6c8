#include "tests/doctest_torch.hpp"

#include "actors/roles/learner_evaluation.hpp"

#include "actors/protocol/messages.pb.h"
#include "learner/replicas/replica.hpp"
#include "learner/replicas/replica_context.hpp"

using namespace troupe;
using namespace troupe::actors;

namespace {

class Painter : public learner::Replica {
public:
  explicit Painter(at::Tensor picture) : picture_(std::move(picture)) {}
  void build(learner::ReplicaContext&) override {}
  learner::Input input_fn(const learner::InputContext&) override { return {}; }
  learner::Metrics step_fn(learner::ReplicaContext&, const learner::TensorMap&) override {
    return {};
  }
  learner::TensorMap parameters() override { return {}; }
  learner::TensorMap optimizer_state() override { return {}; }
  void load(const learner::TensorMap&, const learner::TensorMap&) override {}
  learner::Metrics evaluate(learner::ReplicaContext&) override { return {{"top1", 0.5}}; }
  learner::TensorMap pictures() override { return {{"samples", picture_}}; }

private:
  at::Tensor picture_;
};

} // namespace

TEST_CASE(
    "An evaluation contains the replica's metrics and, on request, its pictures in row order") {
  learner::ReplicaContext context(nullptr, 1);
  Painter painter(at::arange(12, at::kByte).view({3, 1, 4}));
  CHECK(evaluated(painter, context, false).pictures().empty());
  const wire::LearnerEvaluation made = evaluated(painter, context, true);
  CHECK(made.metrics().at("top1") == 0.5);
  REQUIRE(made.pictures_size() == 1);
  CHECK(made.pictures(0).name() == "samples");
  CHECK(made.pictures(0).height() == 1);
  CHECK(made.pictures(0).width() == 4);
  CHECK(made.pictures(0).rgb() == std::string("\0\4\10\1\5\11\2\6\12\3\7\13", 12));
}

TEST_CASE("A picture of the wrong type or shape is refused, and the error names it") {
  learner::ReplicaContext context(nullptr, 1);
  for (const at::Tensor& picture : {at::zeros({3, 2, 2}), at::zeros({2, 2, 3}, at::kByte)}) {
    Painter painter(picture);
    CHECK_THROWS_WITH_AS(evaluated(painter, context, true), doctest::Contains("\"samples\""),
                         std::runtime_error);
  }
}
