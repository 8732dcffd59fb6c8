#include <unistd.h>

#include <google/protobuf/stubs/common.h>
#include <torch/version.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include "collectives/communicator.hpp"
#include "env/amx.hpp"
#include "env/compiled_model.hpp"
#include "env/make/make.hpp"
#include "env/render/gl_context.hpp"
#include "env/sockets/peer_user.hpp"
#include "env/wire/context.hpp"
#include "env/wire/socket.hpp"
#include "experiments/commands/commands.hpp"
#include "experiments/commands/json.hpp"
#include "experiments/commands/tools/machine.hpp"
#include "experiments/report/video.hpp"
#include "experiments/run_folder/run_folder.hpp"
#include "learner/nn/kernels/precision.hpp"
#include "learner/nn/kernels/product_choice.hpp"
#include "learner/nn/kernels/rounded_product.hpp"

namespace troupe::experiments::commands {
namespace {

void find_versions(std::vector<Finding>& out) {
  out.push_back({"Troupe", Level::good, TROUPE_VERSION});
  out.push_back({"LibTorch", Level::good, TORCH_VERSION});
  out.push_back({"MuJoCo", Level::good, env::mujoco_version()});
  out.push_back({"CAF", Level::good, TROUPE_CAF_VERSION});
  out.push_back(
      {"ZeroMQ", Level::good,
       env::wire::zeromq_version() + (env::wire::zeromq_encrypts() ? " with CURVE" : "")});
  out.push_back({"Protobuf", Level::good,
                 google::protobuf::internal::VersionString(GOOGLE_PROTOBUF_VERSION)});
}

/// Without keys, a port serves only the user that the kernel names.
void find_port_users(std::vector<Finding>& out) {
  env::wire::Context context;
  env::wire::Socket port(context, env::wire::SocketType::router);
  const bool known = env::wire::is_own_user(env::wire::server_user(port.bind("tcp://127.0.0.1:*")));
  out.push_back(
      {"ports", known ? Level::good : Level::bad,
       known ? "on the loopback interface serve only this user"
             : "the kernel does not show which user owns a connection (sock_diag, /proc/net/tcp): "
               "runs over processes need keys (troupe keys cluster DIR, --keys DIR)"});
}

void find_gl(std::vector<Finding>& out) {
  try {
    const env::GlInfo info = env::gl_of_this_thread(env::GlBackend::automatic)->info();
    std::string text = info.backend + "; " + info.vendor + "; " + info.renderer;
    if (info.software) {
      text += "; slow software rendering; the ray caster works without it";
    }
    out.push_back({"OpenGL", info.software ? Level::warning : Level::good, text});
  } catch (const std::exception& failure) {
    out.push_back({"OpenGL", Level::warning,
                   std::string(failure.what()) + "; the ray caster draws without it"});
  }
}

void find_models(const std::string& models, std::vector<Finding>& out) {
  const auto tasks = env::task_names();
  std::string first_failure;
  std::size_t found = 0;
  for (const std::string& task : tasks) {
    try {
      env::make_task(task, models);
      ++found;
    } catch (const std::exception& failure) {
      first_failure = first_failure.empty() ? failure.what() : first_failure;
    }
  }
  out.push_back({"models", found == tasks.size() ? Level::good : Level::bad,
                 std::to_string(found) + " of " + std::to_string(tasks.size()) + " tasks load"
                     + (first_failure.empty() ? "" : "; " + first_failure)});
}

void find_products(std::vector<Finding>& out) {
  const learner::ProductChoice& choice = learner::measured_products();
  std::size_t of_library = 0;
  double ours = 0, library = 0, one_part = 0, two_parts = 0; // of a wide layer
  for (const learner::ProductTiming& t : choice.timings()) {
    of_library += t.library < t.ours ? 1 : 0;
    if (t.product == learner::Product::forward && t.rows == 256 && t.inputs == 256
        && t.outputs == 256) {
      ours = t.ours;
      library = t.library;
      one_part = t.one_part;
      two_parts = t.two_parts;
    }
  }
  char text[160];
  std::snprintf(
      text, sizeof text,
      "float32: LibTorch's for %zu of %zu shapes; 256 x 256 x 256 takes %.0f us, with the "
      "kernels of this program %.0f us",
      of_library, choice.timings().size(), library * 1e6, ours * 1e6);
  std::string bfloat16 = "; no instructions for bfloat16";
  if (learner::has_bfloat16_instructions()) {
    const bool limited = std::getenv("ONEDNN_MAX_CPU_ISA") != nullptr;
    const char* amx = !env::announces_amx() ? "" : limited ? " without AMX" : " with AMX";
    bfloat16 = ", in bfloat16 " + std::to_string(std::lround(one_part * 1e6)) + " us" + amx;
    if (learner::multiplies_rounded())
      bfloat16 += ", in bfloat16x3 " + std::to_string(std::lround(two_parts * 1e6)) + " us";
  }
  const std::string file = learner::product_timings_file().string();
  out.push_back({"products", Level::good,
                 text + bfloat16
                     + (file.empty() ? std::string("; measured now (no HOME to keep it in)")
                                     : "; remove " + file + " to measure again")});
}

void find_gpu(std::vector<Finding>& out) {
  const std::string reason = collectives::nccl_unavailable_reason();
  out.push_back({"NCCL", reason.empty() ? Level::good : Level::warning,
                 reason.empty() ? "usable" : "not usable: " + reason});
}

void find_video(std::vector<Finding>& out) {
  const std::string reason = video_unavailable_reason();
  out.push_back({"videos", reason.empty() ? Level::good : Level::warning,
                 reason.empty() ? "can be written" : "cannot be written: " + reason});
}

void find_runs(const std::string& runs, std::vector<Finding>& out) {
  namespace fs = std::filesystem;
  const fs::path path = fs::absolute(runs).lexically_normal();
  fs::path existing = path; // the nearest existing folder; nothing is created here
  std::error_code error;
  while (!fs::exists(existing, error) && existing.has_relative_path()) {
    existing = existing.parent_path();
  }
  const auto space = fs::space(existing, error);
  const bool writable = ::access(existing.c_str(), W_OK) == 0 && fs::is_directory(existing, error);
  const double free_gib = error ? 0 : static_cast<double>(space.available) / (1 << 30);
  char text[64];
  std::snprintf(text, sizeof text, ", %.1f GiB free", free_gib);
  out.push_back({"runs folder",
                 !writable        ? Level::bad
                 : free_gib < 0.5 ? Level::warning
                                  : Level::good,
                 path.string() + (writable ? " can be written" : " cannot be written") + text});
}

void print(const std::vector<Finding>& findings, bool json) {
  static constexpr const char* kMarks[] = {"ok", "warning", "BAD"};
  Json all = Json::array();
  for (const Finding& finding : findings) {
    const char* mark = kMarks[static_cast<int>(finding.level)];
    if (json) {
      all.push_back({{"name", finding.name},
                     {"level", mark},
                     {"text", finding.text},
                     {"change", finding.change}});
    } else {
      std::printf("%-13s %-8s %s\n", finding.name.c_str(), mark, finding.text.c_str());
      if (!finding.change.empty()) {
        std::printf("%22s -> %s\n", "", finding.change.c_str());
      }
    }
  }
  if (json) {
    print_json(all);
  }
  std::fflush(stdout);
}

} // namespace

void add_doctor(CLI::App& app) {
  struct Options {
    std::string runs = "runs";
    std::string models;
    bool json = false;
  };
  CLI::App* command = app.add_subcommand(
      "doctor",
      "Measures this machine, checks what the program finds on it, and says what to change");
  command->footer("Example: troupe doctor --json\nExit code 1 if something is BAD.");
  auto options = std::make_shared<Options>();
  command->add_option("--runs", options->runs, "folder of runs")->capture_default_str();
  command->add_option("--models", options->models, "folder of the control suite's XML files");
  command->add_flag("--json", options->json, "as JSON");
  command->callback([options] {
    std::vector<Finding> findings;
    find_versions(findings);
    for (Finding& finding : judge_machine(measure_machine())) {
      findings.push_back(std::move(finding));
    }
    find_port_users(findings);
    find_gl(findings);
    find_models(options->models, findings);
    find_products(findings);
    find_gpu(findings);
    find_video(findings);
    find_runs(options->runs, findings);
    print(findings, options->json);
    const auto bad = std::find_if(findings.begin(), findings.end(),
                                  [](const Finding& f) { return f.level == Level::bad; });
    if (bad != findings.end()) {
      throw std::runtime_error(bad->name + ": " + bad->text);
    }
  });
}

} // namespace troupe::experiments::commands
