#include "experiments/config/config.hpp"
#include "experiments/report/curve.hpp"
#include "experiments/report/summary.hpp"

namespace troupe::experiments {

std::string report_html(const Experiment& experiment, const Summary& summary,
                        const std::string& curve, const std::filesystem::path& video) {
  std::string out = "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta "
                    "name=\"viewport\" content=\"width=device-width\"><title>"
                    + escaped(experiment.name()) + "</title>\n<style>" + kCurveStyle
                    + ":root{color-scheme:light dark;background:Canvas;"
                      "color:CanvasText}body{font-family:sans-serif;max-width:60em;margin:2em auto;"
                      "padding:0 1em}td{padding:.2em 1em .2em 0;vertical-align:top}td+td{"
                      "overflow-wrap:anywhere}pre{background:#8882;padding:1em;overflow:auto}"
                      "svg,video{max-width:100%;height:auto}"
                      "</style></head><body><main>\n<h1>"
                    + escaped(experiment.name()) + "</h1>\n" + curve + "<table>\n";
  for (const auto& [name, value] : summary) {
    out += "<tr><td>" + escaped(name) + "</td><td>" + escaped(value) + "</td></tr>\n";
  }
  out += "</table>\n";
  if (!video.empty()) {
    // A relative path, so that a copy of the run's folder stays complete.
    out += "<video controls src=\"videos/" + escaped(video.filename().string()) + "\"></video>\n";
  }
  return out + "<h2>Configuration</h2>\n<pre tabindex=\"0\">" + escaped(resolved_text(experiment))
         + "</pre>\n</main></body></html>\n";
}

} // namespace troupe::experiments
