// Copies of checkpoints in moto's S3 server, with credentials from moto's Security Token Service,
// and on a server that does not answer.
#include "actors/run/checkpoint_copies.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

#include "collectives/mesh/socket.hpp"
#include "replay/objects/key_sources.hpp"
#include "tests/replay/objects/moto.hpp"

using namespace troupe;
using replay::TemporaryKeys;

TEST_CASE("A run logs a failed renewal of its store's keys while copies still succeed") {
  const TemporaryFolder folder;
  const replay::Moto moto(folder);
  if (!moto.runs())
    return;
  std::ofstream(folder / "token") << "header.claims.signature";
  const std::filesystem::path checkpoint = folder / "run/checkpoints/10";
  std::filesystem::create_directories(checkpoint);
  std::ofstream(checkpoint / "manifest.json") << "{}";
  replay::KeySource source{.kind = replay::KeySource::Kind::web_identity,
                           .url = moto.secured,
                           .role = "arn:aws:iam::123456789012:role/trainer",
                           .session = "troupe",
                           .token_file = folder / "token",
                           .ca_bundle = folder / "certificate.pem"};
  replay::HttpClient client;
  std::chrono::system_clock::time_point now; // long before the keys expire
  const auto keys = std::make_shared<TemporaryKeys>(
      [&](const std::stop_token& stop) { return fetch_keys(source, client, stop); },
      [&] { return now; });
  now = keys->current().expires - std::chrono::minutes(4);
  source.url = moto.plain; // answers 500, because moto requires a signature

  actors::CheckpointCopies copies(folder / "run",
                                  {.run = {.bucket = "bucket", .key = "runs/one"},
                                   .store = {.endpoint = moto.plain, .temporary = keys}});
  copies.offer(checkpoint);
  copies.finish(std::chrono::seconds(60));
  CHECK(copies.failed() == 0);
  const auto messages = copies.messages();
  REQUIRE(messages.size() == 1);
  CHECK(messages[0].level == "warning");
  CAPTURE(messages[0].text);
  CHECK(messages[0].text.find("it sent 500") != std::string::npos);
  CHECK(messages[0].text.find("the previous keys are valid until 20") != std::string::npos);
  CHECK(copies.messages().empty());
  replay::ObjectStore store({.endpoint = moto.plain, .temporary = keys});
  CHECK(store.get_bytes({.bucket = "bucket", .key = "runs/one/checkpoints/10/manifest.json"}, 10)
        == "{}");
}

TEST_CASE("A checkpoint keeps its files while it is copied and another one of its number waits") {
  const TemporaryFolder folder;
  const auto server = collectives::listen_at("127.0.0.1", 0); // accepts, but never answers
  const std::filesystem::path checkpoint = folder / "run/checkpoints/10";
  std::filesystem::create_directories(checkpoint);
  std::ofstream(checkpoint / "manifest.json") << "{}";
  actors::CheckpointCopies copies(
      folder / "run",
      {.run = {.bucket = "bucket", .key = "runs/one"},
       .store = {.endpoint = "http://127.0.0.1:" + std::to_string(collectives::port_of(server)),
                 .keys = {.access_key = "key", .secret_key = "secret"}}});
  copies.offer(checkpoint);
  const auto connection =
      collectives::accept_from(server, std::chrono::steady_clock::now() + std::chrono::seconds(60));
  REQUIRE(connection.fd() >= 0); // the first copy has begun
  copies.offer(checkpoint);
  int whole = 0; // folders of links to a complete checkpoint
  for (const auto& entry : std::filesystem::directory_iterator(checkpoint.parent_path()))
    if (entry.path().extension() == ".partial")
      whole += std::filesystem::exists(entry.path() / "manifest.json") ? 1 : 0;
  CHECK(whole == 2);
  CHECK_FALSE(copies.idle());
}
