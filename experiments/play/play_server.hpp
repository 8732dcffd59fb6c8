#pragma once

#include <cstdint>
#include <string>

#include "experiments/play/player.hpp"
#include "experiments/web/access.hpp"
#include "experiments/web/http_server.hpp"

namespace troupe::experiments::play {

/// The page's information about the run.
struct About {
  std::string run;
  std::string task;
  std::string agent;
  std::int64_t updates = 0;
};

/// Serves a Player's page to clients with the token (web::Access).
///
///   GET /api/picture?after=N   a picture with a higher number: image/jpeg, with the headers
///                              X-Troupe-Number and X-Troupe-State (JSON); 204 if nothing
///                              changes; 500 with the reason if there is no picture
///   POST /api/commands         see read_commands()
///   GET /api/about             JSON
class PlayServer {
public:
  /// Throws the exceptions of HttpServer.
  PlayServer(Player& player, About about, const web::HttpOptions& http, const std::string& token);
  ~PlayServer() { // the player's answers use the server
    player_.stop();
    server_.stop();
  }

  std::string address() const { return access_.address(); } // contains the token

private:
  void answer(const web::Request& request, web::HttpServer::Reply reply);
  void send_picture(const web::Request& request, web::HttpServer::Reply reply);

  Player& player_;
  About about_;
  web::HttpServer server_;
  web::Access access_;
};

} // namespace troupe::experiments::play
