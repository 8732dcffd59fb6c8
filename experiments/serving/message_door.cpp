#include "experiments/serving/message_door.hpp"

#include <chrono>
#include <deque>
#include <mutex>
#include <span>
#include <stdexcept>
#include <utility>

#include <sys/eventfd.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "env/wire/socket.hpp"

namespace troupe::experiments::serving {
namespace {

using Json = nlohmann::json;
using std::chrono::steady_clock;

constexpr std::size_t kLongestId = 256;         // maximum length in bytes of the JSON
constexpr std::size_t kLongestHead = 16U << 10; // bytes

env::wire::Frame frame_of(std::string text) {
  const auto kept = std::make_shared<const std::string>(std::move(text));
  return env::wire::Frame::view(std::as_bytes(std::span(*kept)), kept);
}

/// Builds the request from a message. Throws std::invalid_argument with the key and the rule.
web::Request request_of(const Json& head, const env::wire::Message& message) {
  const auto text = [&](const char* key, const std::string& absent) {
    const auto found = head.find(key);
    if (found == head.end())
      return absent;
    if (!found->is_string())
      throw std::invalid_argument(std::string(key) + " must be a string");
    return found->get<std::string>();
  };
  web::Request request;
  if (!message.frames.empty())
    request.body.assign(reinterpret_cast<const char*>(message.frames[0].bytes().data()),
                        message.frames[0].size());
  request.method = text("method", request.body.empty() ? "GET" : "POST");
  if (!web::parse_target(text("path", "/"), request))
    throw std::invalid_argument("path has a malformed escape");
  request.headers = {{"authorization", text("authorization", "")},
                     {"content-type", text("type", "application/json")}};
  return request;
}

} // namespace

/// Finished answers from any thread. Outlives the door.
struct MessageDoor::Answers {
  struct Ready {
    std::string peer;
    Json id;
    web::Response response;
  };

  Answers() : descriptor(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
    if (descriptor < 0)
      throw std::runtime_error("cannot create an eventfd; raise `ulimit -n`");
  }
  ~Answers() { ::close(descriptor); }
  Answers(const Answers&) = delete;
  Answers& operator=(const Answers&) = delete;

  void wake() const {
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(descriptor, &one, sizeof one);
  }
  /// Counts another unanswered request; false if there are `most` of them.
  bool begin(std::size_t most) {
    const std::scoped_lock lock(mutex);
    if (waiting >= most)
      return false;
    ++waiting;
    return true;
  }
  void put(Ready one) {
    {
      const std::scoped_lock lock(mutex);
      --waiting;
      if (closed)
        return;
      ready.push_back(std::move(one));
    }
    wake();
  }
  std::deque<Ready> take() {
    std::uint64_t count = 0;
    [[maybe_unused]] const ssize_t got = ::read(descriptor, &count, sizeof count);
    const std::scoped_lock lock(mutex);
    return std::exchange(ready, {});
  }

  const int descriptor;
  std::mutex mutex;
  std::deque<Ready> ready;
  std::size_t waiting = 0; // number of unanswered requests
  bool closed = false;
};

/// The door's thread.
class MessageDoor::Clerk {
public:
  Clerk(env::wire::Socket socket, std::shared_ptr<Answers> answers, std::size_t waiting,
        std::size_t body_bytes, web::HttpServer::DeferringHandler handler)
      : socket_(std::move(socket)),
        answers_(std::move(answers)),
        waiting_(waiting),
        body_bytes_(body_bytes),
        handler_(std::move(handler)) {}

  void run(const std::stop_token& stop) {
    constexpr std::chrono::seconds kLook{1};
    while (!stop.stop_requested()) {
      env::wire::Message message;
      const auto received = socket_.try_receive(message);
      if (received == env::wire::Socket::Received::message)
        take(message);
      else if (received == env::wire::Socket::Received::oversized)
        refuse(message.peer, Json(), 413,
               "a message has a head of at most " + std::to_string(kLongestHead)
                   + " bytes, a body of at most " + std::to_string(body_bytes_)
                   + " bytes, and no other parts");
      for (Answers::Ready& answer : answers_->take())
        send(answer);
      if (received == env::wire::Socket::Received::nothing)
        socket_.wait(steady_clock::now() + kLook, answers_->descriptor);
    }
  }

private:
  void take(const env::wire::Message& message) {
    const Json head = Json::parse(message.header, nullptr, false);
    const Json id = head.is_object() ? head.value("id", Json()) : Json();
    if (!head.is_object()
        || id.dump(-1, ' ', true, Json::error_handler_t::replace).size() > kLongestId)
      return refuse(message.peer, Json(), 400,
                    "the first part must be a JSON object, its id at most 256 bytes");
    if (!answers_->begin(waiting_))
      return refuse(message.peer, id, 503,
                    std::to_string(waiting_) + " requests are already waiting; try again later");
    const auto reply = [answers = answers_, peer = message.peer, id](web::Response response) {
      answers->put({peer, id, std::move(response)});
    };
    try { // the request must live until it is answered
      const auto request = std::make_shared<const web::Request>(request_of(head, message));
      handler_(*request, [reply, request](web::Response response) { reply(std::move(response)); });
    } catch (const std::invalid_argument& mistake) {
      reply(web::error_response(400, mistake.what()));
    } catch (const std::exception& failure) {
      reply(web::error_response(500, failure.what()));
    }
  }

  void refuse(const std::string& peer, const Json& id, int status, const std::string& text) {
    Answers::Ready answer{peer, id, web::error_response(status, text)};
    send(answer);
  }

  void send(Answers::Ready& answer) {
    Json head{{"status", answer.response.status}, {"type", answer.response.type}};
    if (!answer.id.is_null())
      head["id"] = answer.id;
    env::wire::Message message{.peer = answer.peer,
                               .header = head.dump(-1, ' ', true, Json::error_handler_t::replace),
                               .frames = {}};
    message.frames.push_back(frame_of(std::move(answer.response.body)));
    socket_.send(std::move(message), steady_clock::now()); // false: the client has gone
  }

  env::wire::Socket socket_;
  std::shared_ptr<Answers> answers_;
  std::size_t waiting_;
  std::size_t body_bytes_;
  web::HttpServer::DeferringHandler handler_;
};

MessageDoor::MessageDoor(env::wire::Context& context, MessageDoorOptions options,
                         web::HttpServer::DeferringHandler handler)
    : answers_(std::make_shared<Answers>()) {
  env::wire::Socket socket(context, env::wire::SocketType::router,
                           {.max_frame_bytes = options.body_bytes,
                            .max_frames = 1,
                            .max_header_bytes = kLongestHead,
                            .max_message_bytes = options.body_bytes + (32 << 10),
                            .server_keys = std::move(options.keys)});
  endpoint_ = socket.bind(options.endpoint);
  auto clerk = std::make_shared<Clerk>(std::move(socket), answers_, options.waiting,
                                       options.body_bytes, std::move(handler));
  thread_ = std::jthread([clerk](const std::stop_token& stop) { clerk->run(stop); });
}

MessageDoor::~MessageDoor() {
  {
    const std::scoped_lock lock(answers_->mutex);
    answers_->closed = true;
  }
  thread_.request_stop();
  answers_->wake();
  thread_.join();
}

} // namespace troupe::experiments::serving
