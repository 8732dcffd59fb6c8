#include <chrono>
#include <cstdio>
#include <memory>
#include <thread>

#include "env/wire/context.hpp"
#include "env/wire/keys.hpp"
#include "experiments/commands/commands.hpp"
#include "experiments/commands/json.hpp"
#include "replay/service/shard_client.hpp"

namespace troupe::experiments::commands {
namespace {

struct ReplayInfoOptions {
  std::string endpoint;
  std::string table;
  std::string secret_key;
  std::string server_key;
  double seconds = 1;
  double deadline = 5;
  bool json = false;
};

/// A table at two points in time.
struct Seen {
  std::string name;
  replay::ShardInfo info;
  double inserts_per_second = 0;
  double samples_per_second = 0;
};

using Clock = std::chrono::steady_clock;

std::vector<Seen> look(env::wire::Context& context, const ReplayInfoOptions& options) {
  replay::ShardClientOptions client;
  client.shared_memory.reset(); // nothing large is transferred
  if (!options.secret_key.empty()) {
    client.keys = env::wire::read_client_keys(options.secret_key, options.server_key);
  }
  const auto ask = [&](const std::string& table) {
    client.table = table;
    const auto limit = std::chrono::duration<double>(options.deadline);
    return replay::ShardClient::ask(
        context, options.endpoint,
        Clock::now() + std::chrono::duration_cast<Clock::duration>(limit), client);
  };
  std::vector<Seen> seen;
  const replay::ShardInfo first = ask(options.table);
  if (!options.table.empty()) {
    seen.push_back({.name = options.table, .info = first});
  } else {
    for (const std::string& name : first.tables) {
      seen.push_back({.name = name, .info = first.tables.size() == 1 ? first : ask(name)});
    }
  }
  if (options.seconds == 0) {
    return seen;
  }
  std::this_thread::sleep_for(std::chrono::duration<double>(options.seconds));
  for (Seen& one : seen) {
    const replay::TableStats before = one.info.stats;
    one.info = ask(one.name);
    const replay::TableStats& now = one.info.stats;
    one.inserts_per_second = static_cast<double>(now.inserted - before.inserted) / options.seconds;
    one.samples_per_second = static_cast<double>(now.sampled - before.sampled) / options.seconds;
  }
  return seen;
}

std::string limiter_text(const replay::RateLimiterConfig& limiter) {
  char text[200];
  const char* name = replay::limiter_name(limiter.kind);
  const auto minimum_items = static_cast<long long>(limiter.minimum_items);
  switch (limiter.kind) {
  case replay::RateLimiterKind::minimum_size:
    std::snprintf(text, sizeof text, "%s of %lld items", name, minimum_items);
    break;
  case replay::RateLimiterKind::samples_per_insert:
    std::snprintf(text, sizeof text, "%s %g after %lld items, give or take %g samples", name,
                  limiter.samples_per_insert, minimum_items, limiter.error_buffer);
    break;
  default:
    std::snprintf(text, sizeof text, "%s of %lld items", name,
                  static_cast<long long>(limiter.queue_items));
  }
  return text;
}

void print(const Seen& seen) {
  const replay::ShardInfo& info = seen.info;
  const replay::TableStats& stats = info.stats;
  std::printf("table \"%s\": %s\n", seen.name.c_str(), describe(info.signature).c_str());
  std::printf("  items      %lld", static_cast<long long>(stats.items));
  if (info.config) {
    std::printf(" of %lld", static_cast<long long>(info.config->max_items));
  }
  std::printf("\n  bytes      %lld", static_cast<long long>(stats.bytes));
  if (info.config) {
    std::printf(" of %lld", static_cast<long long>(info.config->max_bytes));
  }
  if (stats.chunks_on_disk + stats.failed_spills > 0) {
    std::printf("\n  on disk    %lld bytes in %lld chunks; %lld failed spills",
                static_cast<long long>(stats.disk_bytes),
                static_cast<long long>(stats.chunks_on_disk),
                static_cast<long long>(stats.failed_spills));
  }
  std::printf("\n  inserted   %lld, %.4g/s\n  sampled    %lld, %.4g/s\n",
              static_cast<long long>(stats.inserted), seen.inserts_per_second,
              static_cast<long long>(stats.sampled), seen.samples_per_second);
  std::printf("  priorities %lld updated, %lld for removed items\n",
              static_cast<long long>(stats.updated_priorities),
              static_cast<long long>(stats.late_priorities));
  if (info.config) {
    std::printf("  sampler    %s, remover %s, compression %s\n  limiter    %s\n",
                replay::selector_name(info.config->sampler.kind),
                replay::selector_name(info.config->remover.kind),
                replay::compression_name(info.config->compression),
                limiter_text(info.config->limiter).c_str());
  }
  std::printf("  waiting    %s\n", info.why_waiting.empty() ? "nobody" : info.why_waiting.c_str());
}

Json json_of(const Seen& seen) {
  const replay::ShardInfo& info = seen.info;
  const replay::TableStats& stats = info.stats;
  Json columns = Json::array();
  for (const env::ArraySpec& column : info.signature.columns) {
    columns.push_back(
        {{"name", column.name}, {"type", env::element_name(column.type)}, {"shape", column.shape}});
  }
  Json made = {{"name", seen.name},
               {"columns", columns},
               {"items_are", info.signature.items},
               {"items", stats.items},
               {"bytes", stats.bytes},
               {"encoded_chunks", stats.encoded_chunks},
               {"chunks_on_disk", stats.chunks_on_disk},
               {"disk_bytes", stats.disk_bytes},
               {"failed_spills", stats.failed_spills},
               {"inserted", stats.inserted},
               {"inserts_per_second", seen.inserts_per_second},
               {"sampled", stats.sampled},
               {"samples_per_second", seen.samples_per_second},
               {"dropped_duplicates", stats.dropped_duplicates},
               {"updated_priorities", stats.updated_priorities},
               {"late_priorities", stats.late_priorities},
               {"waiting", info.why_waiting}};
  if (info.config) {
    const replay::TableConfig& config = *info.config;
    made["max_items"] = config.max_items;
    made["max_bytes"] = config.max_bytes;
    made["sampler"] = replay::selector_name(config.sampler.kind);
    made["priority_exponent"] = config.sampler.exponent;
    made["remover"] = replay::selector_name(config.remover.kind);
    made["max_times_sampled"] = config.max_times_sampled;
    made["insert_at_maximum"] = config.insert_at_maximum;
    made["compression"] = replay::compression_name(config.compression);
    made["limiter"] = {{"kind", replay::limiter_name(config.limiter.kind)},
                       {"minimum_items", config.limiter.minimum_items},
                       {"samples_per_insert", config.limiter.samples_per_insert},
                       {"error_buffer", config.limiter.error_buffer},
                       {"queue_items", config.limiter.queue_items}};
  }
  return made;
}

void info(const ReplayInfoOptions& options) {
  env::wire::Context context;
  const std::vector<Seen> seen = look(context, options);
  if (options.json) {
    Json tables = Json::array();
    for (const Seen& one : seen) {
      tables.push_back(json_of(one));
    }
    print_json({{"endpoint", options.endpoint},
                {"protocol", seen.empty() ? 0 : seen[0].info.protocol},
                {"tables", tables}});
  } else {
    for (const Seen& one : seen) {
      print(one);
    }
  }
}

} // namespace

void add_replay_info(CLI::App& replay) {
  CLI::App* command = replay.add_subcommand(
      "info", "Shows the contents, rates and waiting requests of the tables at an endpoint");
  command->footer("Example: troupe replay info tcp://127.0.0.1:7400\n"
                  "         troupe replay info ipc:///tmp/replay --json --seconds 0");
  auto options = std::make_shared<ReplayInfoOptions>();
  command
      ->add_option("ENDPOINT", options->endpoint,
                   "endpoint printed by `troupe replay serve`, or a replay actor's data port")
      ->required();
  command->add_option("--table", options->table, "only this table");
  command
      ->add_option("--seconds", options->seconds,
                   "seconds over which to measure rates; 0: no rates")
      ->check(CLI::Range(0.0, 3600.0));
  command->add_option("--deadline", options->deadline, "seconds to wait for an answer")
      ->check(CLI::Range(0.01, 3600.0));
  auto* secret = command->add_option("--secret-key", options->secret_key,
                                     "this side's secret key file of `troupe keys new`");
  secret->needs(
      command->add_option("--server-key", options->server_key, "the server's troupe.public")
          ->needs(secret));
  command->add_flag("--json", options->json, "as JSON");
  command->callback([options] { info(*options); });
}

} // namespace troupe::experiments::commands
