#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <optional>
#include <stdexcept>

#include "env/make/make.hpp"
#include "env/text/joined.hpp"
#include "experiments/cluster/cluster.hpp"
#include "experiments/cluster/cluster_environment.hpp"
#include "experiments/cluster/manifests.hpp"
#include "experiments/cluster/placement_table.hpp"
#include "experiments/cluster/slurm_script.hpp"
#include "experiments/commands/cluster/started_nodes.hpp"
#include "experiments/commands/commands.hpp"
#include "experiments/commands/folders.hpp"
#include "experiments/commands/json.hpp"
#include "experiments/commands/running/deployment.hpp"
#include "experiments/commands/running/resumption.hpp"
#include "experiments/commands/running/run_choice.hpp"
#include "experiments/commands/running/run_experiment.hpp"
#include "experiments/commands/running/run_flags.hpp"
#include "experiments/commands/running/signals.hpp"
#include "experiments/commands/running/stored_run.hpp"
#include "experiments/config/config.hpp"
#include "experiments/config/resume_changes.hpp"
#include "experiments/launchers/command_text.hpp"
#include "experiments/launchers/make_launcher.hpp"
#include "experiments/run_folder/unfinished_run.hpp"

namespace troupe::experiments::commands {
namespace {

namespace fs = std::filesystem;

struct LaunchOptions {
  std::string cluster, experiment, run;
  std::vector<std::string> overrides;
  std::string runs; // empty: the one in the cluster file
  std::string listen, launcher, manifests;
  bool trusted_network = false;
  bool resume = false;
  bool dry_run = false;
  DashboardChoice dashboard;
  bool json = false;
  int interrupted_code = kDone;
};

/// A fully planned run on a cluster. It is complete before anything starts.
struct LaunchPlan {
  Cluster cluster;
  Experiment experiment;
  actors::Placer placer;
  LauncherKind launcher = LauncherKind::none;
  std::vector<std::string> sets = {}; // keys of the experiment that the cluster file sets
};

Cluster chosen_cluster(const LaunchOptions& options) {
  const bool tasks = options.cluster == "TF_CONFIG";
  Cluster cluster =
      tasks || options.cluster == "torchrun"
          ? cluster_from_environment(process_variable, tasks ? "tf_config" : "torchrun")
                .value()
                .cluster
          : load_cluster(find_config(options.cluster, cluster_folders(), {"cluster"}));
  if (!options.runs.empty()) {
    cluster.set_runs(options.runs);
  }
  if (options.trusted_network) {
    cluster.set_trusted_network(true);
  }
  if (!options.listen.empty()) {
    cluster.mutable_head()->set_listen(options.listen);
    cluster.mutable_head()->clear_address();
  }
  return options.listen.empty() && options.runs.empty()
             ? cluster
             : parse_cluster(resolved_text(cluster),
                             options.listen.empty() ? "--runs" : "--listen");
}

LauncherKind chosen_launcher(const LaunchOptions& options, const Cluster& cluster) {
  return options.launcher == "none" ? LauncherKind::none : launcher_of(cluster);
}

/// Plans a run of the experiment or, if `run` is not empty, the continuation of that run with its
/// own configuration, because the experiment file may have been edited.
LaunchPlan plan_launch(const LaunchOptions& options, Cluster cluster, const fs::path& run = {}) {
  const auto sets = cluster_overrides(cluster);
  auto overrides = sets;
  overrides.insert(overrides.end(), options.overrides.begin(), options.overrides.end());
  Experiment experiment =
      run.empty() ? load_experiment(find_config(options.experiment, config_folders()), overrides)
                  : load_experiment(run / "config.textproto");
  actors::Placer placer = make_placer(cluster, experiment, actors::resources_of_this_host());
  if (placer.nodes().empty()) {
    throw ConfigError({options.cluster
                       + ": names no nodes, so the placement is known only when nodes join; add "
                         "node { … } to plan ahead"});
  }
  if (const std::string problem = placer.place_all(role_counts(experiment)); !problem.empty()) {
    throw ConfigError({options.cluster + ": " + problem});
  }
  const auto launcher = chosen_launcher(options, cluster);
  return {std::move(cluster), std::move(experiment), std::move(placer), launcher, sets};
}

void print_plan(const LaunchPlan& plan, bool json) {
  if (!json) {
    std::printf("%s", placement_table(plan.placer).c_str());
    return;
  }
  Json out = {{"cluster", plan.cluster.name()},
              {"launcher", launcher_name(plan.launcher)},
              {"experiment", plan.experiment.name()}};
  out.update(placement_json(plan.placer));
  print_json(out);
}

void write_file(const fs::path& file, const std::string& text) {
  std::error_code error;
  fs::create_directories(file.parent_path(), error);
  std::ofstream out(file, std::ios::binary | std::ios::trunc);
  out << text;
  out.close();
  if (!out) {
    throw std::runtime_error(file.string()
                             + ": cannot be written; name a writable folder with --manifests");
  }
}

/// Writes manifests for Kubernetes or Slurm and prints the commands that submit them.
void write_manifests(const LaunchPlan& plan, const fs::path& folder) {
  std::map<std::string, std::string> files;
  std::string next;
  if (plan.cluster.has_kubernetes()) {
    files = kubernetes_manifests(plan.cluster, plan.experiment);
    next = secret_command(plan.cluster) + "   # once\nkubectl apply -k "
           + launchers::quoted(folder.string()) + "\n";
  } else if (plan.cluster.has_slurm()) {
    Cluster cluster = plan.cluster;
    cluster.set_keys(cluster.keys().empty() ? "" : fs::absolute(cluster.keys()).string());
    const fs::path home = fs::absolute(folder).lexically_normal();
    files = {{"cluster.textproto", resolved_text(cluster)},
             {"experiment.textproto", resolved_text(plan.experiment)},
             {"job.sh", slurm_script(cluster, {.cluster = home / "cluster.textproto",
                                               .experiment = home / "experiment.textproto",
                                               .runs = fs::absolute(cluster.runs())})}};
    next = "sbatch " + launchers::quoted((home / "job.sh").string()) + "\n";
  } else {
    throw std::invalid_argument(
        "--manifests " + folder.string() + ": cluster " + plan.cluster.name()
        + " has neither a kubernetes nor a slurm block; add one, or omit --manifests");
  }
  for (const auto& [name, text] : files) {
    write_file(folder / name, text);
  }
  std::printf("%s: %zu files. Then:\n%s", folder.c_str(), files.size(), next.c_str());
}

/// The run to resume; without a folder for a new run.
UnfinishedRun former_run(const LaunchPlan& plan, const LaunchOptions& options) {
  if (!options.run.empty()) {
    return {.run = find_run(local_run(options.run, plan.cluster.runs()), plan.cluster.runs())};
  }
  if (!options.resume) {
    return {};
  }
  return find_unfinished_run(plan.cluster.runs(), plan.experiment.name(),
                             [&](const fs::path& run) { return fit_of_run(run, plan.experiment); });
}

MakeNodes node_maker(const Cluster& cluster, LauncherKind launcher) {
  return [cluster, launcher](const fs::path& run) {
    return std::make_unique<StartedNodes>(cluster, launcher, run);
  };
}

/// Runs the head: starts the nodes, trains on them and stops them.
int run_on_nodes(const LaunchPlan& plan, const LaunchOptions& options, const HeadLife& life) {
  const auto here = actors::resources_of_this_host();
  const auto config = prepare_run(plan.experiment);
  actors::check_run(config, true);
  const bool others_start_nodes =
      plan.launcher == LauncherKind::none || plan.launcher == LauncherKind::kubernetes;
  UnfinishedRun resumed =
      life.goes_on() ? UnfinishedRun{.run = life.run} : former_run(plan, options);
  fs::path& before = resumed.run;
  std::optional<Experiment> former;
  bool takes_over = life.takes_over();
  if (!before.empty()) {
    former = load_experiment(before / "config.textproto");
    takes_over = takes_over
                 || (life.restarts == 0 && others_start_nodes
                     && may_take_over(before, *former, plan.experiment, config));
    if (!takes_over && options.run.empty() && complete_checkpoints(before).empty()) {
      before.clear(); // there is nothing to continue from
    } else {
      check_changes(*former, plan.experiment);
    }
  }
  const RunFolder folder =
      before.empty()
          ? RunFolder::create(plan.cluster.runs(), plan.experiment.name(),
                              std::chrono::system_clock::now(), resolved_text(plan.experiment))
          : RunFolder::open(before);
  const Resumption resumption = takes_over ? prepare_takeover(folder, config)
                                : before.empty()
                                    ? Resumption{}
                                    : prepare_resumption(folder, *former, plan.experiment, config);
  const HeldSignals held; // the launcher's threads call this too
  NodeStarter nodes(life.starter, node_maker(plan.cluster, plan.launcher), folder.path(),
                    plan.cluster.supervision().grace_seconds());
  const HostPort listen = head_endpoint(plan.cluster);
  RunOptions run{.json = options.json, .notes = resumption.notes};
  if (!resumed.note.empty()) {
    run.notes.push_back(resumed.note);
  }
  if (takes_over && life.restarts == 0) {
    run.notes.emplace_back(
        "the previous head has just died; this one is looking for its processes");
  }
  if (!plan.sets.empty()) {
    run.notes.push_back("the cluster sets " + env::joined(plan.sets));
  }
  run.grace_seconds = plan.experiment.checkpoint().grace_seconds() > 0
                          ? plan.experiment.checkpoint().grace_seconds()
                          : plan.cluster.supervision().grace_seconds();
  const HostPort reached = head_endpoint(plan.cluster, true);
  run.interrupted_code = options.interrupted_code;
  run.head_address = reached.host;
  run.head_port = static_cast<std::uint16_t>(reached.port);
  run.dashboard = options.dashboard;
  run.keys = plan.cluster.keys();
  run.life = life;
  run.without_takeover = resumption.without_takeover;
  run.deployment = actors::Deployment{
      .nodes =
          actors::DeploymentNodes{
              .placer = make_placer(plan.cluster, plan.experiment, here),
              .join_seconds = plan.cluster.supervision().join_seconds(),
              // A process that shares a core must be able to move to an idle one.
              .pin = plan.cluster.pin() && !plan.cluster.oversubscribe()},
      .listen = listen.host,
      .head_port = static_cast<std::uint16_t>(listen.port),
      .keys = read_keys(plan.cluster.keys()),
      .trusted_network = plan.cluster.trusted_network(),
      .listening =
          [&](std::uint16_t port) {
            std::fprintf(stderr, "the head listens at %s:%d\n", listen.host.c_str(), port);
            nodes.start(port);
          },
      .outlives_head = life.keeper > 0};
  return run_experiment(plan.experiment, config, folder, resumption.checkpoint, run);
}

void launch(const LaunchOptions& options, int& exit_code) {
  if (!options.run.empty() && !options.resume) {
    throw std::invalid_argument("RUN is \"" + options.run
                                + "\": a run to continue needs --resume; add it, or leave RUN out");
  }
  const Cluster cluster = chosen_cluster(options); // read once, also for later heads
  if (options.dry_run || !options.manifests.empty()) {
    const LaunchPlan plan = plan_launch(options, cluster);
    if (options.manifests.empty()) {
      print_plan(plan, options.json);
    } else {
      write_manifests(plan, options.manifests);
    }
    return;
  }
  const auto head = [&](const HeadLife& life) {
    const LaunchPlan plan = plan_launch(options, cluster, life.goes_on() ? life.run : fs::path());
    if (life.restarts == 0) {
      print_plan(plan, options.json);
    }
    return run_on_nodes(plan, options, life);
  };
  exit_code = watch_head(head, [&](int socket) {
    serve_node_starts(socket, node_maker(cluster, chosen_launcher(options, cluster)));
  });
}

} // namespace

void add_launch(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand(
      "launch", "Trains an experiment on the nodes of a cluster: places its actors, starts them");
  command->footer("Example: troupe launch laptop quickstart --dry-run\n"
                  "         troupe launch kubernetes cartpole_swingup_pixels --manifests deploy\n"
                  "         troupe launch laptop quickstart --resume "
                  "s3://bucket/runs/quickstart/2026-11-21T10-00-00\n"
                  "`troupe list clusters` lists the included ones, `troupe list cluster-keys` the "
                  "keys of a cluster's file.\nAs CLUSTER, TF_CONFIG and torchrun stand for the "
                  "cluster that their variables describe.\nA head that is killed is started again, "
                  "up to actors.restarts times, and takes over the nodes and what runs on them.");
  auto options = std::make_shared<LaunchOptions>();
  command->add_option("CLUSTER", options->cluster, "cluster file or name, TF_CONFIG or torchrun")
      ->required();
  command->add_option("EXPERIMENT", options->experiment, "experiment file or name")->required();
  command->add_option("RUN", options->run,
                      "with --resume: the run's folder, or s3://bucket/prefix/NAME/TIME of "
                      "checkpoint.store, whose newest checkpoint is fetched to the folder of runs");
  add_overrides(*command, options->overrides, "key=value of the experiment; may be repeated");
  command->add_option("--runs", options->runs, "folder of runs; replaces the cluster's");
  command->add_option("--listen", options->listen,
                      "ADDRESS:PORT of the head; replaces head.listen and head.address");
  command
      ->add_option("--launcher", options->launcher,
                   "none: wait for nodes that are started by other means")
      ->check(CLI::IsMember({"none"}));
  command->add_flag("--trusted-network", options->trusted_network,
                    "states that no stranger can reach or read the network of the nodes: learners "
                    "exchange gradients without encryption; NCCL and MPI between hosts need it");
  command->add_flag(
      "--resume", options->resume,
      "resumes RUN; without it the newest unfinished run of this experiment, if there "
      "is one: one with the same keys, otherwise one whose checkpoints fit");
  command
      ->add_option(
          "--interrupted-code", options->interrupted_code,
          "exit code after SIGINT or SIGTERM, for systems that restart after a code other than 0: "
          "nodes wait for the next head unless the code is 0")
      ->check(CLI::Range(0, 125))
      ->capture_default_str();
  add_dashboard_flags(*command, options->dashboard);
  command->add_flag("--dry-run", options->dry_run, "only print the placement");
  command->add_option("--manifests", options->manifests,
                      "only write manifests for Kubernetes or Slurm to this folder");
  command->add_flag("--json", options->json, "the placement as JSON");
  command->callback([options, &exit_code] { launch(*options, exit_code); });
}

} // namespace troupe::experiments::commands
