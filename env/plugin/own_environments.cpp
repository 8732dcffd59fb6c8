#include "env/plugin/own_environments.hpp"

#include <algorithm>
#include <span>

#include "env/nearest_names.hpp"
#include "env/plugin/shared_library.hpp"

/// Defined by TROUPE_ENVIRONMENTS in programs with linked-in environments; otherwise null.
extern "C" __attribute__((weak)) const troupe::env::PluginTable* troupe_environments();

namespace troupe::env {

namespace {

constexpr PluginWords kWords{.entry_point = "troupe_environments",
                             .macro = "TROUPE_ENVIRONMENTS(...)",
                             .header = "env/plugin/plugin.hpp",
                             .things = "environments"};

using PluginEntry = const PluginTable* (*)();
using Environments = std::span<const PluginEnvironment>;

Environments check_table(const PluginTable* table, const std::string& origin) {
  PluginHead head;
  if (table != nullptr)
    head = {table->magic, table->version, table->interface_bytes, table->fingerprint};
  check_plugin_head(head, {kPluginMagic, kPluginVersion, kInterfaceBytes, kPluginFingerprint},
                    origin, kWords);
  return {table->environments, table->count};
}

Environments open_library(const std::filesystem::path& library) {
  const auto entry = reinterpret_cast<PluginEntry>(plugin_entry_point(library, kWords));
  return check_table(entry(), "plugin: " + library.string());
}

Environments linked() {
  if (troupe_environments == nullptr)
    return {};
  return check_table(troupe_environments(), "the table of linked-in environments");
}

std::vector<std::string> names_of(Environments environments) {
  std::vector<std::string> names;
  for (const PluginEnvironment& environment : environments)
    names.emplace_back(environment.name);
  std::sort(names.begin(), names.end());
  return names;
}

const PluginEnvironment* find(Environments environments, const std::string& name) {
  const auto found = std::find_if(environments.begin(), environments.end(),
                                  [&](const PluginEnvironment& one) { return name == one.name; });
  return found == environments.end() ? nullptr : &*found;
}

std::unique_ptr<Environment> make_one(const PluginEnvironment& chosen, const Options& options,
                                      const std::string& origin) {
  std::unique_ptr<Environment> made;
  try {
    made.reset(chosen.make(options));
  } catch (const std::invalid_argument& problem) {
    throw std::invalid_argument(origin + ": " + problem.what());
  } catch (const std::exception& problem) {
    throw std::runtime_error(origin + ": its constructor threw: " + problem.what());
  } catch (...) {
    throw std::runtime_error(origin
                             + ": its constructor threw something that is not a std::exception");
  }
  if (made == nullptr)
    throw std::runtime_error(origin + ": its make function returned no object");
  check_all_asked(options, origin);
  return guard(std::move(made), origin);
}

} // namespace

void check_all_asked(const Options& options, const std::string& origin) {
  for (const auto& [key, value] : options.pairs()) {
    if (options.asked().contains(key))
      continue;
    std::string message = origin + " has no option '" + key + "'";
    const std::vector<std::string> known(options.asked().begin(), options.asked().end());
    for (const std::string& near : nearest_names(key, known))
      message += (near == nearest_names(key, known).front() ? "; nearest: '" : " '") + near + "'";
    throw std::invalid_argument(message + (known.empty() ? "; it takes none" : ""));
  }
}

Options parse_options(const std::vector<std::string>& options) {
  Options::Pairs pairs;
  for (const std::string& option : options) {
    const std::size_t equals = option.find('=');
    if (equals == std::string::npos || equals == 0)
      throw std::invalid_argument("options: '" + option
                                  + "' is not an option; write key=value, e.g. \"length=2\"");
    const std::string key = option.substr(0, equals);
    for (const auto& [before, value] : pairs)
      if (before == key)
        throw std::invalid_argument("options: '" + key + "' is given twice; give it once");
    pairs.emplace_back(key, option.substr(equals + 1));
  }
  return Options(std::move(pairs));
}

std::vector<std::string> linked_environments() {
  return names_of(linked());
}

std::unique_ptr<Environment> make_linked(const std::string& name, const Options& options) {
  const PluginEnvironment* chosen = find(linked(), name);
  return chosen == nullptr ? nullptr : make_one(*chosen, options, "environment " + name);
}

std::vector<std::string> plugin_environments(const std::filesystem::path& library) {
  return names_of(open_library(library));
}

std::unique_ptr<Environment> make_plugin(const std::filesystem::path& library,
                                         const std::string& name, const Options& options) {
  const Environments all = open_library(library);
  const PluginEnvironment* chosen = find(all, name);
  if (chosen == nullptr) {
    std::string message = "task: '" + name + "' is not in plug-in " + library.string()
                          + (all.empty() ? "; it has no environments" : "; nearest:");
    for (const std::string& other : nearest_names(name, names_of(all)))
      message += " '" + other + "'";
    throw std::invalid_argument(message);
  }
  return make_one(*chosen, options, "environment " + name + " (" + library.string() + ")");
}

} // namespace troupe::env
