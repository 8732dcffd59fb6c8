#include "experiments/commands/help_format.hpp"

#include <CLI/CLI.hpp>

#include <cmath>
#include <cstdlib>
#include <set>
#include <string>

#include "env/text/joined.hpp"
#include "learner/agents/options.hpp"

namespace troupe::experiments::commands {
namespace {

/// "TEXT", "NUMBER" or "a|b" for CLI11's "TEXT", "INT:INT in [1 - 5]" or "TEXT:{a,b}".
std::string kind_of_value(const std::string& type) {
  if (const auto begin = type.find('{'); begin != std::string::npos) {
    std::string choices = type.substr(begin + 1, type.find('}', begin) - begin - 1);
    for (char& c : choices) {
      c = c == ',' ? '|' : c;
    }
    return choices;
  }
  const std::string plain = type.substr(0, type.find(':'));
  return plain == "INT" || plain == "UINT" || plain == "FLOAT" ? "NUMBER" : plain;
}

/// A number as CLI11 writes it, without an exponent if it is whole.
std::string bound_text(const char* text) {
  const double bound = std::strtod(text, nullptr);
  return bound == std::trunc(bound) && std::fabs(bound) < 1e18
             ? std::to_string(static_cast<long long>(bound))
             : learner::number_text(bound);
}

/// "1 to 65535" for CLI11's "INT:INT in [1 - 65535]"; empty if there is no range.
std::string range_text(const std::string& type) {
  if (type.find("NONNEGATIVE") != std::string::npos) {
    return "at least 0";
  }
  const auto begin = type.find(" in [");
  const auto middle = type.find(" - ", begin);
  if (begin == std::string::npos || middle == std::string::npos) {
    return "";
  }
  return bound_text(type.c_str() + begin + 5) + " to " + bound_text(type.c_str() + middle + 3);
}

std::string names_of(const std::set<CLI::Option*>& options) {
  return env::joined(options, ", ", [](const CLI::Option* option) { return option->get_name(); });
}

class HelpFormat : public CLI::Formatter {
public:
  std::string make_option_opts(const CLI::Option* option) const override {
    if (option->get_type_size() == 0) { // a flag
      return "";
    }
    const std::string kind = kind_of_value(option->get_type_name());
    const bool several = option->get_expected_max() == CLI::detail::expected_max_vector_size;
    const bool named = option->get_positional() && kind == "TEXT"; // its name says what it is
    return (named || kind.empty() ? "" : " " + kind) + (several ? " ..." : "");
  }

  std::string make_option_desc(const CLI::Option* option) const override {
    std::string notes;
    const auto note = [&](const std::string& before, const std::string& text) {
      if (!text.empty()) {
        notes += (notes.empty() ? "" : "; ") + before + text;
      }
    };
    note("", range_text(option->get_type_name()));
    note("default ", option->get_default_str());
    note("or the variable ", option->get_envname());
    note("needs ", names_of(option->get_needs()));
    note("not with ", names_of(option->get_excludes()));
    note("", option->get_required() ? "required" : "");
    const std::string& text = option->get_description();
    return notes.empty() ? text : text + (text.empty() ? "(" : " (") + notes + ")";
  }
};

} // namespace

std::shared_ptr<CLI::FormatterBase> help_format() {
  return std::make_shared<HelpFormat>();
}

} // namespace troupe::experiments::commands
