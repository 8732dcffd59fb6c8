#include "actors/protocol/system.hpp"

#include <chrono>
#include <random>

#include <caf/io/all.hpp>

namespace troupe::actors {

SystemConfig::SystemConfig(bool remote) {
  set("logger.file-verbosity", caf::atom("quiet"));
  set("logger.console-verbosity", caf::atom("quiet"));
  set("scheduler.max-threads", 2);
  // A single queue, whose workers sleep while it is empty. Under the default policy, work stealing,
  // they poll 20,000 times a second for 25 ms after each message, in every process of a run.
  set("scheduler.policy", caf::atom("sharing"));
  add_message_types<caf::id_block::troupe>();
  add_error_category(caf::atom("fault"),
                     [](std::uint8_t code, caf::atom_value, const caf::message& context) {
                       if (context.match_elements<std::string>())
                         return context.get_as<std::string>(0);
                       return to_string(static_cast<Fault>(code));
                     });
  if (remote) {
    set("middleman.heartbeat-interval", caf::timespan(std::chrono::seconds(5)));
    set("middleman.workers", 1);
    load<caf::io::middleman>();
  }
}

std::uint64_t random_life() {
  std::random_device random;
  return random() | std::uint64_t{random()} << 32U;
}

std::string explain(const caf::actor_system& system, const caf::error& error) {
  if (!error)
    return "no error";
  return system.render(error);
}

caf::error failure(const std::exception& exception) {
  return caf::make_error(Fault::failed, std::string(exception.what()));
}

} // namespace troupe::actors
