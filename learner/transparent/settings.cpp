#include "learner/transparent/settings.hpp"

#include <cstdlib>
#include <stdexcept>
#include <vector>

#include "env/text/number_in.hpp"

namespace troupe::learner::transparent {
namespace {

constexpr const char* kPrefix = "TROUPE_TRANSPARENT_";
constexpr int kLongestTimeout = 86'400; // seconds
constexpr int kRarestCheck = 1'000'000; // steps

[[noreturn]] void refuse(const std::string& name, const std::string& value,
                         const std::string& rule) {
  throw std::invalid_argument(kPrefix + name + "=" + value + " must be " + rule
                              + "; start the program with `troupe transparent`, which sets it");
}

template <class Choice>
Choice one_of(const Variables& variables, const std::string& name, const char* first,
              const char* second, Choice if_first, Choice if_second, Choice otherwise) {
  const std::string value = variables(kPrefix + name);
  if (value.empty())
    return otherwise;
  if (value != first && value != second)
    refuse(name, value, std::string(first) + " or " + second);
  return value == first ? if_first : if_second;
}

int number(const Variables& variables, const std::string& name, int least, int most,
           int otherwise) {
  const std::string value = variables(kPrefix + name);
  if (value.empty())
    return otherwise;
  const auto result = env::number_in<int>(value, least, most);
  if (!result)
    refuse(name, value, "a number from " + std::to_string(least) + " to " + std::to_string(most));
  return *result;
}

} // namespace

Settings read_settings(const Variables& variables) {
  Settings settings;
  settings.backend = variables(std::string(kPrefix).append("BACKEND"));
  settings.batch =
      one_of(variables, "BATCH", "keep", "divide", Batch::keep, Batch::divide, settings.batch);
  settings.tail = one_of(variables, "TAIL", "pad", "drop", Tail::pad, Tail::drop, settings.tail);
  settings.evaluation = one_of(variables, "EVALUATION", "whole", "part", Evaluation::whole,
                               Evaluation::part, settings.evaluation);
  settings.buffers =
      one_of(variables, "BUFFERS", "rank0", "own", Buffers::rank0, Buffers::own, settings.buffers);
  settings.overlap = one_of(variables, "OVERLAP", "on", "off", true, false, settings.overlap);
  settings.rank0_writes = number(variables, "RANK0_WRITES", 0, 1, 0) == 1;
  settings.line_buffered = number(variables, "LINE_BUFFERED", 0, 1, 0) == 1;
  settings.timeout_seconds =
      number(variables, "TIMEOUT", 1, kLongestTimeout, settings.timeout_seconds);
  settings.check_every = number(variables, "CHECK_EVERY", 0, kRarestCheck, settings.check_every);
  return settings;
}

std::vector<std::string> to_environment(const Settings& settings) {
  const auto line = [](const char* name, const std::string& value) {
    return std::string(kPrefix) + name + "=" + value;
  };
  return {line("BACKEND", settings.backend),
          line("BATCH", settings.batch == Batch::keep ? "keep" : "divide"),
          line("TAIL", settings.tail == Tail::pad ? "pad" : "drop"),
          line("EVALUATION", settings.evaluation == Evaluation::whole ? "whole" : "part"),
          line("BUFFERS", settings.buffers == Buffers::rank0 ? "rank0" : "own"),
          line("OVERLAP", settings.overlap ? "on" : "off"),
          line("RANK0_WRITES", settings.rank0_writes ? "1" : "0"),
          line("LINE_BUFFERED", settings.line_buffered ? "1" : "0"),
          line("TIMEOUT", std::to_string(settings.timeout_seconds)),
          line("CHECK_EVERY", std::to_string(settings.check_every))};
}

std::string environment_variable(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value ? value : "";
}

} // namespace troupe::learner::transparent
