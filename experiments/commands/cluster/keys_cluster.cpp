#include <cstdio>
#include <memory>
#include <string>

#include "actors/remoting/cluster_keys.hpp"
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
  command.add_option("--days", options.days, "validity of the node certificate")
      ->check(CLI::Range(1, 36500))
      ->capture_default_str();
  command.add_option("--ca-days", options.authority_days, "validity of a new authority (CA)")
      ->check(CLI::Range(1, 36500))
      ->capture_default_str();
}

void print_keys(const std::string& folder) {
  for (const std::string& line :
       actors::describe_cluster_keys(folder, std::chrono::system_clock::now()))
    std::printf("%s\n", line.c_str());
}

void add_make(CLI::App& keys) {
  const auto options = std::make_shared<ClusterKeysOptions>();
  CLI::App* command = keys.add_subcommand(
      "cluster", "Creates the keys that all nodes of a deployment share: an authority (CA), a node "
                 "certificate (TLS), a CURVE pair and a token, readable only by their owner");
  command->footer("Example: troupe keys cluster keys/lab\n"
                  "Keep ca.key here: nodes do not need it, and it can create nodes.");
  add_folder(*command, *options, "created if missing; existing keys are not replaced");
  add_days(*command, *options);
  command->callback([options] {
    actors::make_cluster_keys(options->folder, std::chrono::system_clock::now(),
                              validity_of(*options));
    print_keys(options->folder);
  });
}

void add_rotate(CLI::App& keys) {
  const auto options = std::make_shared<ClusterKeysOptions>();
  CLI::App* command = keys.add_subcommand(
      "rotate",
      "Replaces a deployment's node certificate, CURVE pair and token. The old CURVE pair "
      "stays valid for a grace period, in which nodes can be restarted one by one");
  command->footer("Example: troupe keys rotate keys/lab --grace-hours 2");
  add_folder(*command, *options, "folder of `troupe keys cluster`, with ca.key");
  add_days(*command, *options);
  command->add_option("--grace-hours", options->grace_hours, "validity of the old CURVE pair")
      ->check(CLI::Range(0, 8760))
      ->capture_default_str();
  command->add_flag(
      "--ca", options->authority,
      "also a new authority; it rejects nodes with the old one, so stop the deployment first");
  command->callback([options] {
    actors::rotate_cluster_keys(options->folder, std::chrono::system_clock::now(),
                                {.validity = validity_of(*options),
                                 .grace = std::chrono::hours(options->grace_hours),
                                 .authority = options->authority});
    print_keys(options->folder);
  });
}

void add_key_check(CLI::App& keys) {
  const auto folder = std::make_shared<std::string>();
  CLI::App* command = keys.add_subcommand(
      "check", "Checks a deployment's keys as a node does when it starts: file modes, expiry, and "
               "that certificate, key and authority match. Exit code 2 if they do not");
  command->footer("Example: troupe keys check keys/lab");
  command->add_option("DIR", *folder, "folder of keys")->required();
  command->callback([folder] {
    actors::read_cluster_keys(*folder, std::chrono::system_clock::now());
    std::printf("%s: the keys are valid\n", folder->c_str());
  });
}

} // namespace

void add_cluster_keys(CLI::App& keys) {
  add_make(keys);
  add_rotate(keys);
  add_key_check(keys);
}

void show_cluster_keys(const std::string& folder) {
  print_keys(folder);
}

} // namespace troupe::experiments::commands
