#include "experiments/play/play_server.hpp"

#include <stdexcept>
#include <utility>

#include <nlohmann/json.hpp>

#include "env/text/number_in.hpp"
#include "experiments/play/page_files.hpp"

namespace troupe::experiments::play {
namespace {

web::Response picture_response(const PlayedPicturePtr& picture) {
  if (!picture)
    return {.status = 204, .type = "text/plain; charset=utf-8"};
  if (picture->jpeg.empty())
    return web::error_response(500, picture->problem);
  return {.type = "image/jpeg",
          .body = picture->jpeg,
          .headers = {{"Cache-Control", "no-store"},
                      {"X-Troupe-Number", std::to_string(picture->number)},
                      {"X-Troupe-State", picture->state}}};
}

web::Response busy(const char* what) {
  web::Response made = web::error_response(503, what);
  made.headers.emplace_back("Retry-After", "1");
  return made;
}

std::uint64_t number_after(const web::Request& request) {
  const std::string text = request.parameter("after");
  const auto after = env::number_in<std::uint64_t>(text);
  if (!text.empty() && !after)
    throw std::invalid_argument("after must be the number of a picture, from 0");
  return after.value_or(0);
}

} // namespace

PlayServer::PlayServer(Player& player, About about, const web::HttpOptions& http,
                       const std::string& token)
    : player_(player),
      about_(std::move(about)),
      server_(http),
      access_(token, server_.address(), "play") {
  server_.start(web::HttpServer::DeferringHandler(
      [this](const web::Request& request, web::HttpServer::Reply reply) {
        answer(request, std::move(reply));
      }));
}

void PlayServer::send_picture(const web::Request& request, web::HttpServer::Reply reply) {
  const auto shared = std::make_shared<web::HttpServer::Reply>(std::move(reply));
  if (!player_.next_picture(number_after(request), [shared](const PlayedPicturePtr& picture) {
        (*shared)(picture_response(picture));
      }))
    (*shared)(busy("too many pages wait for pictures; close some"));
}

void PlayServer::answer(const web::Request& request, web::HttpServer::Reply reply) {
  if (auto refusal = access_.refusal(request)) {
    reply(std::move(*refusal));
  } else if (request.path == "/api/picture") {
    send_picture(request, std::move(reply));
  } else if (request.path == "/api/commands") {
    reply(request.method != "POST" ? web::error_response(405, "/api/commands takes a POST")
          : player_.obey(read_commands(request.body))
              ? web::Response{.body = "{}"}
              : busy("too many commands wait; send fewer at a time"));
  } else if (request.path == "/api/about") {
    const nlohmann::ordered_json json = {{"run", about_.run},
                                         {"task", about_.task},
                                         {"agent", about_.agent},
                                         {"updates", about_.updates}};
    reply({.body = json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)});
  } else {
    reply(web::page_reply(request, find_page_file(request.path)));
  }
}

} // namespace troupe::experiments::play
