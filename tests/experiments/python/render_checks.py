"""Checks troupe.render against mujoco.Renderer (OpenGL in software); started by tests/env/remote/python_test.py with
MUJOCO_GL=egl."""

import pathlib
import threading
import unittest

import dm_control.suite
import gymnasium
import mujoco
import numpy as np
import troupe.render
from dm_control.mujoco import wrapper
from dm_control.suite.wrappers import pixels

SUITE = pathlib.Path(dm_control.suite.__file__).parent
OWN = """
<mujoco>
  <visual><headlight ambient="0.3 0.3 0.3"/></visual>
  <asset>
    <texture name="sky" type="skybox" builtin="gradient" rgb1="0.3 0.5 0.7" rgb2="0 0 0" width="64" height="64"/>
    <texture name="check" type="2d" builtin="checker" rgb1="0.9 0.8 0.2" rgb2="0.1 0.2 0.5" width="64" height="64"/>
    <material name="check" texture="check" texrepeat="4 4" reflectance="0.2"/>
    <mesh name="tetrahedron" vertex="0 0 0  1 0 0  0 1 0  0 0 1" scale="0.5 0.5 0.5"/>
  </asset>
  <worldbody>
    <light pos="0 0 4" dir="0 0 -1"/>
    <camera name="side" pos="0 -3 1.5" xyaxes="1 0 0 0 0.5 1"/>
    <geom type="plane" size="3 3 0.1" material="check"/>
    <body pos="0 0 0.3"><freejoint/><geom name="shape" type="mesh" mesh="tetrahedron" rgba="0.8 0.2 0.2 1"/></body>
    <body name="hand" pos="0.7 0 0.5"><joint axis="0 1 0"/><geom type="capsule" size="0.1 0.3" rgba="0.2 0.7 0.3 1" group="2"/></body>
    <site name="mark" pos="-0.7 0 0.5" size="0.2" rgba="0.9 0.1 0.9 1"/>
  </worldbody>
</mujoco>
"""


NO_LINES = mujoco.MjvOption()
NO_LINES.flags[mujoco.mjtVisFlag.mjVIS_RANGEFINDER] = 0


def state_of(model, seed):
    data = mujoco.MjData(model)
    rng = np.random.default_rng(seed + 1)
    data.ctrl[:] = rng.uniform(-0.5, 0.5, model.nu)
    for _ in range(20):
        mujoco.mj_step(model, data)
    mujoco.mj_forward(model, data)
    return data


def distance(a, b):
    return np.abs(a.astype(int) - b.astype(int)).mean()


class InPlaceOfMujocosRenderer(unittest.TestCase):
    models = {
        **{name: mujoco.MjModel.from_xml_path(str(SUITE / f"{name}.xml")) for name in ("cheetah", "humanoid", "swimmer", "quadruped", "fish") if (SUITE / f"{name}.xml").exists()},
        "own": mujoco.MjModel.from_xml_string(OWN),
    }

    def both(self, name):
        model = self.models[name]
        size = (min(120, model.vis.global_.offheight), min(160, model.vis.global_.offwidth))
        return model, mujoco.Renderer(model, *size), troupe.render.Renderer(model, *size)

    def test_pictures_depths_and_objects_agree(self):
        for name in self.models:
            model, theirs, ours = self.both(name)
            with theirs, ours:
                for camera in (-1, *range(model.ncam)):
                    with self.subTest(name, camera=camera):
                        data = state_of(model, camera)
                        theirs.update_scene(data, camera, NO_LINES), ours.update_scene(data, camera, NO_LINES)
                        self.assertLess(distance(theirs.render(), ours.render()), 2.5)
                        theirs.enable_depth_rendering(), ours.enable_depth_rendering()
                        a, b = theirs.render(), ours.render()
                        near = np.abs(a - b) < 0.02 * np.maximum(a, 1e-3)
                        self.assertGreater(near.mean(), 0.97)
                        theirs.disable_depth_rendering(), ours.disable_depth_rendering()
                        theirs.enable_segmentation_rendering(), ours.enable_segmentation_rendering()
                        same = (theirs.render() == ours.render()).all(axis=-1)
                        self.assertGreater(same.mean(), 0.97)
                        theirs.disable_segmentation_rendering(), ours.disable_segmentation_rendering()

    def test_cameras_by_name_and_by_hand_and_options(self):
        model, theirs, ours = self.both("own")
        data = state_of(model, 1)
        free = mujoco.MjvCamera()
        free.lookat[:], free.distance, free.azimuth, free.elevation = (0, 0, 0.3), 4, 70, -30
        following = mujoco.MjvCamera()
        following.type, following.trackbodyid, following.distance = mujoco.mjtCamera.mjCAMERA_TRACKING, model.body("hand").id, 3
        hidden = mujoco.MjvOption()
        hidden.geomgroup[2], hidden.sitegroup[0] = 0, 0
        pictures = []
        with theirs, ours:
            for camera, option in [("side", None), (free, None), (following, None), ("side", hidden)]:
                theirs.update_scene(data, camera, option), ours.update_scene(data, camera, option)
                pictures.append(ours.render())
                self.assertLess(distance(theirs.render(), pictures[-1]), 2.5)
        self.assertGreater(distance(pictures[0], pictures[3]), 1)

    def test_a_picture_is_of_the_state_at_the_update(self):
        model = self.models["own"]
        data = state_of(model, 1)
        with troupe.render.Renderer(model, 60, 80) as renderer:
            renderer.update_scene(data, "side")
            before = renderer.render()
            data.qpos[2] += 1
            mujoco.mj_forward(model, data)
            np.testing.assert_array_equal(renderer.render(), before)
            renderer.update_scene(data, "side")
            self.assertGreater(distance(renderer.render(), before), 0.5)
            out = np.empty((60, 80, 3), np.uint8)
            self.assertIs(renderer.render(out=out), out)
        with self.assertRaisesRegex(RuntimeError, "after close"):
            renderer.render()

    def test_keywords_replace_the_flags_of_the_scene(self):
        model = self.models["own"]
        data = state_of(model, 1)
        flags = (mujoco.mjtRndFlag.mjRND_SHADOW, mujoco.mjtRndFlag.mjRND_REFLECTION, mujoco.mjtRndFlag.mjRND_FOG)
        pictures = []
        for options, values in [({}, (1, 1, 0)), ({"effects": False}, (0, 0, 0)), ({"fog": True}, (1, 1, 1))]:
            with mujoco.Renderer(model, 60, 80) as theirs, troupe.render.Renderer(model, 60, 80, **options) as ours:
                theirs.update_scene(data, "side"), ours.update_scene(data, "side")
                for flag, value in zip(flags, values):
                    theirs.scene.flags[flag] = value
                pictures.append(ours.render())
                self.assertLess(distance(theirs.render(), pictures[-1]), 3, options)
                with self.assertRaisesRegex(AttributeError, "no scene: add geoms to the model"):
                    ours.scene.ngeom += 1
        self.assertGreater(distance(pictures[0], pictures[1]), 0.5)
        self.assertGreater(distance(pictures[0], pictures[2]), 0.5)

    def test_the_framebuffer_does_not_limit_the_size(self):
        model = self.models["own"]
        size = (model.vis.global_.offheight + 8, model.vis.global_.offwidth + 8)
        with troupe.render.Renderer(model, *size) as renderer:
            with self.assertRaisesRegex(ValueError, "call update\\(\\) first"):
                renderer.render()
            renderer.update_scene(state_of(model, 1))
            self.assertEqual(renderer.render().shape, (*size, 3))

    def test_changes_of_the_model_show(self):
        model = mujoco.MjModel.from_xml_string(OWN)
        data = state_of(model, 1)
        caster = troupe.render.RayCaster(model, 60, 80)
        before = caster.rgb(data, "side")
        model.geom("shape").rgba = (0, 0, 1, 1)
        self.assertGreater(distance(before, caster.rgb(data, "side")), 0.5)


class ManyPictures(unittest.TestCase):
    def test_positions_on_threads_are_single_pictures(self):
        model = mujoco.MjModel.from_xml_string(OWN)
        data = mujoco.MjData(model)
        caster = troupe.render.RayCaster(model, 48, 64)
        positions = np.repeat(data.qpos[None], 12, 0)
        positions[:, 2] += np.linspace(0, 1, 12)
        for kind, single in [("rgb", caster.rgb), ("depth", caster.depth), ("segmentation", caster.segmentation)]:
            many = caster.positions(positions, "side", kind, threads=3)
            for position, picture in zip(positions, many):
                data.qpos[:] = position
                mujoco.mj_forward(model, data)
                np.testing.assert_array_equal(picture, single(data, "side"))

    def test_threads_with_a_caster_each(self):
        model = mujoco.MjModel.from_xml_string(OWN)
        data = state_of(model, 1)
        expected = troupe.render.RayCaster(model, 48, 64).rgb(data, "side")
        results = []

        def draw():
            caster = troupe.render.RayCaster(model, 48, 64)
            results.append(all((caster.rgb(mine, "side") == expected).all() for mine in [state_of(model, 1)] * 50))

        threads = [threading.Thread(target=draw) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(results, [True] * 4)


class Rays(unittest.TestCase):
    models = {
        **{name: mujoco.MjModel.from_xml_path(str(SUITE / f"{name}.xml")) for name in ("humanoid", "quadruped", "cheetah") if (SUITE / f"{name}.xml").exists()},
        "own": mujoco.MjModel.from_xml_string(OWN),
    }

    def test_a_lidar_is_mj_multi_rays(self):
        for name, model in self.models.items():
            data = state_of(model, 2)
            directions = troupe.render.lidar(np.linspace(-np.pi, np.pi, 180, endpoint=False), np.radians(np.linspace(-40, 40, 9)))
            self.assertEqual(directions.shape, (9, 180, 3))
            np.testing.assert_allclose(np.linalg.norm(directions, axis=-1), 1)
            origin = data.xpos[1] + [0.3, 0.2, 1]
            distances, geoms = troupe.render.RayCaster(model, 8, 8).rays(data, origin, directions)
            count = directions[..., 0].size
            theirs, their_geoms = np.zeros(count), np.zeros(count, np.int32)
            mujoco.mj_multiRay(model, data, origin, directions.ravel(), None, 1, -1, their_geoms, theirs, None, count, mujoco.mjMAXVAL)
            with self.subTest(name):
                self.assertEqual((distances.dtype, geoms.dtype, geoms.shape), (np.float32, np.int32, (9, 180)))
                same = geoms.ravel() == their_geoms
                self.assertGreater((geoms >= 0).mean(), 0.02)
                self.assertGreater(same.mean(), 0.999)
                np.testing.assert_allclose(distances.ravel()[same], theirs[same], rtol=1e-4, atol=1e-4)

    def test_options_are_mj_rays(self):
        model = self.models["own"]
        data = state_of(model, 1)
        caster = troupe.render.RayCaster(model, 8, 8)
        rng = np.random.default_rng(0)
        origins, directions = rng.uniform(-1, 1, (500, 3)) + [0, 0, 1], rng.normal(size=(500, 3))
        hand = model.body("hand").id
        for options, words in [({}, (None, 1, -1)), ({"groups": [1, 1, 0, 1, 1, 1]}, ([1, 1, 0, 1, 1, 1], 1, -1)),
                               ({"statics": False}, (None, 0, -1)), ({"exclude_body": "hand"}, (None, 1, hand)), ({"exclude_body": hand}, (None, 1, hand))]:
            distances, geoms = caster.rays(data, origins, directions, **options)
            groups = None if words[0] is None else np.array(words[0], np.uint8)
            found = np.zeros(1, np.int32)
            expected = []
            for origin, direction in zip(origins, directions):
                distance = mujoco.mj_ray(model, data, origin, direction, groups, *words[1:], found)
                expected.append((distance, found[0]))
            expected = np.array(expected)
            with self.subTest(options):
                same = geoms == expected[:, 1]
                self.assertGreater(same.mean(), 0.997)
                np.testing.assert_allclose(distances[same], expected[same, 0], rtol=1e-4, atol=1e-4)
        everything, _ = caster.rays(data, origins, directions)
        distances, geoms = caster.rays(data, origins, directions, cutoff=0.5)
        np.testing.assert_array_equal(distances, np.where(everything < 0.5, everything, -1))
        np.testing.assert_array_equal(distances == -1, geoms == -1)

    def test_a_turned_sensor(self):
        turned = np.array([[0, -1, 0], [1, 0, 0], [0, 0, 1]])
        np.testing.assert_allclose(troupe.render.lidar([0.0, np.pi / 2], [0.0], turned)[0], [[0, 1, 0], [-1, 0, 0]], atol=1e-12)


class StockEnvironments(unittest.TestCase):
    def test_a_wrapper_draws_gymnasiums_tasks(self):
        plain = gymnasium.make("HalfCheetah-v5", render_mode="rgb_array", width=96, height=64)
        cast = troupe.render.GymnasiumPictures(gymnasium.make("HalfCheetah-v5"), height=64, width=96)
        for env in (plain, cast):
            env.reset(seed=1)
            env.step(np.zeros(6))
        self.assertEqual(cast.render_mode, "rgb_array")
        self.assertLess(distance(plain.render(), cast.render()), 3)
        pixels = gymnasium.wrappers.AddRenderObservation(cast, render_only=True)
        self.assertEqual(pixels.reset(seed=1)[0].shape, (64, 96, 3))

    def test_dm_controls_pixel_wrapper_draws_with_the_ray_caster(self):
        options = {"height": 64, "width": 96, "camera_id": "side"}
        stock, cast = (dm_control.suite.load("cheetah", "run", task_kwargs={"random": 1}) for _ in range(2))
        troupe.render.cast_physics(cast.physics)
        stock, cast = (pixels.Wrapper(env, render_kwargs=options) for env in (stock, cast))
        self.assertEqual(cast.observation_spec(), stock.observation_spec())
        first = [env.reset().observation["pixels"] for env in (stock, cast)]
        for action in np.random.default_rng(1).uniform(-1, 1, (5, 6)):
            theirs, ours = (env.step(action).observation["pixels"] for env in (stock, cast))
            self.assertLess(distance(theirs, ours), 3)
            np.testing.assert_array_equal(ours, troupe.render.draw_physics(cast.physics, 64, 96, "side"))
        self.assertGreater(distance(ours, first[1]), 0.3)
        del cast.physics.render
        np.testing.assert_array_equal(cast.physics.render(**options), stock.physics.render(**options))

    def test_pictures_of_physics_have_dm_controls_arguments(self):
        env = dm_control.suite.load("cheetah", "run", task_kwargs={"random": 1})
        env.reset()
        size = (64, 96, 0)
        picture = troupe.render.draw_physics(env.physics, *size)
        self.assertLess(distance(picture, env.physics.render(*size)), 3)
        theirs, ours = env.physics.render(*size, depth=True), troupe.render.draw_physics(env.physics, *size, depth=True)
        self.assertEqual((ours.shape, ours.dtype), (theirs.shape, theirs.dtype))
        seen = ours < 0.99 * ours.max()
        self.assertGreater(seen.mean(), 0.1)
        self.assertGreater((np.abs(ours - theirs) < 0.05 * theirs)[seen].mean(), 0.95)  # mujoco.Renderer's depths are more exact than dm_control's
        theirs, ours = env.physics.render(*size, segmentation=True), troupe.render.draw_physics(env.physics, *size, segmentation=True)
        self.assertEqual((ours.shape, ours.dtype), (theirs.shape, theirs.dtype))
        self.assertGreater((ours == theirs).all(axis=-1).mean(), 0.97)
        hidden = wrapper.MjvOption()
        hidden.geomgroup[0] = 0
        without = troupe.render.draw_physics(env.physics, *size, scene_option=hidden)
        self.assertLess(distance(without, env.physics.render(*size, scene_option=hidden)), 3)
        self.assertGreater(distance(without, picture), 2)
        np.testing.assert_array_equal(troupe.render.draw_physics(env.physics, *size), picture)  # the default option again
        for options, words in [
            ({"depth": True, "segmentation": True}, "both True"),
            ({"render_flag_overrides": {"wireframe": True}}, "render_flag_overrides is .*wireframe"),
            ({"scene_callback": lambda physics, scene: None}, "scene_callback is"),
            ({"camera_id": "front"}, 'camera is "front"; the model has \'side\''),
        ]:
            with self.subTest(words), self.assertRaisesRegex(ValueError, words):
                troupe.render.draw_physics(env.physics, **options)
        with self.assertRaisesRegex(TypeError, "Physics of dm_control, e.g. env.physics"):
            troupe.render.cast_physics(env)


class Mistakes(unittest.TestCase):
    def test_they_are_named(self):
        model = mujoco.MjModel.from_xml_string(OWN)
        data = mujoco.MjData(model)
        other = mujoco.MjData(mujoco.MjModel.from_xml_string("<mujoco/>"))
        caster = troupe.render.RayCaster(model, 48, 64)
        hulls = mujoco.MjvOption()
        hulls.flags[mujoco.mjtVisFlag.mjVIS_CONVEXHULL] = 1
        for call, words in [
            (lambda: caster.update(data, -1, hulls), "mjVIS_CONVEXHULL.* is 1; it must be 0"),
            (lambda: troupe.render.RayCaster(model, 0, 64), "height: 0 pixels is out of range"),
            (lambda: caster.rgb(data, "front"), "camera is \"front\"; the model has 'side'"),
            (lambda: caster.rgb(data, 1), "camera is 1; it must be from -1"),
            (lambda: caster.rgb(other), "data has 0 positions and the model 8"),
            (lambda: caster.rgb(data, out=np.empty((48, 64, 3), np.float32)), "out is float32"),
            (lambda: caster.rgb(data, out=np.empty((48, 64, 6), np.uint8)[..., ::2]), "C-contiguous"),
            (lambda: caster.positions(np.zeros((2, 3))), "shape \\[n, 8\\]"),
            (lambda: caster.positions(np.zeros((2, 8)), threads=0), "threads is 0"),
            (lambda: caster.render("colour"), "kind is 'colour'"),
            (lambda: caster.rays(data, [0, 0, 1], [0, 0]), "origins are \\[3\\] and directions \\[2\\]"),
            (lambda: caster.rays(data, [0, 0], [0, 0]), "both must be"),
            (lambda: caster.rays(data, [0, 0, 1], [0, 0, 1], groups=[True]), "groups has 1 values"),
            (lambda: caster.rays(data, [0, 0, 1], [0, 0, 1], exclude_body=99), "exclude_body is 99"),
            (lambda: caster.rays(data, [0, 0, 1], [0, 0, 1], cutoff=0), "cutoff is 0"),
            (lambda: caster.rays(other, [0, 0, 1], [0, 0, 1]), "data has 0 positions"),
            (lambda: troupe.render.RayCaster(model, 48, 64).render(), "call update\\(\\) first"),
        ]:
            with self.subTest(words), self.assertRaisesRegex(ValueError, words):
                call()


if __name__ == "__main__":
    unittest.main(verbosity=1)
