#include "replay/service/outbox.hpp"

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <sys/eventfd.h>
#include <unistd.h>
#include <utility>

namespace troupe::replay {

Outbox::Outbox() : wake_fd_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  if (wake_fd_ < 0)
    throw std::runtime_error(std::string("eventfd: ") + std::strerror(errno));
}

Outbox::~Outbox() {
  ::close(wake_fd_);
}

void Outbox::put(Answer answer) {
  bool first = false;
  {
    const std::scoped_lock lock(mutex_);
    if (closed_)
      return;
    first = answers_.empty();
    answers_.push_back(std::move(answer));
  }
  if (first)
    wake();
}

void Outbox::wake() {
  const std::uint64_t one = 1;
  // Fails only if the descriptor is signalled already.
  [[maybe_unused]] const auto written = ::write(wake_fd_, &one, sizeof one);
}

std::vector<Answer> Outbox::take() {
  std::uint64_t count = 0;
  [[maybe_unused]] const auto got = ::read(wake_fd_, &count, sizeof count);
  const std::scoped_lock lock(mutex_);
  return std::exchange(answers_, {});
}

void Outbox::close() {
  const std::scoped_lock lock(mutex_);
  closed_ = true;
  answers_.clear();
}

Reply::Reply(std::shared_ptr<Outbox> outbox, Answer refusal)
    : outbox_(std::move(outbox)), refusal_(std::move(refusal)) {}

Reply::~Reply() {
  if (!answered_.exchange(true))
    outbox_->put(std::move(refusal_));
}

void Reply::answer(Answer given) {
  if (answered_.exchange(true))
    return;
  given.peer = std::move(refusal_.peer);
  given.table = refusal_.table;
  given.writer_id = refusal_.writer_id;
  given.number = refusal_.number;
  given.part_bytes = refusal_.part_bytes;
  outbox_->put(std::move(given));
}

} // namespace troupe::replay
