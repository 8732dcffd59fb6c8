#pragma once

#include <functional>
#include <string>
#include <vector>

/// The settings of the preloaded library, from environment variables: see README.md.
namespace troupe::learner::transparent {

enum class Batch { keep, divide }; // a loader's batch size is that of one rank | of all together
enum class Tail { pad, drop };     // samples that do not divide by the ranks: some again | left out
enum class Evaluation { whole, part }; // loaders read while gradients are off: all data | its part
enum class Buffers { rank0, own };     // BatchNorm's statistics and the like, after each step

struct Settings {
  std::string backend; // of the communicator; empty: the fastest there is
  Batch batch = Batch::keep;
  Tail tail = Tail::pad;
  Evaluation evaluation = Evaluation::whole;
  Buffers buffers = Buffers::rank0;
  bool overlap = true;        // gradients are sent during backward
  bool rank0_writes = false;  // the other ranks' files are nameless ones
  bool line_buffered = false; // standard output goes out line by line
  int timeout_seconds = 300;  // of every meeting of the ranks
  int check_every = 100;      // steps between comparisons of the parameters; 0: none
};

/// The value of a variable, or an empty string.
using Variables = std::function<std::string(const std::string& name)>;

/// Throws std::invalid_argument naming the variable, its value and what it must be.
Settings read_settings(const Variables& variables);

/// What `troupe transparent` sets for its processes, in the form "NAME=value".
std::vector<std::string> to_environment(const Settings& settings);

/// A variable of this process.
std::string environment_variable(const std::string& name);

} // namespace troupe::learner::transparent
