#pragma once
// The head's side of a run: its context and its view of the actors, which are fakes.

#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "actors/run/run_actors.hpp"
#include "tests/doctest_torch.hpp"

namespace troupe::actors {

/// Tells the head that an actor has started, as the supervisor does.
inline caf::behavior announcer(caf::event_based_actor* self) {
  return {[self](started_atom, Role role, std::int32_t index, const caf::actor& who) {
    self->send(caf::actor_cast<caf::actor>(self->current_sender()), started_atom_v, role, index,
               who, std::string(), std::int32_t{0});
  }};
}

struct HeadFixture {
  SystemConfig system_config{false};
  caf::actor_system system{system_config};
  RunConfig config;
  replay::TransitionSpec transitions;
  std::filesystem::path folder, resume_from;
  Deployment deployment;
  std::vector<std::string> logged;
  RunCallbacks callbacks{
      .log = [this](const std::string&, const std::string& text) { logged.push_back(text); }};
  std::atomic<bool> stop = false, nodes_wait = false;
  RunContext context{.system = system,
                     .config = config,
                     .transitions = transitions,
                     .folder = folder,
                     .resume_from = resume_from,
                     .deployment = deployment,
                     .callbacks = callbacks,
                     .stop = stop,
                     .nodes_wait = nodes_wait};
  bool stalled = false;
  std::function<void()> on_update; // called ten times a second once the services have started
  RunActors actors{context,
                   {.updated =
                        [this](const UpdatePtr&, std::int64_t) {
                          if (on_update)
                            on_update();
                        },
                    .stalled = [this] { return stalled; }}};
  std::vector<caf::actor> fakes;
  caf::actor announcing = system.spawn(announcer);

  ~HeadFixture() {
    fakes.push_back(announcing);
    for (const auto& fake : fakes)
      caf::anon_send_exit(fake, caf::exit_reason::user_shutdown);
  }

  /// Handles the head's messages until `holds` returns true.
  template <class Condition>
  void handle_until(const Condition& holds) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!holds()) {
      REQUIRE(std::chrono::steady_clock::now() < deadline);
      actors.take_messages(std::chrono::milliseconds(20));
    }
  }

  /// Makes the fake the head's actor of this role and index.
  void announce(const ActorKey& key, const caf::actor& fake) {
    actors.send(announcing, started_atom_v, key.first, key.second, fake);
    handle_until([&] { return actors.is_up(key) && actors.at(key) == fake; });
  }
};

} // namespace troupe::actors
