#pragma once

#include <string>

#include <CLI/CLI.hpp>

#include "experiments/web/http_server.hpp"

namespace troupe::experiments::commands {

/// Where a server listens, and who may ask it.
struct HttpChoice {
  web::HttpOptions http = {};
  std::string token_file = {};

  /// Throws as web::token_of() does.
  std::string token() const;
};

/// --address, --port, --certificate, --key and --token-file.
void add_http_flags(CLI::App& command, HttpChoice& choice);

} // namespace troupe::experiments::commands
