// The spans of an update in a timeline, for every agent.
#include "tests/doctest_torch.hpp"

#include <map>

#include "collectives/timeline.hpp"
#include "tests/learner/agents/fed_replica.hpp"
#include "tests/learner/agents/small_agent.hpp"

using namespace troupe;
using namespace troupe::learner;
using namespace troupe::tests;
using collectives::Timeline;

TEST_CASE("A timeline shows the parts of every agent's update and records nothing once stopped") {
  std::vector<std::pair<const AgentKind*, std::string>> agents{
      {find_agent("sac"), "spherical: true policy_blocks: 1 critic_blocks: 1"}};
  for (const AgentKind& kind : agent_kinds())
    agents.emplace_back(&kind, "");
  at::set_num_threads(1); // tests run in parallel
  for (const auto& [kind, more] : agents) {
    CAPTURE(kind->name);
    const replay::TransitionSpec spec = small_transitions(*kind, more);
    Timeline timeline(0);
    ReplicaContext context(ReplicaAssignment{.timeline = &timeline}, 1);
    const auto replica = small_agent(*kind, more)->make_replica(spec);
    replica->build(context);
    timeline.clear();
    const auto begin = Timeline::Clock::now();
    for (std::uint64_t i = 0; i < 4; ++i)
      replica->step_fn(context, random_batch(spec, kBatch, i));
    const auto end = Timeline::Clock::now();
    std::map<std::string, int> times;
    for (const auto& event : timeline.events()) {
      CHECK(event.begin >= begin);
      CHECK(event.end <= end);
      ++times[event.name];
    }
    CHECK(times["optimizer"] >= 4);
    times.erase("optimizer");
    CHECK(times.size() >= 2);
    for (const auto& [name, count] : times) {
      CAPTURE(name);
      CHECK(count >= (name == "policy" ? 2 : 4)); // TD3's policy learns at every second update
    }
    timeline.stop();
    const auto before = timeline.events().size();
    replica->step_fn(context, random_batch(spec, kBatch, 5));
    CHECK(timeline.events().size() == before);
  }
}
