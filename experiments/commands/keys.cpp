#include "env/wire/keys.hpp"

#include <cstdio>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>

#include "experiments/commands/commands.hpp"

namespace troupe::experiments::commands {

namespace {

void show(const std::string& path) {
  if (std::filesystem::is_directory(path)) {
#ifdef TROUPE_HAS_ACTORS
    show_cluster_keys(path);
    return;
#else
    throw std::invalid_argument(path
                                + " is a folder; this build of troupe has no actors and shows "
                                  "files of keys alone");
#endif
  }
  for (const std::string& key : env::wire::read_public_keys(path))
    std::printf("public %s\n", key.c_str());
}

} // namespace

void add_keys(CLI::App& app, int& exit_code) {
  CLI::App* command =
      app.add_subcommand("keys", "Makes, shows, checks and rotates keys of encrypted connections");
  command->require_subcommand(1);
  command->footer("Example: troupe keys cluster keys/lab      of a deployment\n"
                  "         troupe keys new keys/learner      a pair for one end of a connection\n"
                  "         troupe keys show keys/lab");
#ifdef TROUPE_HAS_ACTORS
  add_cluster_keys(*command, exit_code);
#endif

  auto folder = std::make_shared<std::string>();
  CLI::App* make = command->add_subcommand(
      "new", "Makes a pair: DIR/troupe.secret, readable by its owner alone, and DIR/troupe.public");
  make->footer("Example: troupe keys new keys/learner");
  make->add_option("DIR", *folder, "made where it is missing; keys in it are not replaced")
      ->required();
  make->callback([folder, &exit_code] {
    const auto pair = env::wire::make_key_pair();
    env::wire::write_key_pair(pair, *folder);
    std::printf("public %s\n", pair.public_key.c_str());
    exit_code = kDone;
  });

  auto file = std::make_shared<std::string>();
  CLI::App* shown = command->add_subcommand(
      "show", "Prints the public keys of a file, as lines for a list of allowed peers; of a secret "
              "key the public one. Of a deployment's folder: what is in it, fingerprints and "
              "expiry. Never a secret");
  shown->footer("Example: troupe keys show keys/learner/troupe.secret >> keys/allowed.public\n"
                "         troupe keys show keys/lab");
  shown->add_option("PATH", *file, "a file with keys, or a deployment's folder")->required();
  shown->callback([file, &exit_code] {
    show(*file);
    exit_code = kDone;
  });
}

} // namespace troupe::experiments::commands
