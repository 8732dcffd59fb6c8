#include "env/make.hpp"

#include "env/suite/suite_environment.hpp"
#include "env/wrappers/action_repeat.hpp"
#include "env/wrappers/action_scale.hpp"
#include "env/wrappers/flat_state.hpp"
#include "env/wrappers/frame_stack.hpp"
#include "env/wrappers/pixels.hpp"

namespace troupe::env {

std::unique_ptr<Environment> make_task(const std::string& task, const std::string& models) {
  return std::make_unique<SuiteEnvironment>(find_task(task), models);
}

std::unique_ptr<Environment> make_environment(const EnvironmentConfig& config) {
  std::unique_ptr<Environment> made = make_task(config.task, config.models);
  made = std::make_unique<ActionScale>(std::move(made));
  made = std::make_unique<ActionRepeat>(std::move(made), config.action_repeat);
  if (config.pixels)
    made = std::make_unique<Pixels>(std::move(made), *config.pixels);
  else
    made = std::make_unique<FlatState>(std::move(made));
  return std::make_unique<FrameStack>(std::move(made), config.frame_stack);
}

} // namespace troupe::env
