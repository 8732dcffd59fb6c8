#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <cstdio>
#include <memory>

#include "env/legible.hpp"
#include "experiments/commands/commands.hpp"
#include "experiments/commands/running/run_choice.hpp"
#include "experiments/commands/running/wait_for_signal.hpp"
#include "experiments/report/status_text.hpp"

namespace troupe::experiments::commands {
namespace {

struct StatusOptions {
  RunChoice choice;
  bool json = false;
  bool once = false;
};

constexpr int kStatusPeriodMilliseconds = 1000;

/// Puts the terminal into raw mode, hides the cursor, and restores both in the destructor.
class Screen {
public:
  Screen() {
    ::tcgetattr(STDIN_FILENO, &before_);
    termios raw = before_;
    raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    ::tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    std::fputs("\033[?1049h\033[?25l", stdout);
  }
  ~Screen() {
    std::fputs("\033[?25h\033[?1049l", stdout);
    std::fflush(stdout);
    ::tcsetattr(STDIN_FILENO, TCSANOW, &before_);
  }
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  void draw(const std::string& text) const {
    winsize size{};
    const bool known = ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 1;
    std::fputs("\033[H\033[J", stdout);
    std::fputs(cut_to_screen(text, known ? size.ws_row - 1 : 24, known ? size.ws_col : 80).c_str(),
               stdout);
    std::fflush(stdout);
  }

private:
  termios before_{};
};

void show(const LiveRun& live, const actors::wire::RunStatus& status, bool json) {
  if (json) {
    std::printf("%s\n", status_json(live.head, status).c_str());
  } else {
    std::printf("%s", env::legible(status_text(live.head, status)).c_str());
  }
}

void status(const StatusOptions& options) {
  const LiveRun live = find_live_run(options.choice.run, options.choice.runs);
  actors::Control control(control_place(live, options.choice));
  show(live, control.status(), options.json);
}

void top(const StatusOptions& options) {
  const LiveRun live = find_live_run(options.choice.run, options.choice.runs);
  const EndSignals signals;
  actors::Control control(control_place(live, options.choice));
  if (options.once || ::isatty(STDOUT_FILENO) == 0 || ::isatty(STDIN_FILENO) == 0) {
    show(live, control.status(), options.json);
    return;
  }
  std::string end;
  try {
    const Screen screen;
    do {
      screen.draw(env::legible(status_text(live.head, control.status())) + "\npress q to quit\n");
    } while (!signals.wait_for(kStatusPeriodMilliseconds, 'q'));
  } catch (const actors::NoHead&) {
    end = "the run is over\n";
  }
  std::printf("%s", end.c_str());
}

} // namespace

void add_status(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "status", "Shows the state of a live run: nodes, processes, counters, waiting requests");
  command->footer(operating_footer("Example: troupe status\n"
                                   "         troupe status runs/quickstart/2026-11-21T10-00-00 "
                                   "--json"));
  auto options = std::make_shared<StatusOptions>();
  command->add_option("RUN", options->choice.run, "the run's folder");
  add_run_choice(*command, options->choice);
  command->add_flag("--json", options->json, "as JSON");
  command->callback([options] { status(*options); });
}

void add_top(CLI::App& app) {
  CLI::App* command = app.add_subcommand("top", "Shows `troupe status`, updated every second");
  command->footer(operating_footer("Example: troupe top --keys keys/mine"));
  auto options = std::make_shared<StatusOptions>();
  command->add_option("RUN", options->choice.run, "the run's folder");
  add_run_choice(*command, options->choice);
  command->add_flag("--once", options->once,
                    "print once; the default if the output is not a terminal");
  command->callback([options] { top(*options); });
}

} // namespace troupe::experiments::commands
