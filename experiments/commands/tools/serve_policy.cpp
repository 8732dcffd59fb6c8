#include <algorithm>
#include <cstdio>
#include <memory>
#include <stdexcept>

#include "env/text/number_in.hpp"
#include "experiments/commands/commands.hpp"
#include "experiments/commands/json.hpp"
#include "experiments/commands/running/http_flags.hpp"
#include "experiments/commands/running/run_flags.hpp"
#include "experiments/commands/running/trained_policy.hpp"
#include "experiments/commands/running/wait_for_signal.hpp"
#include "experiments/serving/message_door.hpp"
#include "experiments/serving/policy_server.hpp"

namespace troupe::experiments::commands {
namespace {

struct PolicyServing {
  StoredRunChoice run;
  std::vector<std::string> versions;
  std::vector<std::string> shares;
  HttpChoice listening{
      .http = {.limits = {.connections = 4'096, .body_bytes = 16 << 20, .threads = 2},
               .thread_name = "policy"}};
  serving::PolicyServerOptions server{};
  CheckpointChoice checkpoint;
  std::int64_t idle_seconds = 600;
  double reload_seconds = 10;
  serving::MessageDoorOptions messages{};
  std::string secret_key;
  std::string allowed_keys;
  bool json = false;
};

/// The checkpoint of a run that a version serves. The latest one changes while the run continues.
serving::VersionOptions version_of(const std::string& name, const std::filesystem::path& run,
                                   const CheckpointChoice& choice) {
  return {.name = name,
          .newer = [run, choice](std::int64_t updates) -> std::unique_ptr<serving::ServedPolicy> {
            if (updates >= 0 && choice.updates)
              return nullptr;
            const CheckpointFolder checkpoint = choose_checkpoint(run, choice);
            if (checkpoint.updates == updates)
              return nullptr;
            TrainedPolicy trained = load_trained_policy(run, checkpoint);
            return std::make_unique<serving::ServedPolicy>(
                std::move(trained.contract), std::move(trained.spec), std::move(trained.policy));
          }};
}

/// Parses "NAME=VALUE".
std::pair<std::string, std::string> named_value(const std::string& text, const char* flag,
                                                const char* form) {
  const auto equals = text.find('=');
  const std::string name = text.substr(0, equals);
  const bool plain =
      !name.empty() && name.size() <= 64
      && name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_")
             == std::string::npos;
  if (equals == std::string::npos || !plain || equals + 1 == text.size())
    throw std::invalid_argument(std::string(flag) + " " + text + ": must be " + form
                                + "; a name has letters, digits, - and _");
  return {name, text.substr(equals + 1)};
}

/// Parses "RUN", "RUN@UPDATES" or "RUN@best". A folder above the run may have an @ in its name.
serving::VersionOptions read_version(const std::string& text) {
  const auto [name, value] = named_value(text, "--version",
                                         "NAME=RUN, NAME=RUN@UPDATES or "
                                         "NAME=RUN@best");
  const auto slash = value.rfind('/');
  const auto last = value.rfind('@');
  const auto at = slash != std::string::npos && last < slash ? std::string::npos : last;
  CheckpointChoice choice;
  if (at != std::string::npos) {
    const std::string which = value.substr(at + 1);
    const auto updates = env::number_in<std::int64_t>(which);
    choice.best = which == "best";
    if (!choice.best && (!updates || *updates < 0))
      throw std::invalid_argument("--version " + text
                                  + ": the part after @ must be a checkpoint's updates or best");
    choice.updates = updates;
  }
  return version_of(name, value.substr(0, at), choice);
}

void read_shares(const std::vector<std::string>& texts,
                 std::vector<serving::VersionOptions>& versions) {
  for (const std::string& text : texts) {
    const auto [name, value] = named_value(text, "--share", "NAME=NUMBER");
    const auto found = std::ranges::find(versions, name, &serving::VersionOptions::name);
    if (found == versions.end())
      throw std::invalid_argument("--share " + text + ": there is no version " + name
                                  + "; add --version " + name + "=RUN");
    const auto share = env::number_in<double>(value, 0, 1e6);
    if (!share)
      throw std::invalid_argument("--share " + text + ": must be a number from 0 to 1e6");
    found->share = *share;
  }
  if (std::ranges::all_of(versions, [](const auto& version) { return version.share == 0; }))
    throw std::invalid_argument("--share: at least one version must have more than 0");
}

std::unique_ptr<serving::MessageDoor> open_door(PolicyServing& options, env::wire::Context& context,
                                                serving::PolicyServer& server) {
  if (options.messages.endpoint.empty())
    return nullptr;
  if (!options.secret_key.empty())
    options.messages.keys = env::wire::read_server_keys(options.secret_key, options.allowed_keys);
  options.messages.body_bytes = options.listening.http.limits.body_bytes;
  return std::make_unique<serving::MessageDoor>(
      context, options.messages,
      [&server](const web::Request& request, const web::HttpServer::Reply& reply) {
        server.serve(request, reply);
      });
}

void serve_policy(PolicyServing options) {
  const EndSignals signals;
  const std::string run = chosen_run(options.run).string();
  options.server.http = options.listening.http;
  options.server.token = options.listening.token();
  options.server.versions = {version_of("main", run, options.checkpoint)};
  for (const std::string& text : options.versions) {
    options.server.versions.push_back(read_version(text));
    const std::string& name = options.server.versions.back().name;
    if (std::ranges::count(options.server.versions, name, &serving::VersionOptions::name) > 1)
      throw std::invalid_argument("--version " + text + ": there is a version " + name
                                  + " already");
    options.server.versions.back().share = 0; // unless --share says otherwise
  }
  read_shares(options.shares, options.server.versions);
  options.server.sessions.idle = std::chrono::seconds(options.idle_seconds);
  options.server.log = [](const std::string& text) { std::fprintf(stderr, "%s\n", text.c_str()); };
  const std::string token = options.server.token;
  serving::PolicyServer server(std::move(options.server));
  env::wire::Context context;
  const auto door = open_door(options, context, server);
  if (options.json) {
    Json told = {{"address", server.address()}, {"token", token}};
    if (door)
      told["messages"] = door->endpoint();
    print_json(told);
  } else {
    std::printf("serving %s at %s/v1/act%s, token %s\n", run.c_str(), server.address().c_str(),
                door ? (" and " + door->endpoint()).c_str() : "", token.c_str());
  }
  std::fflush(stdout);
  while (options.reload_seconds > 0
         && !signals.wait_for(static_cast<int>(options.reload_seconds * 1000)))
    server.reload();
  signals.wait(false);
}

} // namespace

void add_serve_policy(CLI::App& serving) {
  CLI::App* command =
      serving.add_subcommand("policy", "Serves a run's policy to other programs over HTTP");
  command->footer(
      "Example: troupe serve policy runs/quickstart/2026-11-21T10-00-00 --port 8900\n"
      "         curl -H \"Authorization: Bearer TOKEN\" http://127.0.0.1:8900/v1/act \\\n"
      "              -d '{\"session\": \"a\", \"first\": true, \"observation\": {\"state\": [0.1, "
      "0.2]}}'\n"
      "/v1/contract says what the policy observes. Without --checkpoint the policy follows the "
      "training: newer checkpoints replace it. It ends with SIGINT or SIGTERM.");
  auto options = std::make_shared<PolicyServing>();
  serving::PolicyServerOptions& server = options->server;
  add_stored_run(*command, options->run, "the run's folder; its version is called main");
  add_checkpoint_flags(*command, options->checkpoint, "the latest, replaced by newer ones");
  command
      ->add_option("--version", options->versions,
                   "another policy of the same contract, NAME=RUN, NAME=RUN@UPDATES or "
                   "NAME=RUN@best; may be repeated")
      ->allow_extra_args(false);
  command
      ->add_option("--share", options->shares,
                   "NAME=NUMBER: its share of the requests that name no version; default: 1 for "
                   "main, 0 for others")
      ->allow_extra_args(false);
  command
      ->add_option("--reload", options->reload_seconds,
                   "seconds between checks for newer checkpoints; 0: never")
      ->check(CLI::Range(0.0, 86400.0))
      ->capture_default_str();
  add_http_flags(*command, options->listening);
  CLI::Option* messages = command->add_option(
      "--messages", options->messages.endpoint,
      "also accepts ZeroMQ messages at tcp://<host>:<port> or ipc://<path>; * finds a port");
  CLI::Option* secret = command
                            ->add_option("--secret-key", options->secret_key,
                                         "file of `troupe keys new`: encrypts messages, needed on "
                                         "interfaces other than loopback")
                            ->needs(messages);
  secret->needs(command
                    ->add_option("--allowed-keys", options->allowed_keys,
                                 "file with the public keys of the clients that may send them")
                    ->needs(secret));
  command->add_option("--batch", server.batches.batch, "observations that are computed together")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
  command
      ->add_option("--queue", server.batches.queued, "observations that may wait; more get a 503")
      ->check(CLI::Range(1, 10'000'000))
      ->capture_default_str();
  command->add_option("--sessions", server.sessions.sessions, "sessions that the server remembers")
      ->check(CLI::Range(1, 100'000'000))
      ->capture_default_str();
  command
      ->add_option("--session-idle", options->idle_seconds,
                   "seconds after which an idle session is forgotten")
      ->check(CLI::Range(1, 1'000'000'000))
      ->capture_default_str();
  command
      ->add_option("--connections", options->listening.http.limits.connections,
                   "maximum number of connections; more are closed immediately")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  command
      ->add_option("--threads", options->listening.http.limits.threads,
                   "threads that read, compute and answer")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  command->add_flag("--json", options->json, "print address and token as JSON");
  command->callback([options] { serve_policy(*options); });
}

void add_serve(CLI::App& app) {
  CLI::App* serving = app.add_subcommand("serve", "Serves an environment or a policy");
  serving->require_subcommand(1);
  serving->footer("Example: troupe serve environment cheetah_run --count 16\n"
                  "         troupe serve policy runs/quickstart/2026-11-21T10-00-00");
  add_serve_environment(*serving);
  add_serve_policy(*serving);
}

} // namespace troupe::experiments::commands
