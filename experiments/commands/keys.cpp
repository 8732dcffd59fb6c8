#include "env/wire/keys.hpp"

#include <cstdio>
#include <memory>
#include <string>

#include "experiments/commands/commands.hpp"

namespace troupe::experiments::commands {

void add_keys(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("keys", "Makes and shows keys of encrypted connections");
  command->require_subcommand(1);
  command->footer("Example: troupe keys new keys/learner\n"
                  "         troupe keys show keys/learner/troupe.secret");

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
  CLI::App* show = command->add_subcommand(
      "show", "Prints the public keys of a file, as lines for a list of allowed peers; of a secret "
              "key the public one");
  show->footer("Example: troupe keys show keys/learner/troupe.secret >> keys/allowed.public");
  show->add_option("FILE", *file, "with keys")->required();
  show->callback([file, &exit_code] {
    for (const std::string& key : env::wire::read_public_keys(*file))
      std::printf("public %s\n", key.c_str());
    exit_code = kDone;
  });
}

} // namespace troupe::experiments::commands
