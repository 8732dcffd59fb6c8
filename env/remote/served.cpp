#include "env/remote/served.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "env/checks.hpp"

namespace troupe::env::remote {

message::Envelope answer_to(const message::Envelope& question) {
  message::Envelope answer;
  answer.set_protocol(kProtocol);
  answer.set_session(question.session());
  answer.set_request(question.request());
  return answer;
}

Served::Served(const EnvironmentServer::Make& make, const EnvironmentServerOptions& options)
    : can_save_(options.can_save) {
  for (std::size_t i = 0; i < options.environments; ++i) {
    players_.push_back({.environment = make()});
    const EnvironmentSpec& spec = players_.back().environment->spec();
    if (i == 0)
      spec_ = spec;
    const std::string different = difference(spec_, spec);
    if (!different.empty())
      throw std::invalid_argument("environments of one server must be equal: " + different);
    try {
      check_spec(spec, options.max_message_bytes);
    } catch (const ProtocolError& error) {
      throw std::invalid_argument("environment '" + spec.name
                                  + "' cannot be served: " + error.what());
    }
  }
}

void Served::begin(const Session& session) {
  for (const std::size_t i : session.environments)
    players_[i].playing = false;
}

Served::Player& Served::player(const Session& session, std::uint32_t index) {
  if (index >= session.environments.size())
    throw ProtocolError("environment " + std::to_string(index) + " is not one of this client's "
                        + std::to_string(session.environments.size()));
  return players_[session.environments[index]];
}

/// Answers one question of the session by setting its header and frames.
void Served::obey(Session& session, const message::Envelope& question,
                  const wire::Message& message) {
  message::Envelope answer = answer_to(question);
  switch (question.body_case()) {
  case message::Envelope::kPlay:
    play(session, question, message);
    return;
  case message::Envelope::kBye:
    answer.mutable_gone();
    session.frames.clear();
    break;
  case message::Envelope::kSave: {
    Player& one = player(session, question.save().environment());
    if (!can_save_ || !one.playing)
      throw ProtocolError(can_save_ ? "there is no episode to save: reset first"
                                    : "this peer cannot save states");
    std::vector<std::byte> state;
    one.environment->save_state(state);
    answer.mutable_saved();
    session.frames.assign(1, std::move(state));
    break;
  }
  case message::Envelope::kLoad: {
    Player& one = player(session, question.load().environment());
    if (!can_save_ || message.frames.size() != 1)
      throw ProtocolError(can_save_ ? "a load must have 1 data frame"
                                    : "this peer cannot load states");
    one.playing = false;
    if (!one.environment->load_state(message.frames[0].bytes()).empty())
      throw ProtocolError("the state has more bytes than '" + spec_.name + "' saves");
    one.playing = true;
    answer.mutable_loaded();
    session.frames.clear();
    break;
  }
  default:
    throw ProtocolError("a message of kind " + std::to_string(question.body_case())
                        + " is not meant for a server of environments");
  }
  answer.SerializeToString(&session.header);
}

/// Plays one row. Returns the reason of a failure, or "".
std::string Served::play_one(Player& one, std::size_t row, ResultRow& result,
                             std::span<std::byte> observation) {
  if (!plays_.resets[row] && !one.playing)
    return "there is no episode to step: reset first";
  one.playing = false;
  try {
    const std::size_t size = spec_.action.size();
    const auto action = std::span<const double>(plays_.actions).subspan(row * size, size);
    if (!plays_.resets[row])
      check_action(spec_, action);
    const TimeStep step = plays_.resets[row]
                              ? one.environment->reset(plays_.seeds[row], observation)
                              : one.environment->step(action, observation);
    result = {.reward = step.reward,
              .discount = step.discount,
              .step_type = static_cast<std::int64_t>(step.step_type)};
    one.playing = step.step_type != StepType::last;
    return "";
  } catch (const std::exception& error) {
    std::fill(observation.begin(), observation.end(), std::byte{0});
    return *error.what() == '\0' ? "(no reason given)" : error.what();
  } catch (...) { // a plug-in may throw anything
    std::fill(observation.begin(), observation.end(), std::byte{0});
    return "it threw something that is not a std::exception";
  }
}

void Served::play(Session& session, const message::Envelope& question,
                  const wire::Message& message) {
  decode_play(question.play(), message, session.environments.size(), spec_.action.size(), plays_);
  const std::size_t rows = plays_.environments.size();
  const std::size_t row_size = row_bytes(spec_);
  session.frames.resize(2);
  session.frames[0].resize(rows * sizeof(ResultRow));
  session.frames[1].resize(rows * row_size);
  message::Envelope answer = answer_to(question);
  message::Played& played = *answer.mutable_played();
  for (std::size_t row = 0; row < rows; ++row) {
    ResultRow result;
    const std::string failure =
        play_one(players_[session.environments[plays_.environments[row]]], row, result,
                 std::span(session.frames[1]).subspan(row * row_size, spec_.observation_bytes()));
    if (!failure.empty()) {
      result = {.reward = 0, .discount = 1, .step_type = kFailed};
      message::Failure& told = *played.add_failures();
      told.set_row(static_cast<std::uint32_t>(row));
      told.set_message(printable(failure, 200));
      ++failures_;
    }
    std::memcpy(session.frames[0].data() + row * sizeof result, &result, sizeof result);
    ++turns_;
  }
  answer.SerializeToString(&session.header);
}

} // namespace troupe::env::remote
