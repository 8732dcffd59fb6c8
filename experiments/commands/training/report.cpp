#include <sys/utsname.h>

#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "experiments/commands/commands.hpp"
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

void report_runs(const ReportFlags& options) {
  std::vector<std::string> without;
  auto runs = find_compared(options.places, without);
  const Comparison comparison(std::move(runs), options.references.empty()
                                                   ? References()
                                                   : read_references(options.references));
  for (const std::string& run : without)
    std::fprintf(stderr, "%s: has no evaluation yet and is left out\n", run.c_str());
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
                      "CSV with the header task,name,score: published scores; the names low and "
                      "high set a task's scale");
  command->callback([options] { report_runs(*options); });
}

} // namespace troupe::experiments::commands
