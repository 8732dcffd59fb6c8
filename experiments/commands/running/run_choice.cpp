#include "experiments/commands/running/run_choice.hpp"

#include <stdexcept>

#include "experiments/commands/running/deployment.hpp"

namespace troupe::experiments::commands {

void add_run_choice(CLI::App& command, RunChoice& choice) {
  command.add_option("--runs", choice.runs, "without RUN, the newest live run below this folder")
      ->capture_default_str();
  command
      .add_option("--keys", choice.keys,
                  "folder of `troupe keys cluster DIR`, if the deployment has one")
      ->envname("TROUPE_KEYS");
}

std::string operating_footer(const std::string& examples) {
  return examples
         + "\nRUN is a run's folder, on any host that sees it.\n"
           "Exit codes: 0 done, 1 the head is gone or failed to do it, 2 a mistake (no such run, "
           "no live run, wrong keys, a request that the head refuses).";
}

actors::ControlPlace control_place(const LiveRun& live, const RunChoice& choice) {
  const bool here = live.head.address.starts_with("127.") || live.head.address == "localhost"
                    || live.head.address == "::1";
  if (here && live.head.host != host_name()) {
    throw std::invalid_argument(
        live.run.string() + ": its head listens only on the loopback interface of " + live.head.host
        + "; run the command there, or launch with head.listen (--listen) and keys");
  }
  if (live.head.keys && choice.keys.empty()) {
    throw std::invalid_argument(live.run.string()
                                + ": its head needs the deployment's keys; name their folder with "
                                  "--keys DIR or TROUPE_KEYS");
  }
  return {.host = live.head.address,
          .port = static_cast<std::uint16_t>(live.head.port),
          .folder = std::filesystem::canonical(live.run).string(),
          .keys = live.head.keys ? read_keys(choice.keys) : nullptr};
}

} // namespace troupe::experiments::commands
