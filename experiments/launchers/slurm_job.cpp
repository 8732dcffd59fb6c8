#include <charconv>
#include <cstdlib>
#include <fstream>
#include <stdexcept>

#include "experiments/launchers/command_text.hpp"
#include "experiments/launchers/slurm.hpp"

namespace troupe::experiments::launchers {
namespace {

using Clock = ChildProcesses::Clock;
constexpr std::chrono::seconds kJobLongestCall{60};
constexpr std::chrono::milliseconds kJobLook{200}; // interval between checks of a job's state
constexpr std::size_t kMostNames = 65'536;

[[noreturn]] void bad_list(std::string_view list) {
  throw std::invalid_argument(
      std::string("the node list is \"") + std::string(list.substr(0, 200))
      + "\"; it must be as Slurm writes it, gpu1,node[01-03,7], of at most 65536 nodes");
}

long number(std::string_view digits, std::string_view list) {
  long value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size() || digits.empty() || value < 0)
    bad_list(list);
  return value;
}

/// "01-03,7" -> 01, 02, 03, 7
std::vector<std::string> expand_range(std::string_view ranges, std::string_view list) {
  std::vector<std::string> result;
  while (true) {
    const std::size_t comma = std::min(ranges.find(','), ranges.size());
    const std::string_view range = ranges.substr(0, comma);
    const std::size_t dash = range.find('-');
    const std::string_view first = range.substr(0, dash);
    const long begin = number(first, list);
    const long end = dash == std::string_view::npos ? begin : number(range.substr(dash + 1), list);
    if (end < begin || static_cast<std::size_t>(end - begin) >= kMostNames - result.size())
      bad_list(list);
    for (long i = begin; i <= end; ++i) {
      std::string digits = std::to_string(i);
      if (digits.size() < first.size())
        digits.insert(0, first.size() - digits.size(), '0');
      result.push_back(std::move(digits));
    }
    if (comma == ranges.size())
      return result;
    ranges.remove_prefix(comma + 1);
  }
}

/// Expands one name with any number of brackets.
std::vector<std::string> expand_name(std::string_view name, std::string_view list) {
  const std::size_t open = name.find('[');
  if (open == std::string_view::npos) {
    if (name.empty() || name.find(']') != std::string_view::npos)
      bad_list(list);
    return {std::string(name)};
  }
  const std::size_t close = name.find(']', open);
  if (close == std::string_view::npos)
    bad_list(list);
  const auto middles = expand_range(name.substr(open + 1, close - open - 1), list);
  const auto rest = name.substr(close + 1);
  const auto tails = rest.empty() ? std::vector<std::string>{""} : expand_name(rest, list);
  if (middles.size() * tails.size() > kMostNames)
    bad_list(list);
  std::vector<std::string> result;
  for (const std::string& middle : middles)
    for (const std::string& tail : tails)
      result.push_back(std::string(name.substr(0, open)) + middle + tail);
  return result;
}

/// The value of "Key=", up to the next space, in a line of scontrol's output.
std::string value_of(const std::string& line, const std::string& key) {
  const std::size_t at = (" " + line).find(" " + key + "=");
  if (at == std::string::npos)
    return "";
  const std::size_t begin = at + key.size() + 1;
  return line.substr(begin, line.find(' ', begin) - begin);
}

} // namespace

std::vector<std::string> parse_node_list(std::string_view list) {
  std::vector<std::string> result;
  std::size_t begin = 0;
  int depth = 0;
  for (std::size_t i = 0; i <= list.size(); ++i) {
    if (i < list.size() && list[i] == '[')
      ++depth;
    if (i < list.size() && list[i] == ']')
      --depth;
    if (depth < 0 || depth > 1)
      bad_list(list);
    if (i < list.size() && (list[i] != ',' || depth > 0))
      continue;
    const auto names = expand_name(list.substr(begin, i - begin), list);
    if (result.size() + names.size() > kMostNames)
      bad_list(list);
    result.insert(result.end(), names.begin(), names.end());
    begin = i + 1;
  }
  return result;
}

std::optional<std::vector<std::string>> allocated_nodes() {
  const char* job = std::getenv("SLURM_JOB_ID");
  const char* list = std::getenv("SLURM_JOB_NODELIST");
  if (job == nullptr || *job == '\0' || list == nullptr)
    return std::nullopt;
  return parse_node_list(list);
}

SlurmJob::State parse_job(const std::string& line) {
  SlurmJob::State state{.name = value_of(line, "JobState"), .reason = value_of(line, "Reason")};
  if (state.name.empty())
    throw std::invalid_argument(std::string("unexpected output of scontrol: ")
                                + line.substr(0, 200));
  state.output = value_of(line, "StdOut");
  const std::string restarts = value_of(line, "Restarts");
  std::from_chars(restarts.data(), restarts.data() + restarts.size(), state.restarts);
  const std::string code = value_of(line, "ExitCode"); // "1:0": exit code and signal
  std::from_chars(code.data(), code.data() + code.size(), state.exit_code);
  // Every other state is followed by one of these or by another time in the queue.
  for (const char* end : {"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL",
                          "OUT_OF_MEMORY", "BOOT_FAIL", "DEADLINE", "PREEMPTED", "REVOKED"})
    state.ended = state.ended || state.name == end;
  state.good = state.name == "COMPLETED";
  return state;
}

SlurmJob::SlurmJob(const std::filesystem::path& script, const std::vector<std::string>& options)
    : sbatch_(find_program("sbatch", "the Slurm launcher", "install slurm-client")),
      scontrol_(find_program("scontrol", "the Slurm launcher", "install slurm-client")),
      scancel_(find_program("scancel", "the Slurm launcher", "install slurm-client")) {
  std::vector<std::string> words{sbatch_, "--parsable"};
  words.insert(words.end(), options.begin(), options.end());
  words.push_back(script.string());
  const Finished found = run(words);
  if (found.end.good && !found.lines.empty())
    id_ = found.lines.back().substr(0, found.lines.back().find(';')); // "id;cluster"
  if (id_.empty() || id_.find_first_not_of("0123456789") != std::string::npos)
    throw std::runtime_error(std::string("`") + command_text(words) + "` "
                             + (found.late ? "did not end within 60 s" : found.end.how)
                             + (found.lines.empty() ? "" : ": " + found.lines.back()));
}

Finished SlurmJob::run(std::vector<std::string> words) {
  return run_to_end(children_, {.words = std::move(words)}, Clock::now() + kJobLongestCall);
}

std::optional<SlurmJob::State> SlurmJob::state() {
  const Finished found = run({scontrol_, "show", "job", "-o", id_});
  if (!found.end.good || found.lines.empty())
    return std::nullopt;
  State state = parse_job(found.lines.front());
  output_ = state.output;
  return state;
}

std::vector<std::string> SlurmJob::new_output() {
  std::vector<std::string> lines;
  if (output_.empty())
    return lines;
  std::ifstream in(output_, std::ios::binary | std::ios::ate);
  if (!in)
    return lines;
  if (in.tellg() < read_) // the job restarted and truncated its output
    read_ = 0;
  in.seekg(read_);
  std::string text((std::istreambuf_iterator<char>(in)), {});
  read_ += static_cast<std::streamoff>(text.size());
  partial_ += text;
  for (std::size_t end = 0; (end = partial_.find('\n')) != std::string::npos;
       partial_.erase(0, end + 1))
    lines.push_back(partial_.substr(0, end));
  return lines;
}

bool SlurmJob::cancel(std::chrono::milliseconds grace) {
  const auto ended_by = [&](Clock::time_point deadline) {
    while (true) {
      const auto now = state();
      if (now && now->ended)
        return true;
      if (Clock::now() >= deadline)
        return false;
      std::this_thread::sleep_for(kJobLook); // Slurm sends no notification
    }
  };
  const auto before = state();
  if (before && before->name != "PENDING" && grace.count() > 0) {
    run({scancel_, "--full", "--signal=TERM",
         id_}); // script and steps; it must not be requeued because of this
    if (ended_by(Clock::now() + grace))
      return true;
  }
  run({scancel_, id_});
  return ended_by(Clock::now() + kJobLongestCall);
}

} // namespace troupe::experiments::launchers
