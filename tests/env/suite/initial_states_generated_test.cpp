// Initial states of the humanoids, manipulators, stackers and quadrupeds, compared with the
// distributions of dm_control 1.0.50. Where dm_control redraws until nothing touches, the reference
// is drawn here, with another generator and MuJoCo's whole forward pass. Seeds are fixed, so the
// results are reproducible.
#include <doctest/doctest.h>

#include <cmath>

#include "env/suite/terrain.hpp"
#include "tests/env/suite/first_states.hpp"

using namespace troupe::env;
using namespace troupe::env::testing;

namespace {

constexpr const char* kArmJoints[] = {"arm_root", "arm_shoulder", "arm_elbow", "arm_wrist",
                                      "finger",   "fingertip",    "thumb",     "thumbtip"};

int qpos(const Physics& physics, const std::string& joint) {
  return physics.model().jnt_qposadr[physics.id(mjOBJ_JOINT, joint)];
}

int qvel(const Physics& physics, const std::string& joint) {
  return physics.model().jnt_dofadr[physics.id(mjOBJ_JOINT, joint)];
}

/// What `read` returns after each of `count` draws. `draw_one` is repeated until nothing touches.
Draws draw_free(Physics& physics, std::size_t count, const std::function<void()>& draw_one,
                const Read& read) {
  physics.reset();
  Draws draws(read(physics).size(), count);
  for (std::size_t i = 0; i < count; ++i) {
    physics.reset();
    do {
      draw_one();
      physics.forward_without_actuation();
    } while (physics.data().ncon > 0);
    const std::vector<double> values = read(physics);
    for (std::size_t k = 0; k < values.size(); ++k)
      draws.set(i, k, values[k]);
  }
  return draws;
}

void check_same_columns(const std::string& task, const Draws& ours, const Draws& theirs) {
  REQUIRE(ours.columns() == theirs.columns());
  for (std::size_t k = 0; k < ours.columns(); ++k)
    check_same(task + ", column " + std::to_string(k), ours[k], theirs[k]);
}

/// Draws the arm joints as dm_control does.
void draw_arm(Physics& physics, Other& other) {
  const mjModel& model = physics.model();
  for (const char* name : kArmJoints) {
    const int joint = physics.id(mjOBJ_JOINT, name);
    const bool limited = model.jnt_limited[joint];
    physics.data().qpos[model.jnt_qposadr[joint]] =
        other.uniform(limited ? model.jnt_range[2 * joint] : -kPi,
                      limited ? model.jnt_range[2 * joint + 1] : kPi);
  }
  physics.data().qpos[qpos(physics, "finger")] = physics.data().qpos[qpos(physics, "thumb")];
}

/// The rotation about y of a body relative to its parent, in the model.
double body_angle(const Physics& physics, int body) {
  const double* quaternion = physics.model().body_quat + 4 * body;
  CHECK(quaternion[1] == 0);
  CHECK(quaternion[3] == 0);
  return 2 * std::atan2(quaternion[2], quaternion[0]);
}

struct Manipulator {
  std::string object;
  std::string receptacle; // "" when there is nothing to insert into
  std::string target() const { return "target_" + object; }

  void place(Physics& physics, const std::string& body, double x, double z, double angle) const {
    const auto at = static_cast<std::size_t>(physics.id(mjOBJ_BODY, body));
    physics.own_array("body_pos")[3 * at] = x;
    physics.own_array("body_pos")[3 * at + 2] = z;
    physics.own_array("body_quat")[4 * at] = std::cos(angle / 2);
    physics.own_array("body_quat")[4 * at + 2] = std::sin(angle / 2);
  }

  void draw(Physics& physics, Other& other) const {
    draw_arm(physics, other);
    double x = other.uniform(-.4, .4);
    double z = other.uniform(.1, .4);
    const double widest = receptacle.empty() ? kPi : kPi / 3;
    double angle = other.uniform(-widest, widest);
    place(physics, target(), x, z, angle);
    if (!receptacle.empty())
      place(physics, receptacle, x, z, angle);
    const double kind = other.uniform();
    if (kind < .1) { // probability .1: in the hand
      physics.forward_without_actuation();
      const int grasp = physics.id(mjOBJ_SITE, "grasp");
      x = physics.data().site_xpos[3 * grasp];
      z = physics.data().site_xpos[3 * grasp + 2];
      angle = kPi
              - std::atan2(physics.data().site_xmat[9 * grasp + 6],
                           physics.data().site_xmat[9 * grasp]);
    } else if (kind >= .2) { // probability .8: anywhere; the rest stays at the target
      x = other.uniform(-.5, .5);
      z = other.uniform(0, .7);
      angle = other.uniform(0, 2 * kPi);
      physics.data().qvel[qvel(physics, object + "_x")] = other.uniform(-5, 5);
    }
    physics.data().qpos[qpos(physics, object + "_x")] = x;
    physics.data().qpos[qpos(physics, object + "_z")] = z;
    physics.data().qpos[qpos(physics, object + "_y")] = angle;
  }

  std::vector<double> read(const Physics& physics) const {
    std::vector<double> all = state(physics);
    const auto add = [&](const std::string& body) {
      const int at = physics.id(mjOBJ_BODY, body);
      all.push_back(physics.model().body_pos[3 * at]);
      all.push_back(physics.model().body_pos[3 * at + 2]);
      all.push_back(body_angle(physics, at));
    };
    add(target());
    if (!receptacle.empty())
      add(receptacle);
    const double* place = physics.data().xpos + 3 * physics.id(mjOBJ_BODY, object);
    const double* goal = physics.data().xpos + 3 * physics.id(mjOBJ_BODY, target());
    const double* hand = physics.data().site_xpos + 3 * physics.id(mjOBJ_SITE, "grasp");
    all.push_back(std::hypot(place[0] - goal[0], place[2] - goal[2])); // 0: at the target
    all.push_back(std::hypot(place[0] - hand[0], place[2] - hand[2]) < 1e-9 ? 1 : 0); // in hand
    return all;
  }
};

double height_of(const Physics& physics) {
  return physics.data().qpos[qpos(physics, "root") + 2];
}

/// Checks that a quadruped stands at the lowest whole centimetre at which nothing touches, with its
/// legs at rest.
void check_lowest_place(const std::string& task, int episodes) {
  CAPTURE(task);
  const auto environment = make_task(task);
  std::vector<std::byte> observation(environment->spec().observation_bytes());
  Physics& physics = *environment->physics();
  const int root = qpos(physics, "root");
  for (int seed = 0; seed < episodes; ++seed) {
    environment->reset(static_cast<std::uint64_t>(seed), observation);
    REQUIRE(physics.data().ncon == 0);
    const double height = height_of(physics);
    CHECK(std::abs(100 * height - std::round(100 * height)) < 1e-9);
    const mjModel& model = physics.model();
    for (int joint = 0; joint < static_cast<int>(model.njnt); ++joint)
      if (model.jnt_type[joint] == mjJNT_HINGE)
        REQUIRE(physics.data().qpos[model.jnt_qposadr[joint]] == 0);
    REQUIRE(std::all_of(physics.data().act, physics.data().act + model.na,
                        [](double x) { return x == 0; }));
    physics.data().qpos[root + 2] = height - .01;
    physics.forward();
    CHECK(physics.data().ncon > 0);
  }
}

} // namespace

TEST_CASE("Humanoids start in the air with random joints and without contacts") {
  for (const auto& [task, others] :
       {std::pair<std::string, std::vector<std::string>>(
            "humanoid_stand", {"humanoid_walk", "humanoid_run", "humanoid_run_pure_state"}),
        {"humanoid_CMU_stand", {"humanoid_CMU_walk", "humanoid_CMU_run"}}}) {
    const Draws ours = draw(task, 800, state);
    const auto environment = make_task(task);
    Physics& physics = *environment->physics();
    const mjModel& model = physics.model();
    Other other;
    const auto draw_joints = [&] {
      double* root = physics.data().qpos;
      double squares = 0;
      for (int i = 3; i < 7; ++i) { // uniform, not normal numbers, as in the suite
        root[i] = other.uniform();
        squares += root[i] * root[i];
      }
      for (int i = 3; i < 7; ++i)
        root[i] /= std::sqrt(squares);
      for (int joint = 1; joint < static_cast<int>(model.njnt); ++joint) {
        REQUIRE(model.jnt_limited[joint]);
        physics.data().qpos[model.jnt_qposadr[joint]] =
            other.uniform(model.jnt_range[2 * joint], model.jnt_range[2 * joint + 1]);
      }
    };
    check_same_columns(task, ours, draw_free(physics, 1600, draw_joints, state));
    for (std::size_t i = 0; i < 3; ++i)
      check_constant(task + " place", ours[i], model.qpos0[i]);
    for (auto i = static_cast<std::size_t>(model.nq); i < ours.columns(); ++i)
      check_constant(task + " velocity", ours[i], 0);
    for (const std::string& same : others) {
      const Draws draws = draw(same, 500, state);
      for (std::size_t k = 0; k < ours.columns(); ++k)
        CHECK(std::equal(draws[k].begin(), draws[k].end(), ours[k].begin()));
    }
  }
}

TEST_CASE("Manipulators redraw arm, target and object until there are no contacts") {
  for (const auto& [task, domain] :
       {std::pair("manipulator_bring_ball", Manipulator{"ball", ""}),
        std::pair("manipulator_bring_peg", Manipulator{"peg", ""}),
        std::pair("manipulator_insert_ball", Manipulator{"ball", "cup"}),
        std::pair("manipulator_insert_peg", Manipulator{"peg", "slot"})}) {
    const auto read = [&domain = domain](const Physics& physics) { return domain.read(physics); };
    const Draws ours = draw(task, 2000, read);
    const auto environment = make_task(task);
    Physics& physics = *environment->physics();
    Other other;
    const Draws theirs = draw_free(
        physics, 4000, [&, &domain = domain] { domain.draw(physics, other); }, read);
    check_same_columns(task, ours, theirs);
    const auto& finger = ours[static_cast<std::size_t>(qpos(physics, "finger"))];
    CHECK(finger == ours[static_cast<std::size_t>(qpos(physics, "thumb"))]);
    // Draws that cannot affect contacts keep their original distribution.
    if (domain.receptacle.empty()) {
      const auto target = static_cast<std::size_t>(physics.model().nq + physics.model().nv);
      check_uncorrelated(task, ours[target], ours[target + 2]);
    }
    const auto in_hand = ours[ours.columns() - 1];
    CHECK(mean(in_hand) > .01); // some episodes begin so, although most such draws touch
    const auto to_target = ours[ours.columns() - 2];
    CHECK(std::count(to_target.begin(), to_target.end(), 0) > 30);
  }
}

TEST_CASE("Stackers redraw arm, boxes and target until there are no contacts") {
  for (const auto& [task, boxes] :
       {std::pair("stacker_stack_2", 2), std::pair("stacker_stack_4", 4)}) {
    const auto read = [](const Physics& physics) {
      std::vector<double> all = state(physics);
      const double* target = physics.model().body_pos + 3 * physics.id(mjOBJ_BODY, "target");
      all.push_back(target[0]);
      all.push_back(target[2]);
      return all;
    };
    const Draws ours = draw(task, 2000, read);
    const auto environment = make_task(task);
    Physics& physics = *environment->physics();
    const int target = physics.id(mjOBJ_BODY, "target");
    Other other;
    const auto draw_boxes = [&, boxes = boxes] {
      draw_arm(physics, other);
      const auto place =
          physics.own_array("body_pos").subspan(3 * static_cast<std::size_t>(target));
      place[0] = other.uniform(-.37, .37);
      place[2] = .022 * (2 * std::floor(other.uniform(0, boxes)) + 1);
      for (int box = 0; box < boxes; ++box) {
        const std::string name = "box" + std::to_string(box);
        physics.data().qpos[qpos(physics, name + "_x")] = other.uniform(.1, .3);
        physics.data().qpos[qpos(physics, name + "_z")] = other.uniform(0, .7);
        physics.data().qpos[qpos(physics, name + "_y")] = other.uniform(0, 2 * kPi);
      }
    };
    check_same_columns(task, ours, draw_free(physics, 4000, draw_boxes, read));
    // The target touches nothing, so its distribution is unconditional.
    check_uniform(task, ours[ours.columns() - 2], -.37, .37);
    const Sample& heights = ours[ours.columns() - 1];
    for (int level = 0; level < boxes; ++level) {
      const double height = .022 * (2 * level + 1);
      std::unique_ptr<bool[]> there(new bool[heights.size()]);
      for (std::size_t i = 0; i < heights.size(); ++i)
        there[i] = std::abs(heights[i] - height) < 1e-12;
      check_probability(task, {there.get(), heights.size()}, 1.0 / boxes);
    }
  }
}

TEST_CASE("Quadrupeds that walk, run or escape start in any attitude at the lowest height without "
          "contacts") {
  for (const char* task : {"quadruped_walk", "quadruped_run", "quadruped_escape"}) {
    const std::size_t resets = task == std::string("quadruped_escape") ? 600 : 2000;
    const Draws draws = draw(task, resets, state);
    check_constant(task, draws[0], 0);
    check_constant(task, draws[1], 0);
    for (std::size_t i = 3; i < 7; ++i)
      check_cdf(task, draws[i], sphere_coordinate_cdf(4));
    check_all_uncorrelated(task, draws, 3, 7);
    for (std::size_t i = draws.columns() - 22; i < draws.columns(); ++i)
      check_constant(task, draws[i], 0); // velocities
    check_lowest_place(task, 40);
  }
}

TEST_CASE("Fetching quadrupeds start upright anywhere, and the ball starts 2 metres up with a "
          "random push") {
  const Draws draws = draw("quadruped_fetch", 2000, [](const Physics& physics) {
    const double* root = physics.data().qpos + qpos(physics, "root");
    const double* ball = physics.data().qpos + qpos(physics, "ball_root");
    const double* push = physics.data().qvel + qvel(physics, "ball_root");
    CHECK(root[4] == 0);
    CHECK(root[5] == 0);
    double azimuth = 2 * std::atan2(root[6], root[3]);
    std::vector<double> all{root[0], root[1], azimuth, ball[0], ball[1], push[0], push[1]};
    all.insert(all.end(), {ball[2], ball[3], ball[4], ball[5], ball[6]});
    all.insert(all.end(), push + 2, push + 6);
    return all;
  });
  for (const std::size_t place : {0U, 1U, 3U, 4U})
    check_uniform("place", draws[place], -13.5, 13.5); // .9 of the floor's half width of 15 metres
  check_uniform("azimuth", draws[2], 0, 2 * kPi);
  check_normal("push x", draws[5], 0, 5);
  check_normal("push y", draws[6], 0, 5);
  check_all_uncorrelated("quadruped_fetch", draws, 0, 7);
  check_constant("ball's height", draws[7], 2);
  check_constant("ball's attitude", draws[8], 1);
  for (std::size_t i = 9; i < draws.columns(); ++i)
    check_constant("rest", draws[i], 0);
  check_lowest_place("quadruped_fetch", 40);
}

TEST_CASE("The escape task draws new terrain with uniform bumps from 0.15 to 1 in every episode") {
  constexpr int kSize = 201;
  constexpr std::size_t kEpisodes = 600;
  // Three places half way out, where the bowl's height is 1, and one where it is .5.
  constexpr std::pair<int, int> kPlaces[] = {{100, 50}, {50, 100}, {150, 100}, {100, 125}};
  const Draws ours = draw("quadruped_escape", kEpisodes, [&](const Physics& physics) {
    std::vector<double> heights;
    for (const auto& [row, column] : kPlaces)
      heights.push_back(physics.model().hfield_data[row * kSize + column]);
    return heights;
  });
  Draws theirs(std::size(kPlaces), 2000);
  Other other;
  std::vector<double> bumps(30 * 30);
  for (std::size_t i = 0; i < 2000; ++i) {
    for (double& bump : bumps)
      bump = other.uniform(.15, 1);
    const std::vector<double> smooth = enlarge_grid(bumps, 30, kSize);
    for (std::size_t k = 0; k < std::size(kPlaces); ++k) {
      const auto& [row, column] = kPlaces[k];
      const double radius = std::hypot(row - 100, column - 100) / 100;
      const double bowl = .5 - std::cos(2 * kPi * radius) / 2;
      theirs.set(i, k, bowl * smooth[static_cast<std::size_t>(row * kSize + column)]);
    }
  }
  check_same_columns("quadruped_escape", ours, theirs);
  check_all_uncorrelated("quadruped_escape", ours, 0, std::size(kPlaces));
}
