#pragma once

#include <CLI/App.hpp>

#include <functional>
#include <string>

namespace troupe::experiments::commands {

/// What a command leaves behind: main() returns it.
inline constexpr int kDone = 0;
inline constexpr int kFailed = 1;    // the run failed
inline constexpr int kMistake = 2;   // flags, files, keys
inline constexpr int kAborted = 130; // a second signal

/// Each adds one command to the program; `exit_code` is set when it was run. A command throws
/// std::invalid_argument for a mistake of the user's, anything else for a failure; main() turns
/// both into the last line and the exit code.
void add_train(CLI::App& app, int& exit_code);
void add_resume(CLI::App& app, int& exit_code);
void add_sweep(CLI::App& app, int& exit_code);
void add_evaluate(CLI::App& app, int& exit_code);
void add_list(CLI::App& app, int& exit_code);
void add_doctor(CLI::App& app, int& exit_code);
void add_bench(CLI::App& app, int& exit_code);
void add_check(CLI::App& app, int& exit_code);
void add_check_environment(CLI::App& check, int& exit_code); // below `check`
void add_check_likeness(CLI::App& check, int& exit_code);    // below `check`
void add_render(CLI::App& app, int& exit_code);
void add_dataset(CLI::App& app, int& exit_code);
void add_serve(CLI::App& app, int& exit_code);
void add_replay(CLI::App& app, int& exit_code);
void add_replay_serve(CLI::App& replay, int& exit_code); // below `replay`
void add_replay_info(CLI::App& replay, int& exit_code);  // below `replay`
void add_keys(CLI::App& app, int& exit_code);
void add_actor(CLI::App& app, int& exit_code);
void add_launch(CLI::App& app, int& exit_code);
void add_cluster_keys(CLI::App& keys, int& exit_code); // below `keys`
void show_cluster_keys(const std::string& folder);     // what `keys show` prints of a folder
void add_node(CLI::App& app, int& exit_code);
void add_transparent(CLI::App& app, int& exit_code);

} // namespace troupe::experiments::commands
