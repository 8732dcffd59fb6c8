#include "experiments/report/status_text.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <vector>

#include <nlohmann/json.hpp>

#include "experiments/report/text_table.hpp"
#include "experiments/run_folder/clock.hpp"

namespace troupe::experiments {
namespace {

namespace wire = actors::wire;
using Json = nlohmann::ordered_json;
constexpr double kStill = 2; // seconds without progress before a warning

std::string bytes_text(double bytes) {
  const std::array<const char*, 5> units = {"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  for (; bytes >= 1024 && unit + 1 < units.size(); ++unit) {
    bytes /= 1024;
  }
  return shown_number(bytes, unit == 0 ? "%.0f " : "%.1f ") + units[unit];
}

std::string phase_text(const wire::HeadReport& head) {
  std::string text = head.phase() + ", " + duration_text(head.age()) + " after the head's start";
  if (head.still() >= kStill) {
    text += "; nothing has moved for " + duration_text(head.still());
  }
  return text;
}

std::string events_text(const wire::HeadReport& head) {
  const int restarts = head.restarts();
  std::string text = restarts == 0   ? ""
                     : restarts == 1 ? ", restarted once"
                                     : ", restarted " + std::to_string(restarts) + " times";
  if (head.had_processes() > 0) {
    text += ", took over " + std::to_string(head.took_over()) + " processes of "
            + std::to_string(head.had_processes());
  }
  if (head.refused_connections() > 0) {
    text += ", refused " + std::to_string(head.refused_connections()) + " connections of strangers";
  }
  return text;
}

std::string checkpoint_text(const wire::HeadReport& head) {
  std::string text = head.checkpoint().empty()
                         ? "none yet"
                         : head.checkpoint() + ", " + duration_text(head.checkpoint_age()) + " ago";
  if (head.failed_copies() > 0) {
    text += "; " + std::to_string(head.failed_copies()) + " not copied to checkpoint.store";
  }
  return head.writing() ? text + "; one is being written" : text;
}

std::string limit_text(const wire::HeadReport& head) {
  if (head.samples_per_insert() == 0) {
    return "no ratio of samples to inserts";
  }
  return shown_number(head.samples_per_insert(), "%g") + " samples per insert, within "
         + shown_number(head.error_buffer(), "%g") + " samples in each shard"
         + (head.limit_changed() ? "; changed by `troupe limit`" : "");
}

std::string summary(const HeadPlace& place, const wire::RunStatus& status) {
  const auto& counters = status.counters();
  std::vector<TextRow> rows = {
      {"run", status.head().folder()},
      {"", phase_text(status.head())},
      {"head", "process " + std::to_string(place.process) + " on " + place.host + ", at "
                   + place.address + ":" + std::to_string(place.port)
                   + (place.keys ? ", TLS" : ", only this host") + ", since " + place.started
                   + events_text(status.head())},
      {"steps", std::to_string(counters.environment_steps()) + " of the environment ("
                    + shown_number(counters.environment_steps_per_second()) + " /s), "
                    + std::to_string(counters.updates()) + " updates ("
                    + shown_number(counters.updates_per_second()) + " /s), "
                    + std::to_string(counters.samples()) + " samples ("
                    + shown_number(counters.samples_per_second()) + " /s)"},
      {"replay", std::to_string(counters.replay_items()) + " items, "
                     + bytes_text(static_cast<double>(counters.replay_bytes()))
                     + (counters.replay_failed_spills() == 0
                            ? ""
                            : ", " + std::to_string(counters.replay_failed_spills())
                                  + " failed spills: items were removed instead")},
      {"rate limit", limit_text(status.head())},
      {"return", shown_number(counters.episode_return()) + ", "
                     + std::to_string(counters.episodes()) + " episodes"},
      {"checkpoint", checkpoint_text(status.head())}};
  return text_table(rows);
}

std::string nodes_text(const wire::RunStatus& status) {
  std::map<std::string, int> processes;
  for (const auto& process : status.supervisor().processes()) {
    processes[process.node()] += process.state() == "up" ? 1 : 0;
  }
  std::vector<TextRow> rows = {{"node", "address", "state", "last beat", "processes"}};
  for (const auto& node : status.supervisor().nodes()) {
    rows.push_back(
        {node.name().empty() ? "(the head's)" : node.name(),
         node.address().empty() ? "?" : node.address(), node.there() ? "up" : "missing",
         node.there() && !node.name().empty() ? shown_number(node.last_beat()) + " s ago" : "-",
         std::to_string(processes[node.name()])});
  }
  return text_table(rows);
}

std::string processes_text(const wire::RunStatus& status) {
  const auto& supervisor = status.supervisor();
  std::vector<TextRow> rows = {{"process", "node", "id", "state", "for", "restarts"}};
  for (const auto& process : supervisor.processes()) {
    rows.push_back({process.role() + "/" + std::to_string(process.index()),
                    process.node().empty() ? "-" : process.node(),
                    process.process() == 0 ? "-" : std::to_string(process.process()),
                    process.state(), duration_text(process.age()),
                    std::to_string(process.restarts()) + " of "
                        + std::to_string(supervisor.restarts_allowed())});
  }
  return text_table(rows);
}

/// JSON has no infinities or NaN; the library writes null for them.
Json counters_json(const wire::RunCounters& counters) {
  return {{"environment_steps", counters.environment_steps()},
          {"agent_steps", counters.agent_steps()},
          {"episodes", counters.episodes()},
          {"updates", counters.updates()},
          {"inserts", counters.inserts()},
          {"samples", counters.samples()},
          {"replay_items", counters.replay_items()},
          {"replay_bytes", counters.replay_bytes()},
          {"replay_failed_spills", counters.replay_failed_spills()},
          {"environment_steps_per_second", counters.environment_steps_per_second()},
          {"updates_per_second", counters.updates_per_second()},
          {"samples_per_second", counters.samples_per_second()},
          {"parameter_lag", counters.parameter_lag()},
          {"episode_return", counters.episode_return()},
          {"training_seconds", counters.training_seconds()},
          {"processor_seconds", counters.processor_seconds()},
          {"target", counters.target_steps()}};
}

Json supervisor_json(const wire::SupervisorReport& supervisor) {
  Json nodes = Json::array(), processes = Json::array();
  for (const auto& node : supervisor.nodes()) {
    nodes.push_back({{"name", node.name()},
                     {"address", node.address()},
                     {"up", node.there()},
                     {"last_beat_seconds", node.last_beat()}});
  }
  for (const auto& process : supervisor.processes()) {
    processes.push_back({{"role", process.role()},
                         {"index", process.index()},
                         {"node", process.node()},
                         {"process", process.process()},
                         {"state", process.state()},
                         {"seconds", process.age()},
                         {"starts", process.incarnation() + 1},
                         {"restarts", process.restarts()},
                         {"waits", process.waits()}});
  }
  return {{"nodes", nodes},
          {"processes", processes},
          {"restarts_allowed", supervisor.restarts_allowed()},
          {"restart_minutes", supervisor.restart_minutes()}};
}

} // namespace

std::string status_text(const HeadPlace& head, const wire::RunStatus& status) {
  std::string text = summary(head, status) + "\n" + nodes_text(status) + "\n"
                     + processes_text(status) + "restarts: those of the last "
                     + shown_number(status.supervisor().restart_minutes(), "%g")
                     + " minutes count\n";
  if (status.waits_size() > 0) {
    text += "\nwaiting requests\n";
    for (const auto& line : status.waits()) {
      text += "  " + line + "\n";
    }
  }
  if (status.head().failures_size() > 0) {
    text += "\nlast failures\n";
    for (const auto& failure : status.head().failures()) {
      text += "  " + duration_text(failure.age()) + " ago: " + failure.text() + "\n";
    }
  }
  return text;
}

std::string status_json(const HeadPlace& head, const wire::RunStatus& status) {
  Json failures = Json::array(), waits = Json::array();
  for (const auto& failure : status.head().failures()) {
    failures.push_back({{"seconds_ago", failure.age()}, {"text", failure.text()}});
  }
  for (const auto& line : status.waits()) {
    waits.push_back(line);
  }
  Json out = {
      {"run", status.head().folder()},
      {"phase", status.head().phase()},
      {"seconds", status.head().age()},
      {"still_seconds", status.head().still()},
      {"head",
       {{"host", head.host},
        {"process", head.process},
        {"address", head.address},
        {"port", head.port},
        {"keys", head.keys},
        {"started", head.started},
        {"restarts", status.head().restarts()},
        {"took_over", status.head().took_over()},
        {"had_processes", status.head().had_processes()},
        {"refused_connections", status.head().refused_connections()}}},
      {"counters", counters_json(status.counters())},
      {"environments", status.head().environments()},
      {"rate_limiter", status.head().samples_per_insert() == 0
                           ? Json(nullptr)
                           : Json{{"samples_per_insert", status.head().samples_per_insert()},
                                  {"error_buffer", status.head().error_buffer()},
                                  {"changed", status.head().limit_changed()}}},
      {"checkpoint",
       {{"path", status.head().checkpoint()},
        {"seconds_ago", status.head().checkpoint_age()},
        {"writing", status.head().writing()},
        {"failed_copies", status.head().failed_copies()}}}};
  out.update(supervisor_json(status.supervisor()));
  out["waits"] = waits;
  out["failures"] = failures;
  return out.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string cut_to_screen(const std::string& text, int rows, int columns) {
  std::string shown;
  std::size_t begin = 0;
  for (int row = 0; row < rows && begin < text.size(); ++row) {
    const auto end = std::min(text.find('\n', begin), text.size());
    std::size_t length = 0; // bytes; continuation bytes of UTF-8 take no column
    for (int column = 0; begin + length < end; ++length) {
      const bool starts = (static_cast<unsigned char>(text[begin + length]) & 0xC0U) != 0x80U;
      if (starts && ++column > columns) {
        break;
      }
    }
    shown += text.substr(begin, length) + "\n";
    begin = end + 1;
  }
  return shown;
}

} // namespace troupe::experiments
