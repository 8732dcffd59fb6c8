#pragma once

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "env/nearest_names.hpp"

/// Tables of tasks: vectors of structs that have a `name`, sorted by it.
namespace troupe::env::gym {

template <class Task>
std::vector<std::string> names_in(const std::vector<Task>& table) {
  std::vector<std::string> names;
  for (const Task& task : table)
    names.push_back(task.name);
  return names;
}

/// Returns the task of this name. Throws std::invalid_argument with the nearest names if there is
/// none; `kind` is for the message, for example "Gym".
template <class Task>
const Task& find_in(const std::vector<Task>& table, const std::string& name, const char* kind) {
  const auto found = std::ranges::find(table, name, &Task::name);
  if (found != table.end())
    return *found;
  std::string message =
      std::string("there is no ") + kind + " task '" + name.substr(0, 80) + "'; nearest:";
  for (const std::string& near : nearest_names(name, names_in(table)))
    message += " '" + near + "'";
  throw std::invalid_argument(message);
}

} // namespace troupe::env::gym
