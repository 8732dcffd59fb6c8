#pragma once

#include <CLI/App.hpp>

#include <string>
#include <vector>

namespace troupe::experiments::commands {

/// Exit codes of the commands.
inline constexpr int kDone = 0;
inline constexpr int kFailed = 1;    // the run failed
inline constexpr int kMistake = 2;   // a mistake in flags, files or keys
inline constexpr int kAborted = 130; // ended by a second signal

/// Each function adds one command to the program. A command that ends with anything but kDone sets
/// `exit_code`. Commands throw std::invalid_argument for a mistake by the user and any other
/// exception for a failure; run_program() prints its message as the last line and chooses the exit
/// code.
void add_train(CLI::App& app, int& exit_code);
void add_resume(CLI::App& app, int& exit_code);
void add_sweep(CLI::App& app, int& exit_code);
void add_evaluate(CLI::App& app);
void add_record(CLI::App& app);
void add_export_policy(CLI::App& app);
void add_report(CLI::App& app);
void add_list(CLI::App& app);
void add_doctor(CLI::App& app);
void add_completion(CLI::App& app);
void add_new(CLI::App& app);
void add_bench(CLI::App& app);
/// Replaces this process with the benchmark program. Throws std::runtime_error if that fails.
[[noreturn]] void exec_bench(std::vector<std::string> arguments);
void add_check(CLI::App& app);
void add_check_environment(CLI::App& check); // subcommand of `check`
void add_check_likeness(CLI::App& check);    // subcommand of `check`
void add_render(CLI::App& app);
void add_dataset(CLI::App& app, int& exit_code);
void add_play(CLI::App& app);
void add_serve(CLI::App& app);
void add_serve_environment(CLI::App& serving); // subcommand of `serve`
void add_serve_policy(CLI::App& serving);      // subcommand of `serve`
void add_replay(CLI::App& app);
void add_replay_serve(CLI::App& replay); // subcommand of `replay`
void add_replay_info(CLI::App& replay);  // subcommand of `replay`
void add_keys(CLI::App& app);
void add_actor(CLI::App& app, int& exit_code);
void add_launch(CLI::App& app, int& exit_code);
void add_cluster_keys(CLI::App& keys);             // subcommand of `keys`
void show_cluster_keys(const std::string& folder); // `keys show` for cluster keys
void add_node(CLI::App& app, int& exit_code);
void add_transparent(CLI::App& app, int& exit_code);
/// Commands that operate on a live run.
void add_status(CLI::App& app);
void add_top(CLI::App& app);
void add_logs(CLI::App& app);
void add_dashboard(CLI::App& app);
void add_stop(CLI::App& app);
void add_scale(CLI::App& app);
void add_checkpoint(CLI::App& app);
void add_pause(CLI::App& app);
void add_limit(CLI::App& app);
void add_timeline(CLI::App& app);
void add_restart(CLI::App& app);

} // namespace troupe::experiments::commands
