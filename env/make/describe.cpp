#include "env/make/describe.hpp"

#include <algorithm>

#include "env/classic/classic.hpp"
#include "env/goals/goals.hpp"
#include "env/minatar/minatar.hpp"
#include "env/suite/tags.hpp"

namespace troupe::env {

namespace {

std::vector<std::string> tags_of(const std::string& name) {
  if (std::ranges::count(classic_names(), name) > 0)
    return {"classic"};
  if (std::ranges::count(goal_task_names(), name) > 0)
    return {"goals"};
  if (std::ranges::count(minatar_names(), name) > 0)
    return {"minatar"};
  return suite_tags(name);
}

/// Leaves the environment in `made`, so that the next one can share its model.
Description describe(const std::string& name, const std::string& models,
                     std::unique_ptr<Environment>& made) {
  Description description{name, tags_of(name), {}, {}};
  try {
    made = make_bare({.task = name, .models = models});
    description.spec = made->spec();
  } catch (const std::exception& error) {
    description.problem = error.what();
  }
  return description;
}

} // namespace

Description describe_environment(const std::string& name, const std::string& models) {
  if (!is_environment(name))
    make_bare({.task = name}); // throws, with the nearest names
  std::unique_ptr<Environment> made;
  return describe(name, models, made);
}

std::vector<Description> describe_environments(const std::string& models) {
  std::vector<Description> all;
  std::unique_ptr<Environment> made;
  for (const std::string& name : environment_names())
    all.push_back(describe(name, models, made));
  return all;
}

} // namespace troupe::env
