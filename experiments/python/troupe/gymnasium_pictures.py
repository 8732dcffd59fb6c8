"""Ray-cast pictures of Gymnasium's MuJoCo tasks."""

from __future__ import annotations

from typing import Any, Optional

import gymnasium
import mujoco
import numpy as np

from troupe.render import Camera, RayCaster


def _own_camera(task: gymnasium.Env) -> Camera:
    """Finds the camera like MujocoRenderer: the requested one, otherwise the free camera with the task's settings."""
    renderer = getattr(task, "mujoco_renderer", None)
    number = getattr(renderer, "camera_id", -1)
    if number != -1:
        return number
    camera = mujoco.MjvCamera()
    camera.lookat[:] = np.median(task.data.geom_xpos, axis=0)
    camera.distance = task.model.stat.extent
    for name, value in (getattr(renderer, "default_cam_config", None) or {}).items():
        if isinstance(value, np.ndarray):
            getattr(camera, name)[:] = value
        else:
            setattr(camera, name, value)
    return camera


class GymnasiumPictures(gymnasium.Wrapper):
    """GymnasiumPictures(gymnasium.make("HalfCheetah-v5"), height=84, width=84): render() uses the ray caster, so that neither OpenGL
    nor `render_mode` is needed. It works with every environment that has MuJoCo's `model` and `data` as attributes, as all tasks based on
    MujocoEnv do. `camera` is the name or number of a camera of the model, or an MjvCamera; None: the camera that the environment itself uses."""

    def __init__(self, env: gymnasium.Env, height: int = 240, width: int = 320, camera: Optional[Camera] = None, **options: Any):
        super().__init__(env)
        model = getattr(env.unwrapped, "model", None)
        if not hasattr(model, "_address"):
            raise TypeError(f"{env} has no MuJoCo `model`, so it cannot be rendered")
        self._camera = camera
        self._size = (height, width)
        self._options = options
        self._caster: Optional[RayCaster] = None
        self.metadata = {**env.metadata, "render_modes": ["rgb_array"]}

    @property
    def render_mode(self) -> str:
        return "rgb_array"

    def render(self) -> np.ndarray:
        task = self.env.unwrapped
        if self._camera is None:
            self._camera = _own_camera(task)
        if self._caster is None or self._caster.model is not task.model:
            self._caster = RayCaster(task.model, *self._size, **self._options)
        return self._caster.rgb(task.data, self._camera)
