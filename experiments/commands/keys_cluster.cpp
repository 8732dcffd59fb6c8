#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>

#include "actors/cluster_keys.hpp"
#include "experiments/commands/commands.hpp"

namespace troupe::experiments::commands {

namespace {

constexpr int kHoursOfDay = 24;

struct ClusterKeysOptions {
  std::string folder;
  int days = 365;
  int authority_days = 3650;
  int grace_hours = 24;
  bool authority = false;
};

actors::KeyValidity validity_of(const ClusterKeysOptions& options) {
  return {.node = std::chrono::hours(kHoursOfDay) * options.days,
          .authority = std::chrono::hours(kHoursOfDay) * options.authority_days};
}

void add_folder(CLI::App& command, ClusterKeysOptions& options, const char* help) {
  command.add_option("DIR", options.folder, help)->required();
}

void add_days(CLI::App& command, ClusterKeysOptions& options) {
  command.add_option("--days", options.days, "that the node certificate is good for")
      ->check(CLI::Range(1, 36500))
      ->capture_default_str();
  command.add_option("--ca-days", options.authority_days, "that a new authority (CA) is good for")
      ->check(CLI::Range(1, 36500))
      ->capture_default_str();
}

void print_keys(const std::string& folder) {
  for (const std::string& line :
       actors::describe_cluster_keys(folder, std::chrono::system_clock::now()))
    std::printf("%s\n", line.c_str());
}

void add_make(CLI::App& keys, int& exit_code) {
  const auto options = std::make_shared<ClusterKeysOptions>();
  CLI::App* command = keys.add_subcommand(
      "cluster",
      "Makes the keys of a deployment, which all of its nodes share: an authority (CA), a "
      "node certificate (TLS), a CURVE pair and a token, readable by their owner alone");
  command->footer("Example: troupe keys cluster keys/lab\n"
                  "ca.key stays here: no node needs it, and whoever has it makes nodes.");
  add_folder(*command, *options, "made where it is missing; keys in it are not replaced");
  add_days(*command, *options);
  command->callback([options, &exit_code] {
    actors::make_cluster_keys(options->folder, std::chrono::system_clock::now(),
                              validity_of(*options));
    print_keys(options->folder);
    exit_code = kDone;
  });
}

void add_rotate(CLI::App& keys, int& exit_code) {
  const auto options = std::make_shared<ClusterKeysOptions>();
  CLI::App* command = keys.add_subcommand(
      "rotate",
      "Replaces a deployment's node certificate, CURVE pair and token. The old CURVE pair "
      "stays good for a grace, so that nodes can be restarted one by one");
  command->footer("Example: troupe keys rotate keys/lab --grace-hours 2");
  add_folder(*command, *options, "that `troupe keys cluster` made, with ca.key");
  add_days(*command, *options);
  command
      ->add_option("--grace-hours", options->grace_hours, "that the old CURVE pair stays good for")
      ->check(CLI::Range(0, 8760))
      ->capture_default_str();
  command->add_flag("--ca", options->authority,
                    "a new authority too: nodes with the old one become strangers; stop the "
                    "deployment first");
  command->callback([options, &exit_code] {
    actors::rotate_cluster_keys(options->folder, std::chrono::system_clock::now(),
                                {.validity = validity_of(*options),
                                 .grace = std::chrono::hours(options->grace_hours),
                                 .authority = options->authority});
    print_keys(options->folder);
    exit_code = kDone;
  });
}

void add_key_check(CLI::App& keys, int& exit_code) {
  const auto folder = std::make_shared<std::string>();
  CLI::App* command = keys.add_subcommand(
      "check", "Checks a deployment's keys as a node does when it starts: modes, expiry, that "
               "certificate, key and authority fit together. Exit code 2 where they do not");
  command->footer("Example: troupe keys check keys/lab");
  command->add_option("DIR", *folder, "with keys")->required();
  command->callback([folder, &exit_code] {
    actors::read_cluster_keys(*folder, std::chrono::system_clock::now());
    std::printf("%s: the keys are good\n", folder->c_str());
    exit_code = kDone;
  });
}

} // namespace

void add_cluster_keys(CLI::App& keys, int& exit_code) {
  add_make(keys, exit_code);
  add_rotate(keys, exit_code);
  add_key_check(keys, exit_code);
}

void show_cluster_keys(const std::string& folder) {
  print_keys(folder);
}

} // namespace troupe::experiments::commands
