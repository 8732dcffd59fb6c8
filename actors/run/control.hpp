#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>

#include "actors/protocol/messages.pb.h"
#include "actors/remoting/cluster_keys.hpp"

namespace troupe::actors {

/// Where the head of a run serves its operators.
struct ControlPlace {
  std::string host = "127.0.0.1";
  std::uint16_t port = 0;
  std::string folder = {}; // of the intended run: another run's head refuses
  std::shared_ptr<const ClusterKeys> keys = nullptr;
};

/// No head serves there, or it left before it answered.
class NoHead : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// A connection to the head of a run: TLS with keys, the loopback interface without. One thread at
/// a time. Throws std::invalid_argument with the reason if the head refuses, NoHead if there is
/// none, std::runtime_error if its answer is late.
class Control {
public:
  /// Connects. Throws NoHead; std::invalid_argument for a host off the loopback without keys.
  explicit Control(const ControlPlace& place);
  ~Control();
  Control(const Control&) = delete;
  Control& operator=(const Control&) = delete;

  wire::RunStatus status(std::chrono::milliseconds deadline = std::chrono::seconds(10));

  /// The run ends as after SIGTERM; returns when the head knows.
  void stop();

  /// These give what was done.
  std::string checkpoint(std::chrono::seconds deadline); // once it is complete
  std::string pause(bool paused, std::chrono::seconds deadline);
  /// Records the next updates of the learners; the answer has the path of the trace.
  std::string timeline(std::int64_t updates, std::chrono::seconds deadline);
  /// `error_buffer` as the key's: 0 takes a tenth of minimum_items * samples_per_insert.
  std::string limit(double samples_per_insert, double error_buffer, std::chrono::seconds deadline);
  /// What an environment of an environment actor looks like now.
  wire::LivePicture picture(const wire::PictureOrder& order, std::chrono::seconds deadline);
  /// `role` of restart: "" for all, "environment", "environment/3".
  std::string scale(const std::string& role, int count, std::chrono::seconds deadline);
  std::string restart(const std::string& role, const std::string& node,
                      std::chrono::seconds deadline);

private:
  struct Connection;
  std::string ask(wire::ControlRequest request, std::chrono::milliseconds deadline); // its bytes
  std::string folder_;
  std::unique_ptr<Connection> connection_;
};

} // namespace troupe::actors
