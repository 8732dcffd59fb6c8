#include <sys/utsname.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "env/text/joined.hpp"
#include "experiments/commands/commands.hpp"
#include "experiments/commands/folders.hpp"
#include "experiments/run_folder/origin.hpp"
#include "experiments/run_folder/run_folder.hpp"
#include "experiments/statistics/comparison_page.hpp"

namespace troupe::experiments::commands {
namespace {

struct ReportFlags {
  std::vector<std::string> places;
  std::string out = "report.html";
  std::string markdown;
  std::string latex;
  std::string references;
};

/// "Troupe 0.1.0 on Linux 6.1 x86_64, AMD EPYC, 2 threads"
std::string machine_text() {
  utsname system{};
  ::uname(&system);
  const std::string model = processor_name();
  return std::string("Written by Troupe ") + TROUPE_VERSION + " on " + system.sysname + " "
         + system.release + " " + system.machine + (model.empty() ? "" : ", " + model) + ", "
         + std::to_string(std::thread::hardware_concurrency()) + " threads.";
}

/// The file of --references, given by path or by the name of an included one.
std::filesystem::path references_file(const std::string& given) {
  std::vector<std::string> included;
  std::error_code ignored;
  if (std::filesystem::is_regular_file(given, ignored)) {
    return given;
  }
  for (const auto& folder : found_folders("configs/published")) {
    for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
      const std::string name = entry.path().stem().string();
      if (entry.path().extension() != ".csv" || name == "sources") {
        continue;
      }
      if (given == name) {
        return entry.path();
      }
      included.push_back(name);
    }
  }
  std::sort(included.begin(), included.end());
  throw std::invalid_argument("--references " + given + ": there is no such file; included are: "
                              + env::joined(included, " and "));
}

void report_runs(const ReportFlags& options) {
  std::vector<std::string> left_out;
  auto runs = find_compared(options.places, left_out);
  References references;
  if (!options.references.empty())
    references = read_references(references_file(options.references), runs);
  const Comparison comparison(std::move(runs), std::move(references));
  for (const std::string& line : left_out)
    std::fprintf(stderr, "%s\n", line.c_str());
  for (const std::string& task : comparison.left_out_tasks())
    std::fprintf(stderr, "%s: is left out of the table of methods, because not all have it\n",
                 task.c_str());
  write_text(options.out, comparison_page(comparison, machine_text()));
  if (!options.markdown.empty())
    write_text(options.markdown, comparison_markdown(comparison));
  if (!options.latex.empty())
    write_text(options.latex, comparison_latex(comparison));
  std::printf("%s", comparison_markdown(comparison).c_str());
  std::printf("%zu runs, %zu methods, %zu tasks -> %s\n", comparison.runs().size(),
              comparison.methods().size(), comparison.tasks().size(), options.out.c_str());
}

} // namespace

void add_report(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "report", "Compares runs in one HTML page: curves with intervals, interquartile means, "
                "performance profiles, probabilities of improvement, references");
  command->footer("Example: troupe report old=runs/first new=runs/second --out report.html\n"
                  "A folder is a run's, a sweep's or one above them; without a name before it, a "
                  "method is named after its agent.");
  auto options = std::make_shared<ReportFlags>();
  command->add_option("RUNS", options->places, "folders of runs, or method=folder")->required();
  command->add_option("--out", options->out, "the page; replaced if it exists")
      ->capture_default_str();
  command->add_option("--markdown", options->markdown, "the tables as Markdown");
  command->add_option("--latex", options->latex, "the tables as LaTeX");
  command->add_option("--references", options->references,
                      "published scores: a CSV with the header task,name,score, in which the names "
                      "low and high set a task's scale; or a table of configs/published, by path "
                      "or name (pixels or states), at the most steps that all runs have reached");
  command->callback([options] { report_runs(*options); });
}

} // namespace troupe::experiments::commands
