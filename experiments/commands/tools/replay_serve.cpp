#include <chrono>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <thread>

#include "env/wire/context.hpp"
#include "env/wire/keys.hpp"
#include "experiments/commands/commands.hpp"
#include "experiments/commands/json.hpp"
#include "experiments/commands/running/wait_for_signal.hpp"
#include "experiments/config/replay_tables.hpp"
#include "replay/service/host_checkpoints.hpp"

namespace troupe::experiments::commands {
namespace {

struct ReplayServeOptions {
  std::string config;
  std::vector<std::string> columns;
  std::vector<std::string> overrides;
  std::string listen = "tcp://127.0.0.1:*";
  std::string secret_key;
  std::string allowed_keys;
  std::string checkpoints;
  double checkpoint_seconds = 60;
  int keep = 2;
  bool end_with_input = false;
  bool json = false;
};

ReplayTables tables_of(const ReplayServeOptions& options) {
  if (options.config.empty() == options.columns.empty()) {
    throw std::invalid_argument("replay serve: give either --config FILE or the columns of one "
                                "table, e.g. --column state:float32:24");
  }
  if (!options.config.empty() && !options.overrides.empty()) {
    throw std::invalid_argument(
        "replay serve: --set goes with --column; with --config, write the keys in the file");
  }
  return options.config.empty() ? replay_table_of_flags(options.columns, options.overrides)
                                : load_replay_tables(options.config);
}

void say(const std::string& text) {
  std::fprintf(stderr, "%s\n", text.c_str());
}

std::unique_ptr<replay::HostCheckpoints>
checkpoints_of(const ReplayServeOptions& options, const std::vector<replay::HostedTable>& tables) {
  if (options.checkpoints.empty()) {
    return nullptr;
  }
  return std::make_unique<replay::HostCheckpoints>(
      tables,
      replay::HostCheckpointOptions{.folder = options.checkpoints,
                                    .period = std::chrono::milliseconds(static_cast<std::int64_t>(
                                        options.checkpoint_seconds * 1000)),
                                    .keep = options.keep,
                                    .log = say});
}

void serve(const ReplayServeOptions& options) {
  const ReplayTables tables = tables_of(options);
  auto signals = std::make_unique<EndSignals>();
  replay::ShardHostOptions host_options;
  host_options.server.endpoint = options.listen;
  if (!options.secret_key.empty()) {
    host_options.server.keys =
        env::wire::read_server_keys(options.secret_key, options.allowed_keys);
  }
  host_options.log = say;
  std::vector<replay::HostedTable> hosts;
  for (const ReplayTable& table : tables.table()) {
    hosts.push_back(hosted_table(table));
    try {
      replay::check(hosts.back().signature);
      replay::check(hosts.back().config);
    } catch (const std::invalid_argument& mistake) {
      throw std::invalid_argument("replay serve: table \"" + table.name()
                                  + "\": " + mistake.what());
    }
  }
  const std::unique_ptr<replay::HostCheckpoints> checkpoints = checkpoints_of(options, hosts);
  if (checkpoints) {
    host_options.restore = [&](std::size_t table, replay::Table& into) {
      checkpoints->restore(table, into);
    };
  }
  env::wire::Context context;
  replay::ShardHost host(context, hosts, host_options);
  const std::jthread writing = checkpoints ? checkpoints->start(host) : std::jthread();
  if (options.json) {
    Json names = Json::array();
    for (const replay::HostedTable& table : hosts) {
      names.push_back(table.name);
    }
    print_json({{"endpoint", host.endpoint()}, {"tables", names}});
  } else {
    std::printf("serving %zu replay table%s at %s\n", hosts.size(), hosts.size() == 1 ? "" : "s",
                host.endpoint().c_str());
  }
  std::fflush(stdout);
  if (checkpoints && checkpoints->restored() > 0) {
    say("continuing from checkpoint " + std::to_string(checkpoints->restored()) + " in "
        + options.checkpoints);
  }
  signals->wait(options.end_with_input);
  signals.reset();
  if (checkpoints) {
    std::fprintf(stderr, "checkpoint %llu in %s\n",
                 static_cast<unsigned long long>(checkpoints->write(host)),
                 options.checkpoints.c_str());
  }
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    const replay::TableStats stats = host.stats(i);
    std::fprintf(stderr, "table \"%s\": %lld items inserted, %lld sampled, %lld held\n",
                 hosts[i].name.c_str(), static_cast<long long>(stats.inserted),
                 static_cast<long long>(stats.sampled), static_cast<long long>(stats.items));
  }
}

} // namespace

void add_replay_serve(CLI::App& replay) {
  CLI::App* command =
      replay.add_subcommand("serve", "Serves replay tables until SIGTERM or SIGINT");
  command->footer(
      "Example: troupe replay serve --config tables.textproto --listen tcp://127.0.0.1:7400\n"
      "         troupe replay serve --column state:float32:24 --column reward --set "
      "sampler=prioritized\n"
      "Clients: Python's troupe.replay, C++'s replay/service/shard_client.hpp, or "
      "replay/service/PROTOCOL.md.");
  auto options = std::make_shared<ReplayServeOptions>();
  command->add_option("--config", options->config,
                      "textproto file of tables; `troupe list table-keys` lists their keys");
  command->add_option("--column", options->columns,
                      "column of the single table: name, name:type or name:type:extents "
                      "(pixels:uint8:3,84,84); may be repeated");
  command->add_option("--set", options->overrides,
                      "key=value of the single table; may be repeated");
  command->add_option("--listen", options->listen,
                      "tcp://<host>:<port> or ipc://<path>; * finds a port");
  auto* secret = command->add_option(
      "--secret-key", options->secret_key,
      "file of `troupe keys new`; encrypts, and allows --listen on interfaces other than loopback");
  secret->needs(command
                    ->add_option("--allowed-keys", options->allowed_keys,
                                 "file with the public keys of the allowed clients")
                    ->needs(secret));
  auto* folder = command->add_option(
      "--checkpoints", options->checkpoints,
      "folder of checkpoints: loads the newest, and writes new ones periodically and at the end");
  command
      ->add_option("--checkpoint-seconds", options->checkpoint_seconds,
                   "between checkpoints; 0: only at the end")
      ->check(CLI::Range(0.0, 1e6))
      ->needs(folder);
  command->add_option("--keep", options->keep, "number of checkpoints to keep")
      ->check(CLI::Range(1, 1000))
      ->needs(folder);
  command->add_flag("--end-with-input", options->end_with_input, "end when standard input ends");
  command->add_flag("--json", options->json, "print the endpoint as JSON");
  command->callback([options] { serve(*options); });
}

} // namespace troupe::experiments::commands
