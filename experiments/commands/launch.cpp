#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <stdexcept>

#include "env/make.hpp"
#include "experiments/commands/commands.hpp"
#include "experiments/commands/folders.hpp"
#include "experiments/commands/json.hpp"
#include "experiments/config.hpp"
#ifdef TROUPE_HAS_ACTORS
#include "experiments/cluster.hpp"
#include "experiments/cluster_environment.hpp"
#include "experiments/manifests.hpp"
#include "experiments/placement_table.hpp"
#include "experiments/slurm_script.hpp"
#endif

namespace troupe::experiments::commands {
namespace {

namespace fs = std::filesystem;

struct LaunchOptions {
  std::string cluster, experiment;
  std::vector<std::string> overrides;
  std::string runs; // empty: the cluster's
  std::string listen, launcher, manifests;
  bool resume = false;
  bool dry_run = false;
  bool json = false;
};

#ifdef TROUPE_HAS_ACTORS

/// A run on a cluster, with everything that was found out before anything starts.
struct LaunchPlan {
  Cluster cluster;
  Experiment experiment;
  actors::Placer placer;
  LauncherKind launcher = LauncherKind::none;
};

std::optional<std::string> variable(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

/// By path, or by name in the folders of clusters.
fs::path find_cluster(const std::string& name) {
  std::error_code ignored;
  if (fs::is_regular_file(name, ignored)) {
    return name;
  }
  const auto folders = cluster_folders();
  for (const fs::path& folder : folders) {
    const fs::path file = folder / (name + ".textproto");
    if (name.find('/') == std::string::npos && fs::is_regular_file(file, ignored)) {
      return file;
    }
  }
  std::string text = name + ": there is no such file and no cluster of this name";
  const auto near = env::nearest_names(name, experiment_names(folders), 1);
  throw ConfigError({text + (near.empty() ? "" : "; did you mean " + near[0] + "?")
                     + " (`troupe list clusters` names them all)"});
}

Cluster chosen_cluster(const LaunchOptions& options) {
  const bool tasks = options.cluster == "TF_CONFIG";
  Cluster cluster =
      tasks || options.cluster == "torchrun"
          ? cluster_from_environment(variable, tasks ? "tf_config" : "torchrun").value().cluster
          : load_cluster(find_cluster(options.cluster));
  if (!options.runs.empty()) {
    cluster.set_runs(options.runs);
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

LaunchPlan plan_launch(const LaunchOptions& options) {
  Cluster cluster = chosen_cluster(options);
  auto overrides = cluster_overrides(cluster);
  overrides.insert(overrides.end(), options.overrides.begin(), options.overrides.end());
  Experiment experiment =
      load_experiment(find_experiment(options.experiment, config_folders()), overrides);
  actors::Placer placer = make_placer(cluster, experiment, actors::resources_of_this_host());
  if (placer.nodes().empty()) {
    throw ConfigError({options.cluster
                       + ": names no nodes, so where things run is known when nodes join; write "
                         "node { … } to plan ahead"});
  }
  if (const std::string problem = placer.place_all(role_counts(experiment)); !problem.empty()) {
    throw ConfigError({options.cluster + ": " + problem});
  }
  const auto launcher = options.launcher == "none" ? LauncherKind::none : launcher_of(cluster);
  return {std::move(cluster), std::move(experiment), std::move(placer), launcher};
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
                             + ": cannot be written; name a folder of yours with --manifests");
  }
}

/// What Kubernetes or Slurm takes; prints the commands that hand it over.
void write_manifests(const LaunchPlan& plan, const fs::path& folder) {
  std::map<std::string, std::string> files;
  std::string next;
  if (plan.cluster.has_kubernetes()) {
    files = kubernetes_manifests(plan.cluster, plan.experiment);
    next = secret_command(plan.cluster) + "   # once\nkubectl apply -k " + folder.string() + "\n";
  } else if (plan.cluster.has_slurm()) {
    Cluster cluster = plan.cluster;
    cluster.set_keys(cluster.keys().empty() ? "" : fs::absolute(cluster.keys()).string());
    const fs::path home = fs::absolute(folder).lexically_normal();
    files = {{"cluster.textproto", resolved_text(cluster)},
             {"experiment.textproto", resolved_text(plan.experiment)},
             {"job.sh", slurm_script(cluster, {.cluster = home / "cluster.textproto",
                                               .experiment = home / "experiment.textproto",
                                               .runs = fs::absolute(cluster.runs())})}};
    next = "sbatch " + (home / "job.sh").string() + "\n";
  } else {
    throw std::invalid_argument("--manifests " + folder.string() + ": cluster "
                                + plan.cluster.name()
                                + " has neither a kubernetes nor a slurm block; add one, or leave "
                                  "--manifests out");
  }
  for (const auto& [name, text] : files) {
    write_file(folder / name, text);
  }
  std::printf("%s: %zu files. Then:\n%s", folder.c_str(), files.size(), next.c_str());
}

void launch(const LaunchOptions& options, int& exit_code) {
  const LaunchPlan plan = plan_launch(options);
  exit_code = kDone;
  if (!options.manifests.empty()) {
    write_manifests(plan, options.manifests);
    return;
  }
  print_plan(plan, options.json);
  if (options.dry_run) {
    return;
  }
  throw std::runtime_error(
      "launch: starting nodes is not there yet; --dry-run shows the placement, "
      "--manifests writes files for Kubernetes and Slurm");
}

#else

void launch(const LaunchOptions&, int&) {
  throw std::invalid_argument("this program was built without the actors (TROUPE_COMPONENTS)");
}

#endif

} // namespace

void add_launch(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand(
      "launch", "Trains an experiment on the nodes of a cluster: places its actors, starts them");
  command->footer(
      "Example: troupe launch laptop quickstart --dry-run\n"
      "         troupe launch kubernetes cartpole_swingup_pixels --manifests deploy\n"
      "`troupe list clusters` names what comes with it, `troupe list cluster-keys` the keys of a "
      "cluster's file.\nTF_CONFIG and torchrun as CLUSTER stand for what these variables "
      "describe.");
  auto options = std::make_shared<LaunchOptions>();
  command
      ->add_option("CLUSTER", options->cluster, "a cluster's file or name, TF_CONFIG or torchrun")
      ->required();
  command->add_option("EXPERIMENT", options->experiment, "an experiment's file or name")
      ->required();
  command
      ->add_option("--set", options->overrides, "key=value of the experiment; may be given again")
      ->allow_extra_args(false);
  command->add_option("--runs", options->runs, "folder for runs, in place of the cluster's");
  command->add_option("--listen", options->listen,
                      "ADDRESS:PORT of the head, in place of head.listen and head.address");
  command->add_option("--launcher", options->launcher, "none: nodes are started by others and join")
      ->check(CLI::IsMember({"none"}));
  command->add_flag("--resume", options->resume,
                    "goes on with the experiment's latest run that has not come to its end, where "
                    "there is one");
  command->add_flag("--dry-run", options->dry_run, "only prints what would be where");
  command->add_option("--manifests", options->manifests,
                      "only writes into this folder what Kubernetes or Slurm starts it with");
  command->add_flag("--json", options->json, "the placement as JSON");
  command->callback([options, &exit_code] { launch(*options, exit_code); });
}

} // namespace troupe::experiments::commands
