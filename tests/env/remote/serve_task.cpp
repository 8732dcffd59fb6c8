#include <cstdio>
#include <exception>
#include <string>

#include <unistd.h>

#include "env/make/make.hpp"
#include "env/remote/environment_server.hpp"
#include "tests/env/remote/toy.hpp"

using namespace troupe;

namespace {

/// The tests' own tasks and the tasks of env/.
std::unique_ptr<env::Environment> make(const std::string& task) {
  if (task == "toy")
    return tests::make_toy();
  if (task == "one_choice")
    return std::make_unique<tests::Chooser>(env::one_of(3));
  if (task == "two_choices")
    return std::make_unique<tests::Chooser>(
        env::ActionSpec{.minimum = {0, 0}, .maximum = {2, 4}, .choices = {3, 5}});
  if (task == "mixed")
    return std::make_unique<tests::Chooser>(tests::mixed_action());
  return env::make_task(task);
}

} // namespace

/// Works like `troupe serve environment TASK --endpoint E --count N --end-with-input [--secret-key
/// FILE --allowed-keys FILE]`, for tests that use env/ alone.
int main(int argc, char** argv) {
  if (argc != 9 && argc != 13) {
    std::fprintf(stderr,
                 "serve_task: serve environment TASK --endpoint E --count N --end-with-input "
                 "[--secret-key FILE --allowed-keys FILE]\n");
    return 2;
  }
  const std::string task = argv[3];
  try {
    env::EnvironmentServerOptions options{.endpoint = argv[5], .environments = std::stoul(argv[7])};
    if (argc == 13)
      options.keys = env::wire::read_server_keys(argv[10], argv[12]);
    const env::EnvironmentServer server(
        nullptr, [&] { return make(task); }, options);
    std::printf("serving %s of %s at %s\n", argv[7], task.c_str(), server.endpoint().c_str());
    std::fflush(stdout);
    char ignored[256];
    while (read(STDIN_FILENO, ignored, sizeof ignored) > 0) {
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "serve_task: %s\n", error.what());
    return 1;
  }
  return 0;
}
