#include <ATen/ops/empty.h>

#include "learner/parameter_server/parameter_server_host_impl.hpp"

namespace troupe::learner {

using env::wire::Message;
using Clock = std::chrono::steady_clock;

ParameterServerHost::Impl::Served* ParameterServerHost::Impl::served(std::uint32_t optimizer) {
  const auto at = servers.find(optimizer);
  if (at != servers.end())
    return at->second.get();
  if (optimizer >= static_cast<std::uint32_t>(options.most_optimizers))
    return nullptr;
  return servers.emplace(optimizer, std::make_unique<Served>(options, Clock::now()))
      .first->second.get();
}

void ParameterServerHost::Impl::send(wire::Envelope&& answer, const std::string& peer,
                                     std::vector<env::wire::Frame> frames) {
  Message message;
  message.peer = peer;
  message.header = answer.SerializeAsString();
  message.frames = std::move(frames);
  socket.send(std::move(message), Clock::now());
}

namespace {

wire::Envelope answer_of(const wire::Envelope& head) {
  wire::Envelope answer;
  answer.set_protocol(kParameterProtocol);
  answer.set_optimizer(head.optimizer());
  answer.set_number(head.number());
  answer.set_worker(head.worker());
  answer.set_session(head.session());
  answer.set_step(head.step());
  answer.mutable_answer();
  return answer;
}

} // namespace

void ParameterServerHost::Impl::refuse(const wire::Envelope& head, const std::string& peer,
                                       const std::string& reason) {
  wire::Envelope answer = answer_of(head);
  answer.mutable_answer()->set_refusal(reason);
  send(std::move(answer), peer);
}

void ParameterServerHost::Impl::need(const wire::Envelope& head, const std::string& peer,
                                     wire::Answer::Need what, const std::string& why) {
  wire::Envelope answer = answer_of(head);
  answer.mutable_answer()->set_need(what);
  answer.mutable_answer()->set_why(why);
  send(std::move(answer), peer);
}

std::string ParameterServerHost::Impl::begin(Served& to, const wire::Envelope& head,
                                             const ServedSlice& slice,
                                             const Message& message) const {
  const std::int64_t elements = elements_of(slice.segments);
  const auto bytes = static_cast<std::size_t>(elements) * at::elementSize(slice.type);
  std::size_t sent = 0;
  for (const auto& frame : message.frames)
    sent += frame.size();
  if (bytes > options.most_bytes)
    return "parameters of " + std::to_string(bytes) + " bytes; the server takes at most "
           + std::to_string(options.most_bytes) + " (most_bytes). Use more servers, or raise it";
  if (sent != bytes)
    return "parameters of " + std::to_string(sent) + " bytes; the slice has "
           + std::to_string(bytes);
  auto parameters = at::empty({elements}, slice.type);
  copy_frames(message.frames, parameters);
  to.server.begin(slice, parameters, head.version());
  return "";
}

void ParameterServerHost::Impl::on_join(Served& to, const wire::Envelope& head,
                                        const Message& message) {
  std::string why;
  const auto slice = decode(head.join().slice(), why);
  if (slice) {
    try {
      if (to.server.has_begun())
        to.server.check_same(*slice);
      else if (head.join().can_begin())
        why = begin(to, head, *slice, message);
    } catch (const std::exception& e) { // thrown for the slice or by the optimizer's factory
      why = e.what();
    }
  }
  if (why.empty())
    why =
        to.server.join(static_cast<int>(head.worker()), head.session(), Clock::now(), head.step());
  if (why.empty())
    respond(to, head, message.peer);
  else
    refuse(head, message.peer, why);
}

void ParameterServerHost::Impl::on_exchange(Served& to, const wire::Envelope& head,
                                            const Message& message) {
  const int worker = static_cast<int>(head.worker());
  if (!to.server.heartbeat(worker, head.session(), Clock::now())) {
    need(head, message.peer, wire::Answer::JOIN, "worker has yet to join");
    return;
  }
  if (head.exchange().has_push() && to.server.has_begun()) {
    const auto& given = head.exchange().push();
    if (!to.gradient.defined())
      to.gradient = at::empty_like(to.server.parameters());
    if (!given.present().empty() && !copy_frames(message.frames, to.gradient)) {
      drop("a gradient of another size");
      refuse(head, message.peer, "the gradient has another size than the parameters here");
      return;
    }
    Push push{.worker = worker,
              .session = head.session(),
              .step = head.step(),
              .version = head.version(),
              .gradient = to.gradient,
              .present = {},
              .learning_rates = {given.learning_rates().begin(), given.learning_rates().end()}};
    for (const char one : given.present())
      push.present.push_back(one != 0);
    const PushAnswer answer = to.server.push(push, Clock::now());
    if (answer.outcome == Outcome::refused) {
      refuse(head, message.peer, answer.why);
      return;
    }
  }
  respond(to, head, message.peer);
}

void ParameterServerHost::Impl::on_beat(Served& to, const wire::Envelope& head) {
  to.server.heartbeat(static_cast<int>(head.worker()), head.session(), Clock::now());
  on_state(to, head, head.beat().resting());
}

/// Learns which version the worker has before it learns that the worker rests: otherwise a
/// restarted server would not know that the others wait for a version that the worker already has.
void ParameterServerHost::Impl::on_state(Served& to, const wire::Envelope& head, bool resting) {
  const int worker = static_cast<int>(head.worker());
  if (head.step() > 0)
    to.server.set_worker_version(worker, head.session(), head.step(), head.version());
  if (resting)
    to.server.suspend_participation(worker, head.session(), head.step(), Clock::now());
}

void ParameterServerHost::Impl::on_leave(Served& to, const wire::Envelope& head,
                                         const std::string& peer) {
  if (head.leave().resting())
    on_state(to, head, true);
  else
    to.server.leave(static_cast<int>(head.worker()), head.session());
  to.parked.erase(static_cast<int>(head.worker()));
  need(head, peer, wire::Answer::NOTHING, "");
}

void ParameterServerHost::Impl::respond(Served& to, const wire::Envelope& head,
                                        const std::string& peer) {
  const int worker = static_cast<int>(head.worker());
  to.parked.erase(worker);
  if (to.server.has_begun() && head.step() > 0 && !to.server.answer_to(worker, head.step())) {
    need(head, peer, wire::Answer::PUSH, "the step is not known here");
    return;
  }
  Parked waiting{.peer = peer, .head = head};
  waiting.head.clear_body();
  to.parked.emplace(worker, std::move(waiting));
  serve_parked(to);
  const auto at = to.parked.find(worker);
  if (at == to.parked.end())
    return;
  need(head, peer, to.server.has_begun() ? wire::Answer::NOTHING : wire::Answer::PARAMETERS,
       to.server.pull(worker, head.step()).why);
}

void ParameterServerHost::Impl::serve_parked(Served& to) {
  if (!to.server.has_begun())
    return;
  for (auto at = to.parked.begin(); at != to.parked.end();) {
    const auto& [worker, parked] = *at;
    const auto push =
        parked.head.step() > 0 ? to.server.answer_to(worker, parked.head.step()) : std::nullopt;
    if (parked.head.step() > 0 && !push) { // it was waiting for the initial parameters
      need(parked.head, parked.peer, wire::Answer::PUSH, "the step is not known here");
      at = to.parked.erase(at);
      continue;
    }
    if (!to.server.pull(worker, parked.head.step()).ready) {
      ++at;
      continue;
    }
    wire::Envelope answer = answer_of(parked.head);
    answer.set_version(to.server.version());
    if (push) {
      answer.mutable_answer()->set_outcome(static_cast<std::uint32_t>(push->outcome));
      answer.mutable_answer()->set_staleness(push->staleness);
      answer.mutable_answer()->set_rate_scale(push->rate_scale);
      answer.mutable_answer()->set_why(push->why);
    }
    answer.mutable_answer()->set_parameters(true);
    send(std::move(answer), parked.peer, frames_of(to.server.parameters(), socket, parked.peer));
    to.server.parameters_sent(worker);
    at = to.parked.erase(at);
  }
}

} // namespace troupe::learner
