#include "experiments/web/http_server.hpp"

#include <pthread.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <utility> // Asio's headers need it but do not include it
#include <vector>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/host_name.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl/ssl_stream.hpp>

#include "experiments/web/client_waits.hpp"
#include "experiments/web/request_parser.hpp"

namespace troupe::experiments::web {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using Message = http::response<http::string_body>;

constexpr std::chrono::milliseconds kRetryPeriod{100};
constexpr std::chrono::milliseconds kLongestLook{1000}; // for clients that are late
constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

using TlsStream = beast::ssl_stream<beast::tcp_stream>;

Message message_of(Response response, bool keep_alive, bool head) {
  constexpr unsigned kVersion = 11;
  Message reply(static_cast<http::status>(response.status), kVersion);
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

/// The status of the answer to a request that could not be read; 0 if the client has gone.
int status_of(const beast::error_code& error) {
  if (error == http::error::header_limit) {
    return 431;
  }
  if (error == http::error::body_limit) {
    return 413;
  }
  const bool gone = error == http::error::end_of_stream || error == asio::error::eof
                    || error == asio::error::connection_reset || error == beast::error::timeout
                    || error == asio::error::operation_aborted
                    || error == asio::error::bad_descriptor;
  return gone ? 0 : 400;
}

} // namespace

struct HttpServer::Parts {
  explicit Parts(const HttpOptions& options)
      : limits(options.limits),
        thread_name(options.thread_name),
        context(limits.threads),
        acceptor(context, {asio::ip::make_address(options.address), options.port}) {}

  void use_certificate(const HttpOptions& options) {
    tls = std::make_unique<asio::ssl::context>(asio::ssl::context::tls_server);
    tls->set_options(asio::ssl::context::no_tlsv1 | asio::ssl::context::no_tlsv1_1);
    beast::error_code error;
    if (tls->use_certificate_chain_file(options.certificate.string(), error); error)
      throw std::invalid_argument(options.certificate.string()
                                  + ": is not a PEM certificate: " + error.message());
    if (tls->use_private_key_file(options.key.string(), asio::ssl::context::pem, error); error)
      throw std::invalid_argument(options.key.string() + ": is not the private key of "
                                  + options.certificate.string() + ": " + error.message());
  }

  std::chrono::seconds patience() const { return std::chrono::seconds(limits.seconds); }

  /// Ends the connections of late clients. A timer of each connection would cost each request
  /// several system calls.
  asio::awaitable<void> end_late() {
    asio::steady_timer next(context);
    beast::error_code error;
    while (!error) {
      next.expires_after(std::min(kLongestLook, std::chrono::milliseconds(limits.seconds * 125)));
      co_await next.async_wait(asio::redirect_error(asio::use_awaitable, error));
      silent.end_late();
      unread.end_late();
    }
  }

  /// The answer of a handler that may reply later. Resumes on the connection's executor.
  asio::awaitable<Response> deferred(const Request& request) {
    return asio::async_initiate<const asio::use_awaitable_t<>, void(Response)>(
        [this, &request](auto completion) {
          const auto executor = asio::get_associated_executor(completion);
          auto waiting = std::make_shared<decltype(completion)>(std::move(completion));
          const Reply reply = [executor, waiting](Response response) {
            asio::post(executor, [waiting, response = std::move(response)]() mutable {
              std::move (*waiting)(std::move(response));
            });
          };
          try {
            deferring(request, reply);
          } catch (const std::invalid_argument& mistake) {
            reply(error_response(400, mistake.what()));
          } catch (const std::exception& failure) {
            reply(error_response(500, failure.what()));
          }
        },
        asio::use_awaitable);
  }

  asio::awaitable<Response> answer(RequestParser& parser) {
    Request& request = parser.request();
    if (!parse_target(parser.target(), request)) {
      co_return error_response(400, "the address is malformed");
    }
    if (deferring) {
      co_return co_await deferred(request);
    }
    try {
      co_return handler(request);
    } catch (const std::invalid_argument& mistake) {
      co_return error_response(400, mistake.what());
    } catch (const std::exception& failure) {
      co_return error_response(500, failure.what());
    }
  }

  template <typename Stream>
  asio::awaitable<void> serve(Stream& stream) {
    beast::flat_buffer buffer(limits.header_bytes + limits.body_bytes);
    beast::error_code error;
    for (bool more = true; more;) {
      RequestParser parser(limits.header_bytes, limits.body_bytes);
      {
        const Waiting waits(silent, beast::get_lowest_layer(stream), patience());
        co_await http::async_read_header(stream, buffer, parser,
                                         asio::redirect_error(asio::use_awaitable, error));
        if (!error && parser.awaits_continue() && buffer.size() == 0) {
          co_await asio::async_write(stream, asio::buffer(kContinue),
                                     asio::redirect_error(asio::use_awaitable, error));
        }
        if (!error && !parser.is_done()) {
          co_await http::async_read(stream, buffer, parser,
                                    asio::redirect_error(asio::use_awaitable, error));
        }
      }
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
        response = co_await answer(parser); // no limit applies while the handler works
      }
      const Message message =
          message_of(std::move(response), more, parser.request().method == "HEAD");
      const Waiting waits(unread, beast::get_lowest_layer(stream), patience());
      http::response_serializer<http::string_body> serializer(message);
      co_await http::async_write(stream, serializer,
                                 asio::redirect_error(asio::use_awaitable, error));
      more = more && !error;
    }
  }

  asio::awaitable<void> connect(beast::tcp_stream stream) {
    beast::error_code error;
    stream.socket().set_option(asio::ip::tcp::no_delay(true), error);
    if (tls) {
      TlsStream secret(std::move(stream), *tls);
      {
        const Waiting waits(silent, beast::get_lowest_layer(secret), patience());
        co_await secret.async_handshake(asio::ssl::stream_base::server,
                                        asio::redirect_error(asio::use_awaitable, error));
      }
      if (!error) {
        co_await serve(secret);
      }
      close(beast::get_lowest_layer(secret));
    } else {
      co_await serve(stream);
      close(stream);
    }
    --connections;
  }

  static void close(beast::tcp_stream& stream) {
    beast::error_code ignored;
    stream.socket().shutdown(asio::ip::tcp::socket::shutdown_both, ignored);
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
      if (error) { // out of file descriptors: try again later
        retry.expires_after(kRetryPeriod);
        co_await retry.async_wait(asio::redirect_error(asio::use_awaitable, error));
        continue;
      }
      // Twice the limit: the connections that make room need a moment to end.
      if (connections >= limits.connections
          && (connections >= 2 * limits.connections || !silent.end_oldest())) {
        continue; // closes it
      }
      ++connections;
      beast::tcp_stream stream(std::move(socket));
      const auto executor = stream.get_executor();
      asio::co_spawn(executor, connect(std::move(stream)), asio::detached);
    }
  }

  void run() {
    asio::co_spawn(context, accept(), asio::detached);
    asio::co_spawn(context, end_late(), asio::detached);
    for (int i = 0; i < limits.threads; ++i) {
      threads.emplace_back([this] {
        ::pthread_setname_np(::pthread_self(), thread_name.c_str());
        context.run();
      });
    }
  }

  Handler handler;
  DeferringHandler deferring;
  HttpLimits limits;
  std::string thread_name;
  ClientWaits silent;                      // for requests
  ClientWaits unread;                      // for clients to read answers
  std::unique_ptr<asio::ssl::context> tls; // null: no TLS
  asio::io_context context;
  asio::ip::tcp::acceptor acceptor;
  std::atomic<int> connections = 0;
  std::vector<std::jthread> threads;
};

HttpServer::HttpServer(const HttpOptions& options) {
  const std::string place = options.address + ":" + std::to_string(options.port);
  beast::error_code error;
  const asio::ip::address address = asio::ip::make_address(options.address, error);
  if (error) {
    throw std::invalid_argument(
        "--address " + options.address
        + ": must be the numeric address of an interface, such as 127.0.0.1 or 0.0.0.0");
  }
  if (options.certificate.empty() != options.key.empty()) {
    throw std::invalid_argument("a certificate and its key go together; give both or none");
  }
  if (!address.is_loopback() && options.certificate.empty()) {
    throw std::invalid_argument("--address " + options.address
                                + ": other hosts can reach it, which needs TLS; give --certificate "
                                  "and --key, or listen on 127.0.0.1");
  }
  try {
    parts_ = std::make_unique<Parts>(options);
  } catch (const boost::system::system_error& failure) {
    throw std::runtime_error(place + ": cannot listen: " + failure.code().message()
                             + "; choose another --port, or 0 for any");
  }
  if (!options.certificate.empty()) {
    parts_->use_certificate(options);
  }
}

void HttpServer::start(Handler handler) {
  parts_->handler = std::move(handler);
  parts_->run();
}

void HttpServer::start(DeferringHandler handler) {
  parts_->deferring = std::move(handler);
  parts_->run();
}

void HttpServer::post(std::function<void()> task) {
  asio::post(parts_->context, std::move(task));
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

std::string HttpServer::address() const {
  const auto place = parts_->acceptor.local_endpoint();
  const std::string host =
      place.address().is_unspecified() ? asio::ip::host_name() : place.address().to_string();
  return (parts_->tls ? "https://" : "http://")
         + (host.find(':') != std::string::npos ? "[" + host + "]" : host) + ":"
         + std::to_string(place.port());
}

} // namespace troupe::experiments::web
