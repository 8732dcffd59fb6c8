#include "actors/protocol/counters.hpp"

#include <cmath>
#include <stdexcept>

namespace troupe::actors {

namespace {

void check_seconds(const std::string& name, double value) {
  if (!std::isfinite(value) || value < 0)
    throw std::invalid_argument(name + " is " + std::to_string(value)
                                + "; it must be a number of at least 0");
}

} // namespace

void check_counter(const std::string& name, std::int64_t value) {
  if (value < 0 || value > kMostCount)
    throw std::invalid_argument(name + " is " + std::to_string(value) + "; it must be from 0 to "
                                + std::to_string(kMostCount));
}

void check_counters(const wire::RunState& state) {
  check_counter("updates", state.updates());
  check_counter("agent_steps", state.agent_steps());
  check_counter("environment_steps", state.environment_steps());
  check_counter("episodes", state.episodes());
  check_counter("inserts", state.inserts());
  check_counter("samples", state.samples());
  check_counter("rows", state.rows());
  check_counter("due_from_items", state.due_from_items());
  check_counter("due_from_updates", state.due_from_updates());
  check_counter("frames", state.frames());
  check_counter("earlier_inserts", state.earlier_inserts());
  check_counter("earlier_samples", state.earlier_samples());
  check_seconds("training_seconds", state.training_seconds());
  check_seconds("processor_seconds", state.processor_seconds());
}

} // namespace troupe::actors
