#include "env/wire/keys.hpp"

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>

#include "experiments/commands/commands.hpp"

namespace troupe::experiments::commands {

namespace {

void show(const std::string& path) {
  if (std::filesystem::is_directory(path)) {
    show_cluster_keys(path);
    return;
  }
  for (const std::string& key : env::wire::read_public_keys(path))
    std::printf("public %s\n", key.c_str());
}

} // namespace

void add_keys(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "keys", "Creates, shows, checks and rotates keys for encrypted connections");
  command->require_subcommand(1);
  command->footer("Example: troupe keys cluster keys/lab      of a deployment\n"
                  "         troupe keys new keys/learner      a pair for one end of a connection\n"
                  "         troupe keys show keys/lab");
  add_cluster_keys(*command);

  auto folder = std::make_shared<std::string>();
  CLI::App* make = command->add_subcommand(
      "new",
      "Creates a pair: DIR/troupe.secret, readable only by its owner, and DIR/troupe.public");
  make->footer("Example: troupe keys new keys/learner");
  make->add_option("DIR", *folder, "created if missing; existing keys are not replaced")
      ->required();
  make->callback([folder] {
    const auto pair = env::wire::make_key_pair();
    env::wire::write_key_pair(pair, *folder);
    std::printf("public %s\n", pair.public_key.c_str());
  });

  auto file = std::make_shared<std::string>();
  CLI::App* shown = command->add_subcommand(
      "show", "Prints the public keys of a file or of a secret key, as lines for a list of allowed "
              "peers; for a deployment's folder, its contents with fingerprints and expiry. Never "
              "prints a secret");
  shown->footer("Example: troupe keys show keys/learner/troupe.secret >> keys/allowed.public\n"
                "         troupe keys show keys/lab");
  shown->add_option("PATH", *file, "file with keys, or a deployment's folder")->required();
  shown->callback([file] { show(*file); });
}

} // namespace troupe::experiments::commands
