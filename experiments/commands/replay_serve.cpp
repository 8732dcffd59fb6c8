#include <cstdio>
#include <memory>
#include <stdexcept>

#include "env/wire/context.hpp"
#include "env/wire/keys.hpp"
#include "experiments/commands/commands.hpp"
#include "experiments/commands/json.hpp"
#include "experiments/commands/wait_for_signal.hpp"
#include "experiments/replay_tables.hpp"
#include "replay/shard_host.hpp"

namespace troupe::experiments::commands {
namespace {

struct ReplayServeOptions {
  std::string config;
  std::vector<std::string> columns;
  std::vector<std::string> overrides;
  std::string listen = "tcp://127.0.0.1:*";
  std::string secret_key;
  std::string allowed_keys;
  bool end_with_input = false;
  bool json = false;
};

env::ElementType element_of(const std::string& name) {
  for (const auto type : {env::ElementType::uint8, env::ElementType::float32,
                          env::ElementType::float64, env::ElementType::int64}) {
    if (name == env::element_name(type)) {
      return type;
    }
  }
  throw std::invalid_argument("a column's type is \"" + name
                              + "\"; it must be uint8, float32, float64 or int64");
}

replay::HostedTable hosted(const ReplayTable& table) {
  replay::HostedTable made;
  made.name = table.name();
  made.seed = table.seed();
  for (const ReplayColumn& column : table.column()) {
    made.signature.columns.push_back(
        {column.name(), element_of(column.type()), {column.shape().begin(), column.shape().end()}});
  }
  made.signature.items = table.items();
  made.config = {
      .max_items = table.max_items(),
      .max_bytes = table.max_bytes(),
      .sampler = {.kind = replay::selector_named(table.sampler()),
                  .exponent = table.priority_exponent()},
      .remover = {.kind = replay::selector_named(table.remover()),
                  .exponent = table.priority_exponent()},
      .max_times_sampled = table.max_times_sampled(),
      .insert_at_maximum = table.insert_at_maximum(),
      .compression = replay::compression_named(table.compression()),
      .limiter = {.kind = replay::limiter_named(table.limiter()),
                  .min_items = table.min_items(),
                  .samples_per_insert = table.samples_per_insert(),
                  .error_buffer = table.error_buffer(),
                  .queue_items = table.queue_items()},
  };
  return made;
}

ReplayTables tables_of(const ReplayServeOptions& options) {
  if (options.config.empty() == options.columns.empty()) {
    throw std::invalid_argument("replay serve: give either --config FILE or the columns of one "
                                "table, e.g. --column state:float32:24");
  }
  if (!options.config.empty() && !options.overrides.empty()) {
    throw std::invalid_argument(
        "replay serve: --set goes with --column; with --config write it in the file");
  }
  return options.config.empty() ? replay_table_of_flags(options.columns, options.overrides)
                                : load_replay_tables(options.config);
}

void serve(const ReplayServeOptions& options, int& exit_code) {
  const ReplayTables tables = tables_of(options);
  auto signals = std::make_unique<EndSignals>();
  replay::ShardHostOptions host_options;
  host_options.server.endpoint = options.listen;
  if (!options.secret_key.empty()) {
    host_options.server.keys =
        env::wire::read_server_keys(options.secret_key, options.allowed_keys);
  }
  host_options.log = [](const std::string& text) { std::fprintf(stderr, "%s\n", text.c_str()); };
  std::vector<replay::HostedTable> hosts;
  for (const ReplayTable& table : tables.table()) {
    hosts.push_back(hosted(table));
    try {
      replay::check(hosts.back().signature);
      replay::check(hosts.back().config);
    } catch (const std::invalid_argument& mistake) {
      throw std::invalid_argument("replay serve: table \"" + table.name()
                                  + "\": " + mistake.what());
    }
  }
  env::wire::Context context;
  const replay::ShardHost host(context, hosts, host_options);
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
  signals->wait(options.end_with_input);
  signals.reset();
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    const replay::TableStats stats = host.stats(i);
    std::fprintf(stderr, "table \"%s\": %lld items inserted, %lld sampled, %lld held\n",
                 hosts[i].name.c_str(), static_cast<long long>(stats.inserted),
                 static_cast<long long>(stats.sampled), static_cast<long long>(stats.items));
  }
  exit_code = kDone;
}

} // namespace

void add_replay_serve(CLI::App& replay, int& exit_code) {
  CLI::App* command =
      replay.add_subcommand("serve", "Serves replay tables until SIGTERM or SIGINT; they are "
                                     "forgotten then");
  command->footer(
      "Example: troupe replay serve --config tables.textproto --listen tcp://127.0.0.1:7400\n"
      "         troupe replay serve --column state:float32:24 --column reward --set "
      "sampler=prioritized\n"
      "Clients: Python's troupe_replay, C++'s replay/remote.hpp, or replay/PROTOCOL.md.");
  auto options = std::make_shared<ReplayServeOptions>();
  command->add_option("--config", options->config,
                      "textproto file of one or more tables; `troupe list table-keys` names the "
                      "keys of each");
  command->add_option("--column", options->columns,
                      "of the one table: name, name:type or name:type:extents "
                      "(pixels:uint8:3,84,84); may be repeated");
  command->add_option("--set", options->overrides, "key=value of the one table; may be repeated");
  command->add_option("--listen", options->listen,
                      "tcp://<host>:<port> or ipc://<path>; * finds a port");
  auto* secret = command->add_option("--secret-key", options->secret_key,
                                     "file of `troupe keys new`: encrypts, and lets --listen bind "
                                     "other interfaces than loopback");
  secret->needs(command
                    ->add_option("--allowed-keys", options->allowed_keys,
                                 "file with the public keys of the clients let in")
                    ->needs(secret));
  command->add_flag("--end-with-input", options->end_with_input, "end when standard input ends");
  command->add_flag("--json", options->json, "say where as JSON");
  command->callback([options, &exit_code] { serve(*options, exit_code); });
}

} // namespace troupe::experiments::commands
