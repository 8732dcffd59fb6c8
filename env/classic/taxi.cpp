#include "env/classic/taxi.hpp"

namespace troupe::env::classic {

namespace {

constexpr std::int64_t kTaxiSide = 5;
constexpr std::int64_t kStands = 4;
constexpr std::int64_t kInTaxi = kStands;
constexpr std::int64_t kTaxiStates = kTaxiSide * kTaxiSide * (kStands + 1) * kStands;

struct Place {
  std::int64_t row;
  std::int64_t column;
  bool operator==(const Place&) const = default;
};

constexpr Place kStandPlaces[kStands] = {{0, 0}, {0, 4}, {4, 0}, {4, 3}}; // R, G, Y, B

/// The parts of a state number.
struct TaxiState {
  Place taxi;
  std::int64_t passenger;
  std::int64_t destination;

  explicit TaxiState(std::int64_t number)
      : taxi{number / (kStands * (kStands + 1) * kTaxiSide),
             number / (kStands * (kStands + 1)) % kTaxiSide},
        passenger(number / kStands % (kStands + 1)),
        destination(number % kStands) {}
  std::int64_t number() const {
    return ((taxi.row * kTaxiSide + taxi.column) * (kStands + 1) + passenger) * kStands
           + destination;
  }
};

bool wall_to_the_right(const Place& place) {
  if (place.column == kTaxiSide - 1)
    return true;
  return place.row < 2 ? place.column == 1
                       : place.row > 2 && (place.column == 0 || place.column == 2);
}

/// The place next to `from` in that direction, or `from` if a wall is between them.
Place beside(const Place& from, std::int64_t direction) {
  const auto [row, column] = from;
  switch (direction) {
  case 0:
    return row == kTaxiSide - 1 ? from : Place{row + 1, column};
  case 1:
    return row == 0 ? from : Place{row - 1, column};
  case 2:
    return wall_to_the_right(from) ? from : Place{row, column + 1};
  default:
    return column == 0 || wall_to_the_right({row, column - 1}) ? from : Place{row, column - 1};
  }
}

/// The stand at this place, or kStands if there is none.
std::int64_t stand_at(const Place& place) {
  std::int64_t stand = 0;
  while (stand < kStands && !(kStandPlaces[stand] == place))
    ++stand;
  return stand;
}

Transition pick_up(TaxiState state) {
  const bool there = state.passenger != kInTaxi && stand_at(state.taxi) == state.passenger;
  if (there)
    state.passenger = kInTaxi;
  return {.probability = 1, .state = state.number(), .reward = there ? -1.0 : -10.0};
}

Transition drop_off(TaxiState state) {
  const std::int64_t stand = stand_at(state.taxi);
  if (state.passenger != kInTaxi || stand == kStands)
    return {.probability = 1, .state = state.number(), .reward = -10};
  state.passenger = stand;
  const bool delivered = stand == state.destination;
  return {.probability = 1,
          .state = state.number(),
          .reward = delivered ? 20.0 : -1.0,
          .terminated = delivered};
}

} // namespace

Taxi::Taxi(const std::string& name, const gym::GymOptionValues& options)
    : spec_(classic_spec(name, options, {{"state", kTaxiStates}}, one_of(6), 1)),
      straight_probability_(options.flag("is_rainy") ? options.number("rainy_probability") : 1),
      fickle_probability_(options.flag("fickle_passenger") ? options.number("fickle_probability")
                                                           : 0) {}

void Taxi::begin(State& state, Random& random) const {
  TaxiState start(0);
  start.taxi = {draw_below(kTaxiSide, random), draw_below(kTaxiSide, random)};
  start.passenger = draw_below(kStands, random);
  start.destination = (start.passenger + 1 + draw_below(kStands - 1, random)) % kStands;
  state.number = start.number();
  state.fickle = random.uniform() < fickle_probability_ ? 1 : 0;
}

Transitions Taxi::transitions(std::int64_t number, std::int64_t action) const {
  const TaxiState state(number);
  if (action == 4)
    return {pick_up(state)};
  if (action == 5)
    return {drop_off(state)};
  const auto move = [&](std::int64_t direction, double probability) {
    TaxiState moved = state;
    // A taxi that cannot drive straight ahead does not skid either.
    if (!(beside(state.taxi, action) == state.taxi))
      moved.taxi = beside(state.taxi, direction);
    return Transition{.probability = probability, .state = moved.number(), .reward = -1};
  };
  if (straight_probability_ == 1)
    return {move(action, 1)};
  constexpr std::int64_t kLeftOf[] = {2, 3, 1, 0};
  const std::int64_t left = kLeftOf[action];
  const std::int64_t right = left ^ 1; // the opposite direction
  const double aside = (1 - straight_probability_) / 2;
  return {move(action, straight_probability_), move(left, aside), move(right, aside)};
}

GameStep Taxi::step(State& state, std::span<const double> action, Random& random) const {
  const TaxiState before(state.number);
  const Transitions all = transitions(state.number, static_cast<std::int64_t>(action[0]));
  const Transition& made = draw(all, random);
  TaxiState after(made.state);
  if (state.fickle != 0 && before.passenger == kInTaxi && !(after.taxi == before.taxi)) {
    after.destination = (after.destination + 1 + draw_below(kStands - 1, random)) % kStands;
    state.fickle = 0;
  }
  state.number = after.number();
  return {.reward = made.reward, .terminated = made.terminated};
}

void Taxi::observe(const State& state, std::span<std::byte> observation) const {
  write_one_hot(observation, state.number);
}

bool Taxi::is_valid(const State& state) const {
  return state.number >= 0 && state.number < kTaxiStates;
}

ClassicTask taxi_v4() {
  using enum gym::GymOptionKind;
  return {"Taxi-v4",
          with_time_limit(
              {{"is_rainy", flag, "false", "whether a moving taxi may skid to its left or right"},
               {"fickle_passenger", flag, "false",
                "whether a passenger may change the destination at the first move after pick-up"},
               {"rainy_probability", probability, "0.8",
                "probability that a taxi in the rain drives straight on"},
               {"fickle_probability", probability, "0.3",
                "probability that a passenger changes the destination"}},
              "200"),
          &make_game<Taxi>};
}

} // namespace troupe::env::classic
