"""Moving cameras: detect camera motion, estimate it, and map between the frames and a view that stands still.

>>> video = open_video("drone.mp4")
>>> if check_camera(video).moves:
...     motion = estimate_motion(video)
...     print(motion.describe())

Needs OpenCV, which comes with scalor[video]. It is imported when one of these functions is called.
"""

from scalor.camera.check import CameraCheck, check_camera
from scalor.camera.estimate import estimate_motion
from scalor.camera.stabilise import CameraMotion

__all__ = ["CameraCheck", "CameraMotion", "check_camera", "estimate_motion"]
