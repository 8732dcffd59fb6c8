#include "experiments/commands/running/http_flags.hpp"

#include "experiments/web/secrets.hpp"

namespace troupe::experiments::commands {

std::string HttpChoice::token() const {
  return token_file.empty() ? web::new_token() : web::token_of(token_file);
}

void add_http_flags(CLI::App& command, HttpChoice& choice) {
  command
      .add_option("--address", choice.http.address,
                  "address of the interface; any other than loopback needs --certificate")
      ->capture_default_str();
  command.add_option("--port", choice.http.port, "default: a free one")
      ->check(CLI::Range(1, 65535));
  CLI::Option* certificate =
      command.add_option("--certificate", choice.http.certificate, "PEM file, for TLS");
  command.add_option("--key", choice.http.key, "PEM file of the certificate's key")
      ->needs(certificate);
  command.add_option(
      "--token-file", choice.token_file,
      "file with the token, created if it does not exist; default: a new token each time");
}

} // namespace troupe::experiments::commands
