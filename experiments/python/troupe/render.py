"""Renders MuJoCo models with Troupe's ray caster, on the processor and without OpenGL."""

from __future__ import annotations

import functools
from typing import Any, Callable, Optional, Sequence, Tuple, Union

import mujoco
import numpy as np

from troupe import _native
from troupe.pictures import KINDS, check_kind, shown

__all__ = ["GymnasiumPictures", "RayCaster", "Renderer", "cast_physics", "draw_physics", "lidar"]

Camera = Union[int, str, mujoco.MjvCamera]


def _camera(model: mujoco.MjModel, camera: Camera) -> mujoco.MjvCamera:
    if isinstance(camera, mujoco.MjvCamera):
        return camera
    number = camera
    if isinstance(camera, str):
        number = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_CAMERA.value, camera)
        if number == -1:
            names = [model.camera(i).name for i in range(model.ncam)]
            raise ValueError(f'camera is "{camera}"; the model has {", ".join(map(repr, names)) or "none"}, and -1 is the free camera')
    if not -1 <= number < model.ncam:
        raise ValueError(f"camera is {number}; it must be from -1, the free camera, to {model.ncam - 1}")
    out = mujoco.MjvCamera()
    out.fixedcamid = number
    if number == -1:
        mujoco.mjv_defaultFreeCamera(model, out)
    else:
        out.type = mujoco.mjtCamera.mjCAMERA_FIXED
    return out


class RayCaster:
    """Draws the caller's `mujoco.MjModel` with `height` by `width` pixels.

        caster = troupe.render.RayCaster(model, 84, 84)
        pixels = caster.rgb(data, camera="side")

    The pictures are like those of `mujoco.Renderer`, with shadows, reflections and four samples per pixel (`effects`), and take a few tens
    of microseconds. Changes to the model's colours, materials, lights, cameras and sizes take effect in the next picture; meshes and
    textures stay as they were when the caster was made. Only one thread at a time may use a caster; one for each thread is cheap. The GIL is
    released while it draws. A notebook displays the arrays as pictures."""

    def __init__(self, model: mujoco.MjModel, height: int = 240, width: int = 320, *, effects: bool = True, fog: bool = False, grey: bool = False):
        self._model = model
        self._native = _native.Caster(model._address, height=height, width=width, effects=effects, fog=fog, grey=grey)
        self.height, self.width = height, width
        self._shapes = {
            "rgb": (height, width, 1 if grey else 3),
            "depth": (height, width),
            "segmentation": (height, width, 2),
        }

    @property
    def model(self) -> mujoco.MjModel:
        return self._model

    def _out(self, kind: str, out: Optional[np.ndarray], count: Sequence[int] = ()) -> np.ndarray:
        shape, dtype = (*count, *self._shapes[kind]), KINDS[kind][1]
        if out is None:
            return shown(np.empty(shape, dtype))
        if out.shape != shape or out.dtype != dtype:
            raise ValueError(f"out is {out.dtype} {out.shape}; it must be {np.dtype(dtype)} {shape}")
        return out

    def _check_state(self, data: mujoco.MjData) -> None:
        if data.qpos.shape[0] != self._model.nq or data.geom_xpos.shape[0] != self._model.ngeom:
            raise ValueError(f"data has {data.qpos.shape[0]} positions and the model {self._model.nq}; it must be of this model")

    def update(self, data: mujoco.MjData, camera: Camera = -1, option: Optional[mujoco.MjvOption] = None) -> None:
        """Takes the state that render() draws. Its derived quantities must be up to date (`mj_forward`)."""
        self._check_state(data)
        self._native.update(data._address, _camera(self._model, camera), option)

    def render(self, kind: str = "rgb", *, out: Optional[np.ndarray] = None) -> np.ndarray:
        """Draws the state of the last update(): "rgb" uint8 [height, width, 3] (1 if grey), "depth" float32 [height, width] metres from the
        camera's plane, or "segmentation" int32 [height, width, 2], object id and type of what is visible (-1, -1: nothing)."""
        check_kind(kind)
        out = self._out(kind, out)
        self._native.draw(KINDS[kind][0], out)
        return out

    def rgb(self, data: mujoco.MjData, camera: Camera = -1, *, out: Optional[np.ndarray] = None) -> np.ndarray:
        self.update(data, camera)
        return self.render("rgb", out=out)

    def depth(self, data: mujoco.MjData, camera: Camera = -1, *, out: Optional[np.ndarray] = None) -> np.ndarray:
        self.update(data, camera)
        return self.render("depth", out=out)

    def segmentation(self, data: mujoco.MjData, camera: Camera = -1, *, out: Optional[np.ndarray] = None) -> np.ndarray:
        self.update(data, camera)
        return self.render("segmentation", out=out)

    def rays(
        self,
        data: mujoco.MjData,
        origins: np.ndarray,
        directions: np.ndarray,
        *,
        groups: Optional[Sequence[bool]] = None,
        statics: bool = True,
        exclude_body: Union[int, str] = -1,
        cutoff: float = np.inf,
    ) -> Tuple[np.ndarray, np.ndarray]:
        """Finds the first geom that each ray hits. Returns distances, float32 [...] in multiples of the direction's length, and geoms,
        int32 [...]; both are -1 if nothing is within `cutoff`. `origins` and `directions` are [..., 3] in world coordinates, and are broadcast
        as in NumPy: for example one origin with many directions, as for lidar().

        Rays hit what `mujoco.mj_ray` hits: geoms of the `groups` (six truth values; None: all), with or without `statics`, which are fixed to
        the world. Surfaces are also hit from inside, and planes from their front. `exclude_body`, a number or name, is the sensor's own body.
        A signed distance field is hit as its mesh; flexes and skins are not hit. The state's kinematics must be up to date (`mj_kinematics` or `mj_forward`)."""
        self._check_state(data)
        directions, origins = (np.asarray(array, np.float64) for array in (directions, origins))
        if origins.shape[-1:] != (3,) or directions.shape[-1:] != (3,):
            raise ValueError(f"origins are {list(origins.shape)} and directions {list(directions.shape)}; both must be [..., 3]")
        shape = np.broadcast_shapes(origins.shape, directions.shape)
        if groups is not None and len(groups) != mujoco.mjNGROUP:
            raise ValueError(f"groups has {len(groups)} values; it must have {mujoco.mjNGROUP}, one for each group of geoms")
        if isinstance(exclude_body, str):
            exclude_body = self._model.body(exclude_body).id
        distances, geoms = np.empty(shape[:-1], np.float32), np.empty(shape[:-1], np.int32)
        self._native.cast_rays(
            data._address,
            origins if origins.size == 3 else np.ascontiguousarray(np.broadcast_to(origins, shape)),
            np.ascontiguousarray(np.broadcast_to(directions, shape)),
            groups=[True] * mujoco.mjNGROUP if groups is None else [bool(group) for group in groups],
            statics=statics,
            exclude_body=exclude_body,
            cutoff=cutoff,
            distances=distances,
            geoms=geoms,
        )
        return distances, geoms

    def positions(
        self,
        qpos: np.ndarray,
        camera: Camera = -1,
        kind: str = "rgb",
        *,
        threads: int = 1,
        option: Optional[mujoco.MjvOption] = None,
        out: Optional[np.ndarray] = None,
    ) -> np.ndarray:
        """Draws each of the positions `qpos` [n, nq] on several threads: returns [n, height, width, …]."""
        check_kind(kind)
        qpos = np.ascontiguousarray(qpos, np.float64)
        out = self._out(kind, out, qpos.shape[:1])
        camera = _camera(self._model, camera)
        self._native.draw_positions(qpos, camera=camera, option=option, kind=KINDS[kind][0], threads=threads, out=out)
        return out


def lidar(azimuths: Sequence[float], elevations: Sequence[float], rotation: Optional[np.ndarray] = None) -> np.ndarray:
    """Returns the unit directions [elevations, azimuths, 3] of a rotating sensor. Angles are in radians: azimuths to the left of its x axis,
    elevations above its x-y plane. `rotation` is the sensor's orientation in the world, e.g. `data.site("lidar").xmat`; None: the world's axes."""
    azimuth, elevation = np.asarray(azimuths, np.float64)[None, :], np.asarray(elevations, np.float64)[:, None]
    directions = np.stack([np.cos(elevation) * np.cos(azimuth), np.cos(elevation) * np.sin(azimuth), np.sin(elevation) + 0 * azimuth], axis=-1)
    return directions if rotation is None else directions @ np.reshape(rotation, (3, 3)).T


class Renderer:
    """A replacement for `mujoco.Renderer` with the same methods and pictures, but without OpenGL. It differs as follows:

    - There is no `scene`. Geoms cannot be added to it by hand; add bodies with `mocap="true"` to the model instead. In place of `scene.flags`
      (shadow, reflection, fog) it has the keywords `effects=False` (no shadows, reflections and smoothing) and `fog=True`.
    - Lines and arrows (rangefinders, contact forces) and labels are not drawn. The option `mjVIS_CONVEXHULL` raises ValueError.
    - The size is at most 4096 by 4096 pixels and not limited by the model's offscreen framebuffer.
    - render() raises ValueError before the first update_scene(). `out` must have the type and shape of the result."""

    def __init__(
        self,
        model: mujoco.MjModel,
        height: int = 240,
        width: int = 320,
        max_geom: int = 10000,
        font_scale: Any = None,
        *,
        effects: bool = True,
        fog: bool = False,
    ):
        del max_geom, font_scale  # only OpenGL needs them
        self._caster: Optional[RayCaster] = RayCaster(model, height, width, effects=effects, fog=fog)
        self._option = mujoco.MjvOption()
        self._kind = "rgb"
        self._size = (height, width)
        self._model = model

    @property
    def model(self) -> mujoco.MjModel:
        return self._model

    @property
    def height(self) -> int:
        return self._size[0]

    @property
    def width(self) -> int:
        return self._size[1]

    @property
    def scene(self) -> Any:
        raise AttributeError(
            "troupe.render.Renderer has no scene: add geoms to the model, use the keywords effects and fog in place of flags, or use mujoco.Renderer"
        )

    def enable_depth_rendering(self) -> None:
        self._kind = "depth"

    def disable_depth_rendering(self) -> None:
        self._kind = "segmentation" if self._kind == "segmentation" else "rgb"

    def enable_segmentation_rendering(self) -> None:
        self._kind = "segmentation"

    def disable_segmentation_rendering(self) -> None:
        self._kind = "depth" if self._kind == "depth" else "rgb"

    def _open(self) -> RayCaster:
        if self._caster is None:
            raise RuntimeError("render cannot be called after close")
        return self._caster

    def update_scene(self, data: mujoco.MjData, camera: Camera = -1, scene_option: Optional[mujoco.MjvOption] = None) -> None:
        self._open().update(data, camera, scene_option or self._option)

    def render(self, *, out: Optional[np.ndarray] = None) -> np.ndarray:
        return self._open().render(self._kind, out=out)

    def close(self) -> None:
        self._caster = None

    def __enter__(self) -> "Renderer":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


def draw_physics(
    physics: Any,
    height: int = 240,
    width: int = 320,
    camera_id: Camera = -1,
    overlays: Sequence[Any] = (),
    depth: bool = False,
    segmentation: bool = False,
    scene_option: Optional[mujoco.MjvOption] = None,
    render_flag_overrides: Any = None,
    scene_callback: Optional[Callable[..., None]] = None,
) -> np.ndarray:
    """A replacement for dm_control's `physics.render(height, width, camera_id, …)`, with its arguments and results: uint8 [height, width, 3], with
    `depth` float32 [height, width] in metres, with `segmentation` int32 [height, width, 2]. The ray caster has no `overlays`,
    `render_flag_overrides` and `scene_callback`; they raise ValueError. Depths are those of `mujoco.Renderer`; dm_control's differ by a few
    percent, and more in the sky. The size is not limited by the model's framebuffer. Casters are kept with `physics`."""
    for name, value in (("overlays", overlays), ("render_flag_overrides", render_flag_overrides), ("scene_callback", scene_callback)):
        if value:
            raise ValueError(f"{name} is {value!r}; the ray caster does not draw it: leave it out, or use dm_control's own render")
    if depth and segmentation:
        raise ValueError("depth and segmentation are both True; ask for one of them at a time")
    model, data = physics.model.ptr, physics.data.ptr
    casters = physics.__dict__.setdefault("_troupe_casters", {})
    key = (height, width, scene_option is None)  # a caster keeps its last option
    if key not in casters or casters[key].model is not model:
        casters[key] = RayCaster(model, height, width)
    casters[key].update(data, camera_id, scene_option)
    return casters[key].render("depth" if depth else "segmentation" if segmentation else "rgb")


def cast_physics(physics: Any) -> None:
    """From this call on, `physics.render(…)` of a dm_control task is `draw_physics(physics, …)`, also for callers inside dm_control such as
    `suite.wrappers.pixels.Wrapper`:

        env = suite.load("cheetah", "run")
        troupe.render.cast_physics(env.physics)
        env = pixels.Wrapper(env, render_kwargs={"height": 84, "width": 84, "camera_id": 0})

    Neither OpenGL nor MUJOCO_GL is needed. `del physics.render` undoes it. Copies of `physics`, and `dm_control.mujoco.Camera` with composer's
    camera observables, still draw with OpenGL."""
    if not callable(getattr(physics, "render", None)) or not hasattr(getattr(physics, "model", None), "ptr"):
        raise TypeError(f"physics is {physics!r}; it must be a Physics of dm_control, e.g. env.physics")
    physics.render = functools.partial(draw_physics, physics)


def __getattr__(name: str) -> Any:
    if name == "GymnasiumPictures":  # only this class needs Gymnasium
        from troupe.gymnasium_pictures import GymnasiumPictures

        return GymnasiumPictures
    raise AttributeError(f"troupe.render has no '{name}'; it has {', '.join(__all__)}")
