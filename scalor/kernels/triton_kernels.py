"""The Triton kernels of crop and paste.

Every pixel or sample gathers its inputs, so there are no atomic additions and every run gives the same bits. Sums are
in float32 for all input types. Sizes that determine the code of a kernel (channels, samples, frame, tiles) are
compile-time constants; the number of objects is not.

N objects, C channels, P by P samples of a glimpse, H by W pixels of a frame, SIDE pixels along a tile.
"""

# mypy: ignore-errors
# ruff: noqa: RUF005 (Triton knows no starred tuples; nor does its interpreter know `range` over a tensor)

import triton
import triton.language as tl


@triton.jit
def _box(where, n):
    box = where + n * 4
    return tl.load(box), tl.load(box + 1), tl.load(box + 2), tl.load(box + 3)


@triton.jit
def _taps(position, COUNT: tl.constexpr):
    """Return the two of COUNT samples at 0, 1, ... that a position lies between: indices, weights, slopes of weights.

    Outside the row of samples, weights and slopes are zero. NaN positions give NaN weights, so that an invalid box is
    noticed.
    """
    inside = (position >= -1) & (position < COUNT)
    position = tl.where(position < -1, -1.0, tl.where(position > COUNT, COUNT * 1.0, position))
    floor = tl.floor(position)
    part = position - floor
    no_low, no_high = (floor < 0) | (floor > COUNT - 1), floor > COUNT - 2
    low_weight, high_weight = tl.where(no_low, 0.0, 1 - part), tl.where(no_high, 0.0, part)
    low_slope, high_slope = tl.where(no_low | ~inside, 0.0, -1.0), tl.where(no_high | ~inside, 0.0, 1.0)
    low = tl.minimum(tl.maximum(floor.to(tl.int32), 0), COUNT - 1)
    high = tl.minimum(tl.maximum(floor.to(tl.int32) + 1, 0), COUNT - 1)
    return low, high, low_weight, high_weight, low_slope, high_slope


@triton.jit
def _points(sample, centre, size, P: tl.constexpr):
    """Return the positions of a crop's samples, as fractional indices of pixels."""
    return centre - 0.5 + (sample + (0.5 - P * 0.5)) * (size / P)


@triton.jit
def _support(sample, centre, size, P: tl.constexpr, COUNT: tl.constexpr):
    """Return the first pixel that each sample of a pasted glimpse spreads over, and the largest number of them."""
    step = size / P
    # The margins of 0.001 keep rounding from dropping the pixel at the edge of a sample's support: its weight is zero
    # there, but the slope of its weight is not.
    first = tl.ceil(centre - 0.501 + (sample - (P * 0.5 + 0.5)) * step)
    first = tl.minimum(tl.maximum(first, 0.0), COUNT * 1.0).to(tl.int32)
    most = tl.minimum(tl.ceil(2 * step + 0.002), COUNT * 1.0).to(tl.int32)
    reach = size * (0.5 + 0.5 / P)
    touches = (centre + reach > 0.5) & (centre - reach < COUNT - 0.5)
    return first, tl.where(touches, most, 0)


@triton.jit
def _readers(pixel, centre, size, P: tl.constexpr):
    """Return the first sample of a crop that reads each pixel, and the largest number of such samples."""
    step = size / P
    first = tl.ceil((pixel - 0.5 - centre) / step + (P * 0.5 - 0.5))
    first = tl.minimum(tl.maximum(first, 0.0), P * 1.0).to(tl.int32)
    return first, tl.minimum(tl.ceil(2 / step), P * 1.0).to(tl.int32)


@triton.jit
def _touches(where, n, valid, top, left, share, pixels, SIDE: tl.constexpr):
    """Return which boxes contain a pixel centre of a tile.

    Boxes extend `share` of their size plus `pixels` to each side of their centre.
    """
    box = where + n * 4
    x, y = tl.load(box, valid, 0.0), tl.load(box + 1, valid, 0.0)
    width, height = tl.load(box + 2, valid, 0.0), tl.load(box + 3, valid, 0.0)
    across, down = width * share + pixels, height * share + pixels
    away = (x + across <= left + 0.5) | (x - across >= left + SIDE - 0.5)
    away = away | (y + down <= top + 0.5) | (y - down >= top + SIDE - 0.5)
    return valid & (away == 0)


@triton.jit
def paste_forward_kernel(
    glimpses,
    where,
    canvas,
    N,
    C: tl.constexpr,
    P: tl.constexpr,
    H: tl.constexpr,
    W: tl.constexpr,
    SIDE: tl.constexpr,
    HELD: tl.constexpr,
):
    """Paste all objects that touch a tile. One program handles one tile of one clip."""
    ACROSS: tl.constexpr = (W + SIDE - 1) // SIDE
    TILES: tl.constexpr = ACROSS * ((H + SIDE - 1) // SIDE)
    clip = (tl.program_id(0) // TILES).to(tl.int64)
    tile = tl.program_id(0) % TILES
    top, left = tile // ACROSS * SIDE, tile % ACROSS * SIDE
    row, column = top + tl.arange(0, SIDE), left + tl.arange(0, SIDE)
    where += clip * N * 4
    glimpses += clip * N * (C * P * P)
    total = ()
    for _c in tl.static_range(C):
        total = total + (tl.full([SIDE, SIDE], 0.0, tl.float32),)
    start = 0
    while start < N:
        held = start + tl.arange(0, HELD)
        touch = _touches(where, held, held < N, top, left, 0.5 + 0.5 / P, 0.0, SIDE)
        n = tl.min(tl.where(touch, held, N), 0)
        while n < N:
            x, y, width, height = _box(where, n)
            following = tl.min(tl.where(touch & (held > n), held, N), 0)
            i0, i1, down0, down1, _, _ = _taps((row + 0.5 - y) * (P / height) + (P * 0.5 - 0.5), P)
            j0, j1, across0, across1, _, _ = _taps((column + 0.5 - x) * (P / width) + (P * 0.5 - 0.5), P)
            # Indices are clamped to the glimpse's edge, where the weight is zero: cheaper than a mask on every load.
            upper, lower = (i0 * P)[:, None], (i1 * P)[:, None]
            upper_left, upper_right = down0[:, None] * across0[None, :], down0[:, None] * across1[None, :]
            lower_left, lower_right = down1[:, None] * across0[None, :], down1[:, None] * across1[None, :]
            glimpse = glimpses + n.to(tl.int64) * (C * P * P)
            added = ()
            for c in tl.static_range(C):
                layer = glimpse + c * P * P
                value = total[c]
                value += upper_left * tl.load(layer + (upper + j0[None, :])).to(tl.float32)
                value += upper_right * tl.load(layer + (upper + j1[None, :])).to(tl.float32)
                value += lower_left * tl.load(layer + (lower + j0[None, :])).to(tl.float32)
                value += lower_right * tl.load(layer + (lower + j1[None, :])).to(tl.float32)
                added = added + (value,)
            total = added
            n = following
        start += HELD
    inside = (row < H)[:, None] & (column < W)[None, :]
    pixel = canvas + clip * (C * H * W) + (row * W)[:, None] + column[None, :]
    for c in tl.static_range(C):
        tl.store(pixel + c * H * W, total[c], inside)


@triton.jit
def paste_backward_kernel(
    gradient,
    glimpses,
    where,
    to_glimpses,
    to_where,
    N,
    C: tl.constexpr,
    P: tl.constexpr,
    H: tl.constexpr,
    W: tl.constexpr,
    SAMPLES: tl.constexpr,
):
    """Compute the gradients of paste. One program handles one object.

    Each sample of its glimpse gathers from the pixels that it was spread over.
    """
    clip = (tl.program_id(0) // N).to(tl.int64)
    n = tl.program_id(0).to(tl.int64)
    x, y, width, height = _box(where, n)
    sample = tl.arange(0, SAMPLES)
    valid = sample < P * P
    i, j = sample // P, sample % P
    across, down = P / width, P / height  # samples per pixel
    first_column, columns = _support(j, x, width, P, W)
    first_row, rows = _support(i, y, height, P, H)
    glimpse = n * (C * P * P) + sample
    gradient += clip * (C * H * W)
    value, total = (), ()
    for c in tl.static_range(C):
        value = value + (tl.load(glimpses + glimpse + c * P * P, valid, 0.0).to(tl.float32),)
        total = total + (tl.full([SAMPLES], 0.0, tl.float32),)
    to_x = tl.full([SAMPLES], 0.0, tl.float32)
    to_y = tl.full([SAMPLES], 0.0, tl.float32)
    to_width = tl.full([SAMPLES], 0.0, tl.float32)
    to_height = tl.full([SAMPLES], 0.0, tl.float32)
    k = 0
    while k < rows:
        row = first_row + k
        from_y = row + 0.5 - y
        # Computed exactly as in the forward pass, so that a pixel lies between the same two samples in both.
        row_distance = from_y * down + (P * 0.5 - 0.5) - i
        row_weight = 1 - tl.abs(row_distance)
        row_seen = valid & (row < H) & (row_distance >= -1) & (row_distance < 1)
        m = 0
        while m < columns:
            column = first_column + m
            from_x = column + 0.5 - x
            column_distance = from_x * across + (P * 0.5 - 0.5) - j
            column_weight = 1 - tl.abs(column_distance)
            seen = row_seen & (column < W) & (column_distance >= -1) & (column_distance < 1)
            weight = row_weight * column_weight
            product = tl.full([SAMPLES], 0.0, tl.float32)
            added = ()
            for c in tl.static_range(C):
                pull = tl.load(gradient + c * H * W + (row * W + column), seen, 0.0).to(tl.float32)
                added = added + (total[c] + weight * pull,)
                product += value[c] * pull
            total = added
            by_column = tl.where(column_distance < 0, product, -product) * row_weight
            by_row = tl.where(row_distance < 0, product, -product) * column_weight
            to_x -= by_column
            to_y -= by_row
            to_width -= by_column * from_x
            to_height -= by_row * from_y
            m += 1
        k += 1
    for c in tl.static_range(C):
        tl.store(to_glimpses + glimpse + c * P * P, total[c].to(to_glimpses.dtype.element_ty), valid)
    tl.store(to_where + n * 4, tl.sum(to_x, 0) * across)
    tl.store(to_where + n * 4 + 1, tl.sum(to_y, 0) * down)
    tl.store(to_where + n * 4 + 2, tl.sum(to_width, 0) * across / width)
    tl.store(to_where + n * 4 + 3, tl.sum(to_height, 0) * down / height)


@triton.jit
def crop_forward_kernel(
    image,
    where,
    glimpses,
    N,
    clip_stride,
    C: tl.constexpr,
    P: tl.constexpr,
    H: tl.constexpr,
    W: tl.constexpr,
    SAMPLES: tl.constexpr,
    SPREAD: tl.constexpr,
    STEPS: tl.constexpr,
):
    """Crop glimpses. One program reads STEPS times SPREAD channels of one box."""
    GROUPS: tl.constexpr = (C + SPREAD * STEPS - 1) // (SPREAD * STEPS)
    clip = (tl.program_id(0) // (GROUPS * N)).to(tl.int64)
    n = (tl.program_id(0) // GROUPS).to(tl.int64)
    x, y, width, height = _box(where, n)
    sample = tl.arange(0, SAMPLES)[None, :]
    i0, i1, down0, down1, _, _ = _taps(_points(sample // P, y, height, P), H)
    j0, j1, across0, across1, _, _ = _taps(_points(sample % P, x, width, P), W)
    image += clip * clip_stride
    glimpses += n * (C * P * P)
    for step in tl.static_range(STEPS):
        channel = (tl.program_id(0) % GROUPS * STEPS + step) * SPREAD + tl.arange(0, SPREAD)[:, None]
        valid = (channel < C) & (sample < P * P)
        layer = image + channel * (H * W)
        above = across0 * tl.load(layer + (i0 * W + j0), valid, 0.0).to(tl.float32)
        above += across1 * tl.load(layer + (i0 * W + j1), valid, 0.0).to(tl.float32)
        below = across0 * tl.load(layer + (i1 * W + j0), valid, 0.0).to(tl.float32)
        below += across1 * tl.load(layer + (i1 * W + j1), valid, 0.0).to(tl.float32)
        value = down0 * above + down1 * below
        tl.store(glimpses + channel * (P * P) + sample, value.to(glimpses.dtype.element_ty), valid)


@triton.jit
def crop_to_where_kernel(
    gradient,
    image,
    where,
    to_where,
    N,
    clip_stride,
    C: tl.constexpr,
    P: tl.constexpr,
    H: tl.constexpr,
    W: tl.constexpr,
    SAMPLES: tl.constexpr,
    SPREAD: tl.constexpr,
):
    """Compute the gradient of crop for the boxes. One program handles one object."""
    clip = (tl.program_id(0) // N).to(tl.int64)
    n = tl.program_id(0).to(tl.int64)
    x, y, width, height = _box(where, n)
    sample = tl.arange(0, SAMPLES)[None, :]
    i, j = sample // P, sample % P
    i0, i1, down0, down1, down_slope0, down_slope1 = _taps(_points(i, y, height, P), H)
    j0, j1, across0, across1, across_slope0, across_slope1 = _taps(_points(j, x, width, P), W)
    image += clip * clip_stride
    gradient += n * (C * P * P)
    to_x = tl.full([SPREAD, SAMPLES], 0.0, tl.float32)
    to_y = tl.full([SPREAD, SAMPLES], 0.0, tl.float32)
    for start in range(0, C, SPREAD):
        channel = start + tl.arange(0, SPREAD)[:, None]
        valid = (channel < C) & (sample < P * P)
        layer = image + channel * (H * W)
        upper_left = tl.load(layer + (i0 * W + j0), valid, 0.0).to(tl.float32)
        upper_right = tl.load(layer + (i0 * W + j1), valid, 0.0).to(tl.float32)
        lower_left = tl.load(layer + (i1 * W + j0), valid, 0.0).to(tl.float32)
        lower_right = tl.load(layer + (i1 * W + j1), valid, 0.0).to(tl.float32)
        pull = tl.load(gradient + channel * (P * P) + sample, valid, 0.0).to(tl.float32)
        left, right = down0 * upper_left + down1 * lower_left, down0 * upper_right + down1 * lower_right
        above, below = across0 * upper_left + across1 * upper_right, across0 * lower_left + across1 * lower_right
        to_x += pull * (across_slope0 * left + across_slope1 * right)
        to_y += pull * (down_slope0 * above + down_slope1 * below)
    along_x, along_y = (j + 0.5) / P - 0.5, (i + 0.5) / P - 0.5
    tl.store(to_where + n * 4, tl.sum(tl.sum(to_x, 1), 0))
    tl.store(to_where + n * 4 + 1, tl.sum(tl.sum(to_y, 1), 0))
    tl.store(to_where + n * 4 + 2, tl.sum(tl.sum(to_x * along_x, 1), 0))
    tl.store(to_where + n * 4 + 3, tl.sum(tl.sum(to_y * along_y, 1), 0))


@triton.jit
def crop_to_image_kernel(
    gradient,
    where,
    to_image,
    N,
    C: tl.constexpr,
    P: tl.constexpr,
    H: tl.constexpr,
    W: tl.constexpr,
    SIDE: tl.constexpr,
    HELD: tl.constexpr,
    SPREAD: tl.constexpr,
):
    """Compute the gradient of crop for the image. One program handles SPREAD channels of one tile of one clip.

    Each pixel gathers the gradients of the samples that read it.
    """
    GROUPS: tl.constexpr = (C + SPREAD - 1) // SPREAD
    ACROSS: tl.constexpr = (W + SIDE - 1) // SIDE
    TILES: tl.constexpr = ACROSS * ((H + SIDE - 1) // SIDE)
    clip = (tl.program_id(0) // (TILES * GROUPS)).to(tl.int64)
    tile = tl.program_id(0) // GROUPS % TILES
    channel = tl.program_id(0) % GROUPS * SPREAD + tl.arange(0, SPREAD)[:, None]
    top, left = tile // ACROSS * SIDE, tile % ACROSS * SIDE
    pixel = tl.arange(0, SIDE * SIDE)[None, :]
    row, column = top + pixel // SIDE, left + pixel % SIDE
    where += clip * N * 4
    gradient += clip * N * (C * P * P) + channel * (P * P)
    total = tl.full([SPREAD, SIDE * SIDE], 0.0, tl.float32)
    start = 0
    while start < N:
        held = start + tl.arange(0, HELD)
        touch = _touches(where, held, held < N, top, left, 0.5 - 0.5 / P, 1.0, SIDE)
        n = tl.min(tl.where(touch, held, N), 0)
        while n < N:
            x, y, width, height = _box(where, n)
            following = tl.min(tl.where(touch & (held > n), held, N), 0)
            glimpse = gradient + n.to(tl.int64) * (C * P * P)
            first_i, most_i = _readers(row, y, height, P)
            first_j, most_j = _readers(column, x, width, P)
            k = 0
            while k < most_i:
                i = first_i + k
                row_weight = tl.maximum(1 - tl.abs(_points(i, y, height, P) - row), 0.0)
                m = 0
                while m < most_j:
                    j = first_j + m
                    column_weight = tl.maximum(1 - tl.abs(_points(j, x, width, P) - column), 0.0)
                    seen = (i < P) & (j < P) & (row_weight * column_weight > 0) & (channel < C)
                    total += row_weight * column_weight * tl.load(glimpse + (i * P + j), seen, 0.0).to(tl.float32)
                    m += 1
                k += 1
            n = following
        start += HELD
    inside = (row < H) & (column < W) & (channel < C)
    place = to_image + clip * (C * H * W) + channel * (H * W) + (row * W + column)
    tl.store(place, total.to(to_image.dtype.element_ty), inside)
