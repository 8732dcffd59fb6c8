#include "experiments/dashboard/dashboard.hpp"

#include <utility>

#include "experiments/dashboard/api.hpp"
#include "experiments/dashboard/page_files.hpp"
#include "experiments/web/access.hpp"
#include "experiments/web/http_server.hpp"

namespace troupe::experiments::dashboard {
namespace {

std::string id_of(const std::filesystem::path& run, const std::filesystem::path& runs) {
  std::error_code error;
  return run.empty() ? "" : std::filesystem::relative(run, runs, error).string();
}

} // namespace

struct Dashboard::Parts {
  explicit Parts(const DashboardOptions& options)
      : api(options.runs, options.connect, id_of(options.selected, options.runs)),
        server(options.http),
        access(options.token, server.address(), "dashboard") {}

  web::Response answer(const web::Request& request) {
    if (auto refusal = access.refusal(request)) {
      return *refusal;
    }
    return Api::serves(request.path) ? api.answer(request)
                                     : web::page_reply(request, find_page_file(request.path));
  }

  Api api;
  web::HttpServer server;
  web::Access access;
};

Dashboard::Dashboard(const DashboardOptions& options) : parts_(std::make_unique<Parts>(options)) {
  parts_->server.start(
      [parts = parts_.get()](const web::Request& request) { return parts->answer(request); });
}

Dashboard::~Dashboard() {
  parts_->server.stop(); // its threads use the other members
}

std::string Dashboard::address() const {
  return parts_->access.address();
}

} // namespace troupe::experiments::dashboard
