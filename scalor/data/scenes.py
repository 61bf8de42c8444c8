"""Synthetic scenes with truth: many small objects that move in straight lines, cover each other, leave and return.

The view is the centre of an environment that reaches 0.6 s beyond it on every side, s being the size of an
object. Centres move with constant velocity and are reflected at the environment's walls. Everything is in
closed form in time and drawn by counting (`hashing`), so a frame depends only on (seed, split, index, t).
Nothing here reads a tensor back or lets a shape depend on one: a call can be captured in a CUDA graph.

Inside, objects are sorted from front to back and come first: N objects, B clips, T frames, S by S windows.
"""

import math
from typing import Protocol

import torch
from jaxtyping import Float, Int
from torch import Tensor

from scalor.config import SceneConfig
from scalor.data.clip import Clip, Truth
from scalor.data.hashing import between, fold, key, uniform, whole
from scalor.data.mnist import Digits, DigitSprites, load_digits
from scalor.data.shapes import Shapes, colours
from scalor.data.textures import textures
from scalor.errors import InputError
