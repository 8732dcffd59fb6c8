#include "actors/run/control.hpp"

#include <optional>
#include <utility>

#include <caf/io/all.hpp>

#include "actors/protocol/messages.hpp"
#include "actors/protocol/system.hpp"
#include "actors/remoting/remoting.hpp"

namespace troupe::actors {

namespace {

constexpr std::chrono::seconds kConnectDeadline{10};

/// Starts an actor that waits for an answer for the caller, so that the caller also notices the
/// loss of the head.
caf::actor spawn_relay(caf::actor_system& system, const caf::actor& asker,
                       const SupervisorActor& head, std::chrono::milliseconds deadline,
                       const ProtoBytes& request) {
  const auto relay = [=](caf::event_based_actor* self, const ProtoBytes& question) {
    self->request(head, deadline, control_atom_v, question)
        .then([=](const ProtoBytes& answer) { self->send(asker, control_atom_v, answer); },
              [=](caf::error& error) { self->send(asker, control_atom_v, std::move(error)); });
  };
  return system.spawn(relay, request);
}

} // namespace

struct Control::Connection {
  SystemConfig config{true};
  caf::actor_system system{config};
  Remoting remoting;
  SupervisorActor head;
  caf::scoped_actor self;

  explicit Connection(const ControlPlace& place)
      : remoting(system, {.keys = place.keys}), head(connect(place)), self(system, true) {
    self->monitor(head);
  }

private:
  SupervisorActor connect(const ControlPlace& place) {
    try {
      return remoting.connect<SupervisorActor>(place.host, place.port, kConnectDeadline);
    } catch (const std::invalid_argument&) {
      throw;
    } catch (const std::runtime_error& e) {
      throw NoHead(e.what());
    }
  }
};

Control::Control(const ControlPlace& place)
    : folder_(place.folder), connection_(std::make_unique<Connection>(place)) {}

Control::~Control() = default;

std::string Control::ask(wire::ControlRequest request, std::chrono::milliseconds deadline) {
  request.set_folder(folder_);
  request.set_deadline_seconds(std::chrono::duration<double>(deadline).count());
  auto& system = connection_->system;
  auto& self = connection_->self;
  const auto relay = spawn_relay(system, self, connection_->head, deadline, encode(request));
  std::optional<std::string> answer;
  std::string gone;
  caf::error problem;
  self->receive([&](control_atom, const ProtoBytes& got) { answer = got.bytes; },
                [&](control_atom, caf::error& error) { problem = std::move(error); },
                [&](const caf::down_msg& down) { gone = explain(system, down.reason); });
  caf::anon_send_exit(relay, caf::exit_reason::user_shutdown);
  if (answer)
    return *answer;
  if (!gone.empty())
    throw NoHead("the head went away before it answered: " + gone);
  if (problem == Fault::bad_request)
    throw std::invalid_argument(explain(system, problem));
  if (problem == Fault::stopping)
    throw NoHead("the run ended before the request was done");
  if (problem == caf::sec::request_timeout)
    throw std::runtime_error(
        "the head gave no answer within "
        + std::to_string(std::chrono::duration_cast<std::chrono::seconds>(deadline).count())
        + " s; `troupe status` shows what it waits for");
  throw std::runtime_error(explain(system, problem));
}

wire::RunStatus Control::status(std::chrono::milliseconds deadline) {
  wire::ControlRequest request;
  request.set_status(true);
  return decode<wire::RunStatus>(ProtoBytes{ask(request, deadline)});
}

void Control::stop() {
  wire::ControlRequest request;
  request.set_stop(true);
  ask(request, kConnectDeadline);
}

std::string Control::checkpoint(std::chrono::seconds deadline) {
  wire::ControlRequest request;
  request.set_checkpoint(true);
  return decode<wire::ControlDone>(ProtoBytes{ask(request, deadline)}).text();
}

std::string Control::pause(bool paused, std::chrono::seconds deadline) {
  wire::ControlRequest request;
  request.set_pause(paused);
  return decode<wire::ControlDone>(ProtoBytes{ask(request, deadline)}).text();
}

std::string Control::timeline(std::int64_t updates, std::chrono::seconds deadline) {
  wire::ControlRequest request;
  request.set_timeline(updates);
  return decode<wire::ControlDone>(ProtoBytes{ask(request, deadline)}).text();
}

std::string Control::limit(double samples_per_insert, double error_buffer,
                           std::chrono::seconds deadline) {
  wire::ControlRequest request;
  request.mutable_limit()->set_samples_per_insert(samples_per_insert);
  request.mutable_limit()->set_error_buffer(error_buffer);
  return decode<wire::ControlDone>(ProtoBytes{ask(request, deadline)}).text();
}

wire::LivePicture Control::picture(const wire::PictureOrder& order, std::chrono::seconds deadline) {
  wire::ControlRequest request;
  *request.mutable_picture() = order;
  auto done = decode<wire::ControlDone>(ProtoBytes{ask(request, deadline)});
  const auto& made = done.picture();
  constexpr std::int64_t kMostSide = 4096;
  if (made.height() < 1 || made.height() > kMostSide || made.width() < 1 || made.width() > kMostSide
      || std::ssize(made.rgb()) != std::int64_t{3} * made.height() * made.width())
    throw std::runtime_error("the head sent " + std::to_string(made.rgb().size())
                             + " bytes as a picture of " + std::to_string(made.width()) + " x "
                             + std::to_string(made.height()) + " pixels");
  return std::move(*done.mutable_picture());
}

std::string Control::scale(const std::string& role, int count, std::chrono::seconds deadline) {
  wire::ControlRequest request;
  request.mutable_scale()->set_role(role);
  request.mutable_scale()->set_count(count);
  return decode<wire::ControlDone>(ProtoBytes{ask(request, deadline)}).text();
}

std::string Control::restart(const std::string& role, const std::string& node,
                             std::chrono::seconds deadline) {
  wire::ControlRequest request;
  request.mutable_restart()->set_role(role);
  request.mutable_restart()->set_node(node);
  return decode<wire::ControlDone>(ProtoBytes{ask(request, deadline)}).text();
}

} // namespace troupe::actors
