#pragma once

#include <string>

#include <CLI/CLI.hpp>

#include "experiments/web/http_server.hpp"

namespace troupe::experiments::commands {

/// Where a server listens and who may access it.
struct HttpChoice {
  web::HttpOptions http = {};
  std::string token_file = {};

  /// Throws the same exceptions as web::token_of().
  std::string token() const;
};

/// Adds --address, --port, --certificate, --key and --token-file.
void add_http_flags(CLI::App& command, HttpChoice& choice);

} // namespace troupe::experiments::commands
