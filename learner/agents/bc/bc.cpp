#include "learner/agents/bc/bc.hpp"

#include <torch/types.h>

#include "learner/agents/bc/bc.pb.h"
#include "learner/agents/learners/group_replica.hpp"
#include "learner/agents/parts/action_head.hpp"
#include "learner/agents/parts/network_policy.hpp"
#include "learner/agents/parts/transition_batch.hpp"
#include "learner/policy_graph/graph_layers.hpp"

namespace troupe::learner {
namespace {

class BcNetwork {
public:
  BcNetwork(const BcConfig& config, const replay::TransitionSpec& transitions)
      : actions_(transitions),
        torso_(layout_, "bc", transitions, {.encoder = config.encoder, .widths = config.layers}),
        head_(layout_, "policy", torso_.features(), actions_.outputs()) {}

  const ParameterLayout& layout() const { return layout_; }
  const ActionHead& actions() const { return actions_; }

  at::Tensor initial(at::Generator& generator) const {
    const at::Tensor flat = at::zeros({layout_.count()}, at::kFloat);
    torso_.initialise(layout_, flat, generator);
    head_.initialise(layout_, flat, generator);
    return flat;
  }
  at::Tensor forward(const Leaves& leaves, const Observed& observation) const {
    return head_.forward(leaves, torso_.forward(leaves, observation));
  }
  PolicyGraph describe(const Leaves& leaves, const replay::TransitionSpec& transitions) const {
    PolicyGraph graph = graph_of(transitions);
    torso_.describe(leaves, transitions, graph);
    add_linear(graph, head_.weight(leaves), head_.bias(leaves));
    graph.actions = actions_.describe();
    return graph;
  }

private:
  ParameterLayout layout_;
  ActionHead actions_;
  Torso torso_;
  Linear head_;
};

class BcPolicy : public NetworkPolicy<BcNetwork> {
public:
  BcPolicy(const BcConfig& config, const replay::TransitionSpec& transitions)
      : NetworkPolicy("bc", BcNetwork(config, transitions), transitions) {}

  void act(const Observations& observations, std::span<float> actions) override {
    at::NoGradGuard no_gradient;
    const at::Tensor outputs =
        network().forward(leaves(), seen(observations, actions)).contiguous();
    const ActionHead& kinds = network().actions();
    for (std::int64_t i = 0; i < observations.batch; ++i)
      kinds.best(outputs.const_data_ptr<float>() + i * kinds.outputs(), &actions[i * kinds.size()]);
  }
};

class Bc : public GroupReplica {
public:
  Bc(const BcConfig& config, const replay::TransitionSpec& transitions)
      : Bc(config, transitions, BcNetwork(config, transitions)) {}

  Metrics step_fn(ReplicaContext& context, const TensorMap& batch) override;

private:
  Bc(const BcConfig& config, const replay::TransitionSpec& transitions, BcNetwork network)
      : GroupReplica({.learning_rate = config.learning_rate,
                      .gradient_norm = config.gradient_norm,
                      .precision = config.precision},
                     network.layout()),
        transitions_(transitions),
        network_(std::move(network)) {}
  at::Tensor initial(at::Generator& generator) const override {
    return network_.initial(generator);
  }
  void learn(const TensorMap& batch);

  replay::TransitionSpec transitions_;
  BcNetwork network_;
};

void Bc::learn(const TensorMap& batch) {
  const bool weighted = batch.contains("weight");
  at::Tensor losses, loss;
  {
    at::AutoGradMode with_gradient(true);
    auto forward = span("forward");
    const at::Tensor outputs =
        network_.forward(leaves(), observed(batch, "observation", transitions_, options()));
    const at::Tensor deviations = at::zeros({network_.actions().continuous()}, options());
    losses =
        -network_.actions().log_probability(outputs, deviations, batch.at("action").to(options()));
    loss = (weighted ? losses * batch.at("weight").to(options()) : losses).mean();
    forward.end();
    const auto backward = span("backward");
    group().gradient().zero_();
    loss.backward();
  }
  in_update().step(group(), "loss", loss.detach());
  in_update().tell("loss", loss.detach());
  if (weighted)
    in_update().tell_rows(losses.detach().abs());
}

Metrics Bc::step_fn(ReplicaContext&, const TensorMap& batch) {
  const TensorMap used = checked_transitions(batch, transitions_, updates() + 1);
  network_.actions().check(used.at("action"), updates() + 1);
  at::NoGradGuard no_gradient;
  Metrics metrics = make_update(used, 0, [&](const TensorMap& on_device) { learn(on_device); });
  finish_update(group(), metrics);
  return metrics;
}

Members members(BcConfig& config) {
  return {{"layers", &config.layers},
          {"encoder", &config.encoder},
          {"learning_rate", &config.learning_rate},
          {"gradient_norm", &config.gradient_norm},
          {"precision", &config.precision},
          {"batch_size", &config.batch_size}};
}

std::vector<OptionProblem> problems(const BcConfig& config, const AgentSetting& setting) {
  std::vector<OptionProblem> found = small_pictures("bc", config.encoder, setting);
  if (!setting.recorded)
    found.push_back({"recording.path", "is missing; bc imitates recorded episodes (`troupe record` "
                                       "writes them): recording { path: \"…\" }"});
  return found;
}

} // namespace

AgentPtr make_bc_agent(const BcConfig& config) {
  return std::make_shared<const ConfiguredAgent<BcConfig, Bc, BcPolicy>>(config);
}

AgentKind bc_agent() {
  return agent_kind<BcConfig>({.name = "bc",
                               .help = "behaviour cloning of recorded episodes",
                               .pixels = true,
                               .both = true,
                               .actions = ActionKind::any,
                               .metrics = {"loss", "gradient_norm"},
                               .run = {.n_step = 1},
                               .options = agents::Bc::descriptor()},
                              members, problems, make_bc_agent);
}

} // namespace troupe::learner
