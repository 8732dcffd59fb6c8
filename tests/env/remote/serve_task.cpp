#include <cstdio>
#include <exception>
#include <string>

#include <unistd.h>

#include "env/make/make.hpp"
#include "env/remote/environment_server.hpp"
#include "tests/env/remote/toy.hpp"

/// As `troupe serve TASK --endpoint E --count N --end-with-input`, for tests of env/ alone; task
/// "toy" is the tests' own.
int main(int argc, char** argv) {
  if (argc != 8) {
    std::fprintf(stderr, "serve_task: serve TASK --endpoint E --count N --end-with-input\n");
    return 2;
  }
  const std::string task = argv[2];
  try {
    const troupe::env::EnvironmentServer server(
        nullptr,
        [&] { return task == "toy" ? troupe::tests::make_toy() : troupe::env::make_task(task); },
        {.endpoint = argv[4], .environments = std::stoul(argv[6])});
    std::printf("serving %s of %s at %s\n", argv[6], task.c_str(), server.endpoint().c_str());
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
