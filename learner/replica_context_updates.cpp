// Of a ReplicaContext: its optimizers, and the rules by which they exchange.
#include <algorithm>
#include <utility>

#include <torch/optim/optimizer.h>

#include "learner/replica_context.hpp"
#include "learner/update_rule.hpp"
#include "learner/wrapped_optimizer.hpp"

namespace troupe::learner {
namespace {

/// The rule of an optimizer, of which the context knows as long as it lives.
class SharedRule : public UpdateRule {
public:
  explicit SharedRule(std::shared_ptr<UpdateRule> rule) : rule_(std::move(rule)) {}
  void begin(torch::optim::Optimizer& optimizer,
             const std::vector<at::Tensor>& parameters) override {
    rule_->begin(optimizer, parameters);
  }
  void update() override { rule_->update(); }
  std::int64_t advanced() const override { return rule_->advanced(); }
  void rest() override { rule_->rest(); }
  void loaded() override { rule_->loaded(); }
  Metrics metrics() const override { return rule_->metrics(); }
  const std::shared_ptr<UpdateRule>& rule() const { return rule_; }

private:
  std::shared_ptr<UpdateRule> rule_;
};

} // namespace

std::unique_ptr<WrappedOptimizer>
ReplicaContext::wrap_optimizer(std::unique_ptr<torch::optim::Optimizer> optimizer) {
  return wrap_optimizer(std::move(optimizer), WrappedOptimizerOptions{});
}

std::unique_ptr<WrappedOptimizer>
ReplicaContext::wrap_optimizer(std::unique_ptr<torch::optim::Optimizer> optimizer,
                               const WrappedOptimizerOptions& options) {
  const int number = optimizers_++;
  auto with_timeline = options;
  if (!with_timeline.timeline)
    with_timeline.timeline = seat_.timeline;
  std::unique_ptr<UpdateRule> rule;
  if (seat_.update_rule) {
    auto made = std::make_unique<SharedRule>(seat_.update_rule(number));
    rules_.push_back(made->rule());
    rule = std::move(made);
  }
  return std::make_unique<WrappedOptimizer>(std::move(optimizer), seat_.communicator, with_timeline,
                                            std::move(rule));
}

void ReplicaContext::rest() {
  for (const auto& rule : rules_)
    if (const auto alive = rule.lock())
      alive->rest();
}

void ReplicaContext::loaded() {
  for (const auto& rule : rules_)
    if (const auto alive = rule.lock())
      alive->loaded();
}

Metrics ReplicaContext::metrics() const {
  Metrics all;
  for (const auto& rule : rules_)
    if (const auto alive = rule.lock())
      for (const auto& [name, value] : alive->metrics()) {
        const bool least = name == "learning_rate_scale" || name == "version";
        const auto [at, made] = all.emplace(name, value);
        if (!made)
          at->second = least ? std::min(at->second, value) : std::max(at->second, value);
      }
  return all;
}

} // namespace troupe::learner
