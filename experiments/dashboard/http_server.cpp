#include "experiments/dashboard/http_server.hpp"

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <utility> // before Asio's headers, which lack it
#include <vector>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>

#include "experiments/dashboard/request_parser.hpp"

namespace troupe::experiments::dashboard {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using Reply = http::response<http::string_body>;

constexpr std::chrono::milliseconds kRetryPeriod{100};

Response answer(const HttpServer::Handler& handler, RequestParser& parser) {
  Request& request = parser.request();
  if (!parse_target(parser.target(), request)) {
    return error_response(400, "the address is malformed");
  }
  try {
    return handler(request);
  } catch (const std::invalid_argument& mistake) {
    return error_response(400, mistake.what());
  } catch (const std::exception& failure) {
    return error_response(500, failure.what());
  }
}

Reply reply_of(Response response, bool keep_alive, bool head) {
  constexpr unsigned kVersion = 11;
  Reply reply(static_cast<http::status>(response.status), kVersion);
  reply.set(http::field::content_type, response.type);
  reply.set(http::field::cache_control, "no-store");
  reply.set("X-Content-Type-Options", "nosniff");
  reply.set("Referrer-Policy", "no-referrer");
  reply.set("Cross-Origin-Resource-Policy", "same-origin");
  reply.set("Content-Security-Policy",
            "default-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; "
            "frame-ancestors 'none'");
  for (const auto& [name, value] : response.headers) {
    reply.set(name, value);
  }
  reply.keep_alive(keep_alive);
  reply.body() = std::move(response.body);
  reply.prepare_payload();
  if (head) {
    reply.body().clear();
  }
  return reply;
}

/// The answer to a request that could not be read; 0: none, the client has gone.
int status_of(const beast::error_code& error) {
  if (error == http::error::header_limit) {
    return 431;
  }
  if (error == http::error::body_limit) {
    return 413;
  }
  const bool gone = error == http::error::end_of_stream || error == asio::error::eof
                    || error == asio::error::connection_reset || error == beast::error::timeout
                    || error == asio::error::operation_aborted;
  return gone ? 0 : 400;
}

} // namespace

struct HttpServer::Parts {
  Parts(std::uint16_t port, const HttpLimits& its_limits)
      : limits(its_limits),
        context(limits.threads),
        acceptor(context, {asio::ip::address_v4::loopback(), port}) {}

  asio::awaitable<void> serve(beast::tcp_stream stream) {
    beast::flat_buffer buffer(limits.header_bytes + limits.body_bytes);
    beast::error_code error;
    for (bool more = true; more;) {
      RequestParser parser(limits.header_bytes, limits.body_bytes);
      stream.expires_after(std::chrono::seconds(limits.seconds));
      co_await http::async_read(stream, buffer, parser,
                                asio::redirect_error(asio::use_awaitable, error));
      Response response;
      if (error) {
        const int status = status_of(error);
        if (status == 0) {
          break;
        }
        more = false;
        response = error_response(status, error.message());
      } else {
        more = parser.keep_alive();
        response = answer(handler, parser);
      }
      const Reply reply = reply_of(std::move(response), more, parser.request().method == "HEAD");
      stream.expires_after(std::chrono::seconds(limits.seconds));
      http::response_serializer<http::string_body> serializer(reply);
      co_await http::async_write(stream, serializer,
                                 asio::redirect_error(asio::use_awaitable, error));
      more = more && !error;
    }
    stream.socket().shutdown(asio::ip::tcp::socket::shutdown_both, error);
    --connections;
  }

  asio::awaitable<void> accept() {
    asio::steady_timer retry(context);
    while (true) {
      beast::error_code error;
      auto socket = co_await acceptor.async_accept(
          asio::make_strand(context), asio::redirect_error(asio::use_awaitable, error));
      if (error == asio::error::operation_aborted) {
        co_return;
      }
      if (error) { // the process has no descriptors left: later perhaps
        retry.expires_after(kRetryPeriod);
        co_await retry.async_wait(asio::redirect_error(asio::use_awaitable, error));
        continue;
      }
      if (connections >= limits.connections) {
        continue; // closes it
      }
      ++connections;
      beast::tcp_stream stream(std::move(socket));
      const auto executor = stream.get_executor();
      asio::co_spawn(executor, serve(std::move(stream)), asio::detached);
    }
  }

  Handler handler;
  HttpLimits limits;
  asio::io_context context;
  asio::ip::tcp::acceptor acceptor;
  std::atomic<int> connections = 0;
  std::vector<std::jthread> threads;
};

HttpServer::HttpServer(std::uint16_t port, const HttpLimits& limits) {
  try {
    parts_ = std::make_unique<Parts>(port, limits);
  } catch (const boost::system::system_error& error) {
    throw std::runtime_error("127.0.0.1:" + std::to_string(port) + ": cannot listen: "
                             + error.code().message() + "; choose another --port, or 0 for any");
  }
}

void HttpServer::start(Handler handler) {
  parts_->handler = std::move(handler);
  asio::co_spawn(parts_->context, parts_->accept(), asio::detached);
  for (int i = 0; i < parts_->limits.threads; ++i) {
    parts_->threads.emplace_back([parts = parts_.get()] {
      ::pthread_setname_np(::pthread_self(), "dashboard");
      parts->context.run();
    });
  }
}

HttpServer::~HttpServer() {
  stop();
}

void HttpServer::stop() {
  parts_->context.stop();
  parts_->threads.clear();
}

std::uint16_t HttpServer::port() const {
  return parts_->acceptor.local_endpoint().port();
}

} // namespace troupe::experiments::dashboard
