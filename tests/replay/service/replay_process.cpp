// The other process of the fault tests; runs until it is killed or its parent has ended.
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <string>

#include <sys/prctl.h>
#include <unistd.h>

#include "replay/service/host_checkpoints.hpp"
#include "replay/service/shard_client.hpp"
#include "tests/replay/service/replay_process.hpp"

namespace troupe::replay {
namespace {

void say(const std::string& text) {
  if (::write(STDOUT_FILENO, text.data(), text.size()) < 0)
    ::_exit(1);
}

[[noreturn]] void serve(const std::string& endpoint, const std::string& folder) {
  env::wire::Context context;
  const std::vector<HostedTable> tables{
      {.name = "", .config = kProcessConfig, .signature = process_spec(), .seed = 1}};
  std::unique_ptr<HostCheckpoints> checkpoints;
  ShardHostOptions options{.server = {.endpoint = endpoint}};
  if (!folder.empty()) {
    checkpoints = std::make_unique<HostCheckpoints>(
        tables, HostCheckpointOptions{.folder = folder, .period = std::chrono::milliseconds(20)});
    options.restore = [&](std::size_t table, Table& into) { checkpoints->restore(table, into); };
  }
  ShardHost host(context, tables, options);
  const std::jthread writing = checkpoints ? checkpoints->start(host) : std::jthread();
  say(host.endpoint() + "\n");
  for (;;)
    ::pause();
}

[[noreturn]] void write_on(const std::string& endpoint, bool shared) {
  env::wire::Context context;
  ShardClientOptions options;
  if (!shared)
    options.shared_memory.reset();
  ShardClient client(context, endpoint, large_spec(), options);
  Writer writer = transition_writer(large_spec(), static_cast<std::uint64_t>(::getpid()), 1);
  say("begins\n");
  for (float number = 0;; ++number) {
    fill_large(writer, number);
    if (InsertionPtr made = writer.take())
      if (!client.insert(std::move(made), Deadline::clock::now() + std::chrono::seconds(10)))
        throw std::runtime_error("the server accepts no insertion for 10 s");
  }
}

} // namespace
} // namespace troupe::replay

int main(int count, char** arguments) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  try {
    const std::string mode = count > 2 ? arguments[1] : "";
    if (mode == "shard")
      troupe::replay::serve(arguments[2], count > 3 ? arguments[3] : "");
    if (mode == "write" && count > 3)
      troupe::replay::write_on(arguments[2], std::strcmp(arguments[3], "shared") == 0);
    std::fprintf(stderr, "replay_process: 'shard ENDPOINT' or 'write ENDPOINT tcp|shared'\n");
  } catch (const std::exception& e) {
    std::fprintf(stderr, "replay_process: %s\n", e.what());
  }
  return 1;
}
