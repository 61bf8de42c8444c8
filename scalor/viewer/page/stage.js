// The picture with its tracks: draws a frame on the canvas, finds what lies under the pointer, and reports what it drew.

import { cssOf, rgbOf } from "./colors.js";
import { Store, runsOf } from "./data.js";

/** @typedef {import("./data.js").Chunk} Chunk */
/** @typedef {{id: number, x: number, y: number, width: number, height: number}} Drawn a box in pixels of the canvas */

const TRAIL_SECONDS = 1;
const SPEED_SECONDS = 0.5;
const MASK_STRENGTH = 0.5;

export class Stage {
  /** @param {HTMLCanvasElement} canvas @param {HTMLVideoElement} video @param {Store} store */
  constructor(canvas, video, store) {
    this.canvas = canvas;
    this.video = video;
    this.store = store;
    /** @type {CanvasRenderingContext2D} */
    this.context = /** @type {any} */ (canvas.getContext("2d"));
    this.maskCanvas = document.createElement("canvas");
    /** @type {Record<string, boolean>} what is shown */
    this.layers = { boxes: true, masks: true, ids: true, trails: true, marks: true };
    /** @type {number | null} */
    this.selected = null;
    /** @type {Set<number>} further chosen ids, for edits */
    this.others = new Set();
    this.following = false;
    this.zoom = 1;
    /** Centre of the view in pixels of the video. */
    this.centre = { x: 0, y: 0 };
    /** @type {Drawn[]} boxes of the last frame, from the draw call itself */
    this.drawn = [];
    this.position = -1;
    /** Extra painting after the frame, in pixels of the video. @type {(context: CanvasRenderingContext2D, pixel: number) => void} */
    this.after = () => {};
    this.view = { scale: 1, x: 0, y: 0 };
  }

  /** Fit the canvas to its place on the page. */
  resize() {
    const [height, width] = this.store.size;
    const ratio = Math.min(window.devicePixelRatio || 1, 2);
    const wide = Math.max(1, Math.round(this.canvas.clientWidth * ratio));
    const high = Math.max(1, Math.round((wide * height) / width));
    if (this.canvas.width !== wide || this.canvas.height !== high) {
      this.canvas.width = wide;
      this.canvas.height = high;
    }
    this.ratio = wide / Math.max(1, this.canvas.clientWidth);
  }

  /** Set the transform from pixels of the video to pixels of the canvas. */
  look() {
    const [height, width] = this.store.size;
    const scale = (this.canvas.width / width) * this.zoom;
    const halfWide = this.canvas.width / 2 / scale;
    const halfHigh = this.canvas.height / 2 / scale;
    const x = Math.min(Math.max(this.centre.x, halfWide), width - halfWide);
    const y = Math.min(Math.max(this.centre.y, halfHigh), height - halfHigh);
    this.centre = this.zoom === 1 ? { x: width / 2, y: height / 2 } : { x, y };
    this.view = { scale, x: this.canvas.width / 2 - this.centre.x * scale, y: this.canvas.height / 2 - this.centre.y * scale };
  }

  /** Draw the frame at a position. @param {number} position @param {boolean} film whether the video shows this frame */
  draw(position, film) {
    const { context, canvas, store } = this;
    this.position = position;
    this.drawn = [];
    const chunk = store.at(position);
    if (this.following && this.selected !== null) {
      const box = store.boxOf(this.selected, position);
      if (box) this.centre = { x: (box[0] + box[2]) / 2, y: (box[1] + box[3]) / 2 };
    }
    this.look();
    const [height, width] = store.size;
    const { scale, x, y } = this.view;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.fillStyle = "#14181f";
    context.fillRect(0, 0, canvas.width, canvas.height);
    context.setTransform(scale, 0, 0, scale, x, y);
    if (film) {
      context.imageSmoothingEnabled = scale < 4;
      context.drawImage(this.video, 0, 0, width, height);
    }
    const pixel = 1 / scale; // one pixel of the canvas in pixels of the video
    const thick = pixel * (this.ratio || 1);
    if (chunk) {
      const [from, to] = store.rowsOf(chunk, position);
      if (this.layers.masks) this.drawMasks(chunk, from, to, position);
      if (this.layers.trails) this.drawTrails(chunk, from, to, position, 1.5 * thick);
      if (this.layers.boxes) for (let row = from; row < to; row++) this.drawBox(chunk, row, 1.6 * thick);
      if (this.layers.ids) for (let row = from; row < to; row++) this.drawLabel(chunk, row, thick);
      if (this.layers.marks) for (let row = from; row < to; row++) if (chunk.discovered[row]) this.drawMark(chunk, row, thick);
    }
    if (store.predicted !== null && position >= store.predicted) this.drawImagined(thick);
    this.after(context, thick);
  }

  /** @param {Chunk} chunk @param {number} row @param {number} thick */
  drawBox(chunk, row, thick) {
    const [x0, y0, x1, y1] = chunk.box.subarray(4 * row, 4 * row + 4);
    const id = chunk.id[row];
    const { context } = this;
    const chosen = id === this.selected || this.others.has(id);
    if (chosen) {
      context.strokeStyle = "#fff";
      context.lineWidth = 3 * thick;
      context.strokeRect(x0, y0, x1 - x0, y1 - y0);
    }
    context.strokeStyle = cssOf(id);
    context.lineWidth = thick * (chosen ? 1.6 : 1);
    context.strokeRect(x0, y0, x1 - x0, y1 - y0);
    const { a: scale, e, f } = context.getTransform();
    this.drawn.push({ id, x: x0 * scale + e, y: y0 * scale + f, width: (x1 - x0) * scale, height: (y1 - y0) * scale });
  }

  /** @param {Chunk} chunk @param {number} row @param {number} thick */
  drawLabel(chunk, row, thick) {
    const { context } = this;
    const id = chunk.id[row];
    const [x0, y0, x1, y1] = chunk.box.subarray(4 * row, 4 * row + 4);
    const size = 11 * thick;
    const chosen = id === this.selected || this.others.has(id);
    if (!chosen && y1 - y0 < size && x1 - x0 < size) return;
    const text = this.store.byId.get(id)?.name || String(id);
    context.font = `600 ${size}px system-ui, sans-serif`;
    context.textBaseline = "top";
    const wide = context.measureText(text).width + 4 * thick;
    const high = size + 3 * thick;
    const { scale, x, y } = this.view;
    const edge = { left: -x / scale, top: -y / scale, right: (this.canvas.width - x) / scale, bottom: (this.canvas.height - y) / scale };
    if (x1 < edge.left || x0 > edge.right || y1 < edge.top || y0 > edge.bottom) return;
    // Above the box, or in it at the upper edge; always inside the view.
    const left = Math.max(Math.min(x0, edge.right - wide), edge.left);
    const top = y0 - high < edge.top ? Math.max(y0, edge.top) : y0 - high;
    context.fillStyle = cssOf(id, 0.92);
    context.fillRect(left, top, wide, high);
    context.fillStyle = "#101418";
    context.fillText(text, left + 2 * thick, top + 2 * thick);
  }

  /** @param {Chunk} chunk @param {number} row @param {number} thick */
  drawMark(chunk, row, thick) {
    const { context } = this;
    const [x0, y0, x1, y1] = chunk.box.subarray(4 * row, 4 * row + 4);
    context.beginPath();
    context.arc((x0 + x1) / 2, (y0 + y1) / 2, 4.5 * thick, 0, 2 * Math.PI);
    context.fillStyle = "#fff";
    context.fill();
    context.strokeStyle = "#101418";
    context.lineWidth = 1.5 * thick;
    context.stroke();
  }

  /**
   * Draw the paths of the last second, fading with age.
   * @param {Chunk} chunk @param {number} from @param {number} to @param {number} position @param {number} thick
   */
  drawTrails(chunk, from, to, position, thick) {
    const reach = Math.min(Math.max(Math.round(TRAIL_SECONDS * this.store.rate), 8), 60);
    const { context } = this;
    context.lineWidth = thick;
    context.lineJoin = "round";
    const before = chunk.start ? this.store.chunks.get(this.store.chunkOf(chunk.start - 1)) : undefined;
    const parts = 4; // steps of fading
    for (let row = from; row < to; row++) {
      const id = chunk.id[row];
      /** @type {number[]} */
      const points = [];
      let held = chunk;
      let at = row;
      let frame = position;
      while (at >= 0) {
        while (held.offsets[frame - held.start] > at) frame -= 1;
        if (position - frame > reach) break;
        points.push((held.box[4 * at] + held.box[4 * at + 2]) / 2, (held.box[4 * at + 1] + held.box[4 * at + 3]) / 2);
        at = held.previous[at];
        if (at < 0 && held === chunk && before) {
          held = before;
          at = before.last.get(id) ?? -1;
          frame = before.start + before.offsets.length - 2;
        }
      }
      const count = points.length / 2;
      for (let part = 0; part < parts; part++) {
        const first = Math.floor((part * (count - 1)) / parts);
        const last = Math.floor(((part + 1) * (count - 1)) / parts);
        if (last <= first) continue;
        context.strokeStyle = cssOf(id, 1 - part / parts);
        context.beginPath();
        context.moveTo(points[2 * first], points[2 * first + 1]);
        for (let i = first + 1; i <= last; i++) context.lineTo(points[2 * i], points[2 * i + 1]);
        context.stroke();
      }
    }
  }

  /** @param {Chunk} chunk @param {number} from @param {number} to @param {number} position */
  drawMasks(chunk, from, to, position) {
    const masks = this.store.masksAt(position);
    if (!masks) return;
    const [high, wide] = this.store.index.masks;
    const canvas = this.maskCanvas;
    if (canvas.width !== wide || canvas.height !== high) {
      canvas.width = wide;
      canvas.height = high;
      this.maskContext = /** @type {any} */ (canvas.getContext("2d"));
      this.maskPixels = this.maskContext.createImageData(wide, high);
      this.maskColors = new Uint32Array(this.maskPixels.data.buffer);
    }
    const colors = /** @type {Uint32Array} */ (this.maskColors);
    colors.fill(0);
    for (let row = from; row < to; row++) {
      const [red, green, blue] = rgbOf(chunk.id[row]);
      const color = ((Math.round(255 * MASK_STRENGTH) << 24) | (blue << 16) | (green << 8) | red) >>> 0;
      let at = 0;
      runsOf(masks[row] || "").forEach((run, i) => {
        if (i % 2) {
          const end = Math.min(at + run, high * wide);
          for (let k = at; k < end; k++) colors[(k % high) * wide + Math.floor(k / high)] = color;
        }
        at += run;
      });
    }
    this.maskContext.putImageData(this.maskPixels, 0, 0);
    const [height, width] = this.store.size;
    this.context.drawImage(canvas, 0, 0, width, height);
  }

  /** Mark a frame as imagined. @param {number} thick */
  drawImagined(thick) {
    const { context, canvas } = this;
    context.setTransform(1, 0, 0, 1, 0, 0);
    const line = thick * this.view.scale;
    context.strokeStyle = "#f2b84b";
    context.setLineDash([10 * line, 6 * line]);
    context.lineWidth = 5 * line;
    context.strokeRect(0, 0, canvas.width, canvas.height);
    context.setLineDash([]);
    const size = 13 * line;
    context.font = `700 ${size}px system-ui, sans-serif`;
    context.textBaseline = "top";
    const text = "imagined";
    const wide = context.measureText(text).width + size;
    context.fillStyle = "#f2b84b";
    context.fillRect(canvas.width - wide, 0, wide, 1.7 * size);
    context.fillStyle = "#101418";
    context.fillText(text, canvas.width - wide + size / 2, 0.4 * size);
    context.setTransform(this.view.scale, 0, 0, this.view.scale, this.view.x, this.view.y);
  }

  /** Position on the video of a pointer event. @param {MouseEvent} event */
  pointOf(event) {
    const place = this.canvas.getBoundingClientRect();
    const ratio = this.canvas.width / place.width;
    return {
      x: ((event.clientX - place.left) * ratio - this.view.x) / this.view.scale,
      y: ((event.clientY - place.top) * ratio - this.view.y) / this.view.scale,
    };
  }

  /** Row under a point, the smallest box first, or null. @param {{x: number, y: number}} point */
  rowAt(point) {
    const chunk = this.store.at(this.position);
    if (!chunk) return null;
    const [from, to] = this.store.rowsOf(chunk, this.position);
    const near = (3 * (this.ratio || 1)) / this.view.scale;
    let best = null;
    let least = Infinity;
    for (let row = from; row < to; row++) {
      const [x0, y0, x1, y1] = chunk.box.subarray(4 * row, 4 * row + 4);
      if (point.x < x0 - near || point.x > x1 + near || point.y < y0 - near || point.y > y1 + near) continue;
      const area = (x1 - x0) * (y1 - y0);
      if (area < least) {
        least = area;
        best = { chunk, row, id: chunk.id[row] };
      }
    }
    return best;
  }

  /** Numbers of a row, as lines of text. @param {{chunk: Chunk, row: number, id: number}} hit */
  describe({ chunk, row, id }) {
    const [x0, y0, x1, y1] = chunk.box.subarray(4 * row, 4 * row + 4);
    const name = this.store.byId.get(id)?.name;
    const lines = [
      name ? `${id} ${name}` : `id ${id}`,
      `centre ${((x0 + x1) / 2).toFixed(1)}, ${((y0 + y1) / 2).toFixed(1)} px`,
      `size ${(x1 - x0).toFixed(1)} × ${(y1 - y0).toFixed(1)} px`,
      `confidence ${chunk.confidence[row].toFixed(2)}`,
    ];
    const speed = this.speedOf(chunk, row);
    const { unit } = this.store;
    if (speed !== null) lines.push(`speed ${(speed * unit.pixel).toFixed(1)} ${unit.name}/s`);
    return lines;
  }

  /** Mean speed over the half second before a row, pixels a second; null if its chunk holds nothing before it. @param {Chunk} chunk @param {number} row */
  speedOf(chunk, row) {
    const { seconds } = this.store;
    let [at, frame, path] = [row, this.position, 0];
    while (chunk.previous[at] >= 0 && seconds[this.position] - seconds[frame] < SPEED_SECONDS - 1e-6) {
      const before = chunk.previous[at];
      path += Math.hypot(
        (chunk.box[4 * at] + chunk.box[4 * at + 2] - chunk.box[4 * before] - chunk.box[4 * before + 2]) / 2,
        (chunk.box[4 * at + 1] + chunk.box[4 * at + 3] - chunk.box[4 * before + 1] - chunk.box[4 * before + 3]) / 2,
      );
      at = before;
      while (chunk.offsets[frame - chunk.start] > at) frame -= 1;
    }
    return frame < this.position ? path / (seconds[this.position] - seconds[frame]) : null;
  }
}
