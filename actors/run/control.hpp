#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>

#include "actors/protocol/messages.pb.h"
#include "actors/remoting/cluster_keys.hpp"

namespace troupe::actors {

/// The address at which the head of a run serves its operators.
struct ControlPlace {
  std::string host = "127.0.0.1";
  std::uint16_t port = 0;
  std::string folder = {}; // of the intended run; the head of another run refuses
  std::shared_ptr<const ClusterKeys> keys = nullptr;
};

/// Thrown if no head serves at the address, or if the head left before it answered.
class NoHead : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// A connection to the head of a run: TLS with keys, the loopback interface without. One thread at
/// a time. Functions throw std::invalid_argument with the reason if the head refuses, NoHead if
/// there is none, and std::runtime_error if its answer is late.
class Control {
public:
  /// Connects. Throws NoHead, or std::invalid_argument for a host other than the loopback interface
  /// without keys.
  explicit Control(const ControlPlace& place);
  ~Control();
  Control(const Control&) = delete;
  Control& operator=(const Control&) = delete;

  wire::RunStatus status(std::chrono::milliseconds deadline = std::chrono::seconds(10));

  /// Ends the run as SIGTERM does. Returns once the head has received the request.
  void stop();

  /// The following functions return a description of what was done.
  std::string checkpoint(std::chrono::seconds deadline); // returns once it is complete
  std::string pause(bool paused, std::chrono::seconds deadline);
  /// Records the learners' next updates. The answer contains the path of the trace.
  std::string timeline(std::int64_t updates, std::chrono::seconds deadline);
  /// `error_buffer` is like the configuration key: 0 takes a tenth of minimum_items *
  /// samples_per_insert.
  std::string limit(double samples_per_insert, double error_buffer, std::chrono::seconds deadline);
  /// Returns what one environment of an environment actor looks like now.
  wire::LivePicture picture(const wire::PictureOrder& order, std::chrono::seconds deadline);
  /// `role` of restart(): "" for all roles, or for example "environment" or "environment/3".
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
