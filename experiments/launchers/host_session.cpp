#include "experiments/launchers/host_session.hpp"

#include <fstream>
#include <random>

#include "experiments/launchers/command_text.hpp"
#include "experiments/launchers/host_script.hpp"

namespace troupe::experiments::launchers {
namespace {

using std::chrono::milliseconds;
constexpr std::size_t kBlock = 1 << 20; // maximum number of bytes sent at a time
constexpr milliseconds kLook{50};       // interval between checks whether ssh has ended
constexpr const char* kStopped = "the launch was stopped";

/// Distinguishes our answers from other output of the host; not a secret.
std::string drawn_word() {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::random_device device;
  std::string word = "troupe-";
  for (int i = 0; i < 16; ++i)
    word += kDigits[device() % 16];
  return word;
}

long seconds(milliseconds time) {
  return std::max<long>(1, (time.count() + 999) / 1000);
}

/// An option of ssh that names a file. ssh splits such values at blanks and expands "%".
std::string file_option(const std::string& name, const std::string& path) {
  std::string text = name + "=\"";
  for (const char c : path) {
    if (c == '%')
      text += '%';
    else if (c == '"' || c == '\\')
      text += '\\';
    text += c;
  }
  return text + '"';
}

} // namespace

HostSession::HostSession(ChildProcesses& children, const LaunchSettings& settings,
                         const SshSettings& ssh, NodeStart node)
    : children_(children),
      settings_(settings),
      ssh_(ssh),
      node_(std::move(node)),
      word_(drawn_word()) {}

std::vector<std::string> HostSession::command() const {
  std::vector<std::string> words{ssh_.ssh, "-T", "-e", "none"};
  const auto option = [&](const std::string& text) {
    words.emplace_back("-o");
    words.push_back(text);
  };
  if (!ssh_.config.empty())
    words.insert(words.end(), {"-F", ssh_.config.string()});
  for (const char* text :
       {"BatchMode=yes", "StrictHostKeyChecking=yes", "ForwardAgent=no", "ForwardX11=no",
        "ClearAllForwardings=yes", "ControlMaster=no", "ControlPath=none", "ServerAliveCountMax=3"})
    option(text);
  option("ConnectTimeout=" + std::to_string(seconds(ssh_.connect_limit)));
  option("ServerAliveInterval=" + std::to_string(seconds(ssh_.lost / 3)));
  if (!ssh_.known_hosts.empty())
    option(file_option("UserKnownHostsFile", ssh_.known_hosts.string()));
  if (!ssh_.identity_file.empty()) {
    option("IdentitiesOnly=yes");
    option(file_option("IdentityFile", ssh_.identity_file.string()));
  }
  if (ssh_.port != 22) // otherwise ssh's configuration decides
    words.insert(words.end(), {"-p", std::to_string(ssh_.port)});
  if (!ssh_.user.empty())
    words.insert(words.end(), {"-l", ssh_.user});
  words.insert(words.end(), {"--", node_.host, "exec bash -s"});
  return words;
}

/// Called on the thread of children_.
bool HostSession::take_line(std::string_view line) {
  const std::size_t begin = line.find(word_); // the node's last line may lack a newline
  if (begin == std::string_view::npos) {
    if (settings_.output)
      settings_.output(node_.name, line);
    return true;
  }
  const std::string answer(line.substr(std::min(line.size(), begin + word_.size() + 1)));
  const std::lock_guard lock(mutex_);
  if (answer.starts_with("folder "))
    folder_ = answer.substr(7);
  removed_ = removed_ || answer.starts_with("ended ") || answer.starts_with("failed ");
  answers_.push_back(answer);
  answered_.notify_all();
  return answer.starts_with("failed ");
}

std::string HostSession::answer(Clock::time_point deadline, const std::string& doing) {
  while (true) {
    {
      std::unique_lock lock(mutex_);
      answered_.wait_for(lock, kLook, [&] { return !answers_.empty(); });
      if (!answers_.empty()) {
        std::string result = std::move(answers_.front());
        answers_.pop_front();
        if (result.starts_with("failed "))
          throw Failure{result.substr(7)};
        return result;
      }
    }
    if (auto end = children_.wait(id_, Clock::now())) {
      id_ = 0;
      throw Failure{node_end(node_, command(), *end).how};
    }
    if (Clock::now() >= deadline)
      throw Failure{std::string("timed out trying ") + doing};
  }
}

void HostSession::tell(std::string_view bytes, Clock::time_point deadline,
                       const std::string& doing) {
  if (!children_.write(id_, bytes, deadline))
    answer(std::min(deadline, Clock::now() + std::chrono::seconds(5)), doing); // says why
}

bool HostSession::start(const HostFiles& files, const std::stop_token& ended) {
  const auto deadline = Clock::now() + ssh_.start_limit;
  try {
    if (ended.stop_requested())
      throw Failure{kStopped};
    id_ = children_.start({.words = command(),
                           .input = true,
                           .line = [self = shared_from_this()](std::string_view line) {
                             return self->take_line(line);
                           }});
    const std::stop_callback killing(ended, [this, id = id_] { children_.kill_group(id); });
    // ssh itself gives up earlier and prints the reason.
    const auto connected = std::min(deadline, Clock::now() + ssh_.connect_limit * 2);
    tell(host_script(word_, ssh_.folder, seconds(ssh_.start_limit), seconds(ssh_.lost),
                     seconds(ssh_.grace)),
         connected, "to connect");
    answer(connected, "to connect");
    const auto copied = copy_missing(files, deadline);
    run(files, copied, deadline);
    return true;
  } catch (const Failure& failure) {
    problem_ = ended.stop_requested() ? kStopped : failure.what;
  } catch (const std::runtime_error& error) {
    problem_ = error.what();
  }
  hang_up();
  return false;
}

std::vector<bool> HostSession::copy_missing(const HostFiles& files, Clock::time_point deadline) {
  std::string questions;
  for (const HostFile& file : files.all())
    questions += "has " + std::to_string(file.bytes) + " "
                 + (file.sha256.empty() ? "-" : file.sha256) + " " + file.path.string() + "\n";
  tell(questions, deadline, "to compare files");
  std::vector<bool> missing;
  for (std::size_t i = 0; i < files.all().size(); ++i)
    missing.push_back(answer(deadline, "to compare files") != "same");
  const auto copied = files.to_copy(std::move(missing));
  for (std::size_t i = 0; i < copied.size(); ++i)
    if (copied[i])
      copy(files.all()[i], deadline);
  return copied;
}

void HostSession::copy(const HostFile& file, Clock::time_point deadline) {
  const std::string doing = "to copy " + file.path.string();
  tell("file " + std::to_string(file.bytes)
           + (file.kind == HostFile::Kind::file ? " 600 " : " 700 ") + file.copy + "\n",
       deadline, doing);
  std::ifstream in(file.path, std::ios::binary);
  std::vector<char> block(std::min<std::size_t>(kBlock, file.bytes));
  for (std::uint64_t left = file.bytes; left > 0;) {
    const auto size = static_cast<std::streamsize>(std::min<std::uint64_t>(block.size(), left));
    if (!in.read(block.data(), size))
      throw Failure{std::string("cannot read all of ") + file.path.string()
                    + "; it changed while it was read"};
    tell({block.data(), static_cast<std::size_t>(size)}, deadline, doing);
    left -= static_cast<std::uint64_t>(size);
  }
  answer(deadline, doing);
}

void HostSession::run(const HostFiles& files, const std::vector<bool>& copied,
                      Clock::time_point deadline) {
  std::string folder;
  {
    const std::lock_guard lock(mutex_);
    folder = folder_;
  }
  std::string program = ssh_.program;
  if (program.empty())
    program = copied.at(0) ? folder + "/" + files.all()[0].copy : files.all()[0].path.string();
  std::string orders = "cd " + std::filesystem::current_path().string() + "\n";
  const auto set = [&](const std::string& name, const std::string& value) {
    orders += "set |" + name + "=" + files.argument(value, copied, folder) + "|\n";
  };
  for (const auto& [name, value] : settings_.environment)
    set(name, value);
  set("TROUPE_NODE_NAME", node_.name);
  orders += "word |" + program + "|\n";
  for (const std::string& word : node_.arguments)
    orders += "word |" + files.argument(word, copied, folder) + "|\n";
  tell(orders + "run\n", deadline, "to start it");
  answer(deadline, "to start it");
}

void HostSession::beat() {
  children_.write(id_, "\n", Clock::now());
}

void HostSession::stop(std::chrono::milliseconds grace) {
  children_.write(id_, "stop " + std::to_string(grace.count() <= 0 ? 0 : seconds(grace)) + "\n",
                  Clock::now() + std::chrono::seconds(1));
}

void HostSession::hang_up() {
  if (id_ != 0)
    children_.kill_group(id_);
}

std::optional<NodeEnd> HostSession::end(Clock::time_point deadline) {
  std::optional<ChildProcesses::End> end;
  if (id_ != 0) {
    end = children_.wait(id_, deadline);
    if (!end)
      return std::nullopt;
    id_ = 0;
  }
  NodeEnd result = node_end(node_, command(), end.value_or(ChildProcesses::End{}));
  if (!problem_.empty()) {
    result.good = false;
    result.how = problem_.starts_with("node ")
                     ? problem_
                     : std::string("node ") + node_.name + " (" + node_.host
                           + ") could not be started: " + problem_;
    if (end && !end->last_lines.empty()
        && result.how.find(end->last_lines.back()) == std::string::npos)
      result.how += "; its last output: " + end->last_lines.back();
  } else if (may_have_left_something()) {
    result.good = false;
    result.how += "; the connection is lost, and its host stops it within "
                  + std::to_string(seconds(ssh_.lost) + seconds(ssh_.grace)) + " s";
  } else if (end && end->exit_code >= 0) { // the shell exits with the node's exit code
    result.how =
        shell_end(node_, end->exit_code, end->last_lines.empty() ? "" : end->last_lines.back()).how;
  }
  return result;
}

bool HostSession::may_have_left_something() const {
  const std::lock_guard lock(mutex_);
  return !folder_.empty() && !removed_;
}

std::string HostSession::clean_up(Clock::time_point deadline) {
  std::string folder;
  {
    const std::lock_guard lock(mutex_);
    folder = folder_;
    answers_.clear();
  }
  const auto complaint = [&](const std::string& why) {
    return std::string("node ") + node_.name + " (" + node_.host + "): " + folder
           + " may be left there, with processes that run from it: " + why;
  };
  try {
    id_ = children_.start({.words = command(),
                           .input = true,
                           .line = [self = shared_from_this()](std::string_view line) {
                             return self->take_line(line);
                           }});
    tell(clean_up_script(word_, folder), deadline, "to connect");
    answer(deadline, "to clean up");
    const std::lock_guard lock(mutex_);
    removed_ = true;
  } catch (const Failure& failure) {
    hang_up();
    return complaint(failure.what);
  } catch (const std::runtime_error& error) {
    return complaint(error.what());
  }
  return "";
}

} // namespace troupe::experiments::launchers
