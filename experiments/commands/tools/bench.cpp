#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <vector>

#include "env/processes/exec_words.hpp"
#include "experiments/commands/commands.hpp"

namespace troupe::experiments::commands {

void exec_bench(std::vector<std::string> arguments) {
  const auto program =
      std::filesystem::read_symlink("/proc/self/exe").parent_path() / "troupe_bench";
  arguments.insert(arguments.begin(), "troupe bench");
  ::execv(program.c_str(), exec_words(arguments).data());
  throw std::runtime_error(
      "cannot start " + program.string() + ": " + std::strerror(errno)
      + "; the benchmarks are a separate program, built by `ninja troupe_bench`");
}

void add_bench(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("bench", "Runs the benchmarks of one stage: median, minimum and maximum");
  command->set_help_flag(); // --help goes to the benchmark program
  command->allow_extras();
  command->prefix_command();
  command->callback([command] { exec_bench(command->remaining()); });
}

} // namespace troupe::experiments::commands
