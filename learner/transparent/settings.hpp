#pragma once

#include <functional>
#include <string>
#include <vector>

/// The settings of the preloaded library, read from environment variables; see README.md.
namespace troupe::learner::transparent {

enum class Batch { keep, divide };     // a loader's batch size is per rank | for all ranks together
enum class Tail { pad, drop };         // leftover samples: fill up with repeats | leave out
enum class Evaluation { whole, part }; // samples while gradients are off: all | this rank's part
enum class Buffers { rank0, own };     // BatchNorm's statistics etc.: rank 0's | each rank's own

struct Settings {
  std::string backend; // the communicator's; empty: the fastest available
  Batch batch = Batch::keep;
  Tail tail = Tail::pad;
  Evaluation evaluation = Evaluation::whole;
  Buffers buffers = Buffers::rank0;
  bool overlap = true;        // gradients are sent during backward
  bool rank0_writes = false;  // other ranks write to unnamed files
  bool line_buffered = false; // flush standard output after each line
  int timeout_seconds = 300;  // deadline of every call between ranks
  int check_every = 100;      // steps between comparisons of the parameters; 0: none
};

/// Returns the value of a variable, or an empty string.
using Variables = std::function<std::string(const std::string& name)>;

/// Throws std::invalid_argument naming the variable, its value and the allowed values.
Settings read_settings(const Variables& variables);

/// Returns the variables that `troupe transparent` sets for its processes, as "NAME=value".
std::vector<std::string> to_environment(const Settings& settings);

/// Returns a variable of this process, or an empty string.
std::string environment_variable(const std::string& name);

} // namespace troupe::learner::transparent
