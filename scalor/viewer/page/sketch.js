// Drawing on the picture: points by clicks or a drag, and the zones and lines that were drawn.

import { Stage } from "./stage.js";

/** @typedef {{x: number, y: number}} Point a place on the video, in pixels */

/**
 * @typedef {object} Tool
 * @property {string} hint
 * @property {number} enough number of points that end it; Infinity: a double click or enter does
 * @property {boolean} [drag]
 * @property {(points: Point[]) => void} done
 */

/**
 * @typedef {object} Zone
 * @property {string} name
 * @property {[number, number][]} [polygon]
 * @property {[number, number, number]} [circle]
 * @property {[number, number, number, number]} [rectangle]
 */

/** @typedef {{name: string, from: [number, number], to: [number, number]}} Line */

const ARROW = 14; // length of the mark that points to the right of a line

export class Sketch {
  /**
   * @param {Stage} stage
   * @param {() => void} redraw
   * @param {(text: string) => void} tell
   */
  constructor(stage, redraw, tell) {
    this.stage = stage;
    this.redraw = redraw;
    this.tell = tell;
    /** @type {Tool | null} */
    this.tool = null;
    /** @type {Point[]} */
    this.points = [];
    /** @type {Point | null} */
    this.pointer = null;
    const { canvas } = stage;
    canvas.addEventListener("pointermove", (event) => {
      if (!this.tool) return;
      this.pointer = stage.pointOf(event);
      redraw();
    });
    canvas.addEventListener("pointerup", (event) => {
      if (this.tool?.drag && this.points.length === 1) this.place(event);
    });
    canvas.addEventListener("dblclick", () => this.finish());
  }

  /** @param {Tool} tool */
  begin(tool) {
    this.tool = tool;
    this.points = [];
    this.pointer = null;
    this.stage.canvas.classList.add("tool");
    this.tell(`${tool.hint}; escape ends without`);
  }

  cancel() {
    this.tool = null;
    this.points = [];
    this.stage.canvas.classList.remove("tool");
  }

  /** Take a press on the picture. @param {PointerEvent} event @returns {boolean} whether a tool waited for it */
  press(event) {
    if (!this.tool) return false;
    if (this.tool.drag) this.stage.canvas.setPointerCapture(event.pointerId);
    this.place(event);
    return true;
  }

  /** @param {PointerEvent} event */
  place(event) {
    const { x, y } = this.stage.pointOf(event);
    const [height, width] = this.stage.store.size;
    this.points.push({ x: Math.min(Math.max(x, 0), width), y: Math.min(Math.max(y, 0), height) });
    this.redraw();
    if (this.tool && this.points.length >= this.tool.enough) this.finish();
  }

  finish() {
    const { tool, points } = this;
    if (!tool) return;
    // A double click places its point twice.
    const distinct = points.filter((p, i) => !i || Math.hypot(p.x - points[i - 1].x, p.y - points[i - 1].y) > 0.5);
    this.cancel();
    this.tell("");
    this.redraw();
    const least = tool.enough === Infinity ? 3 : 2;
    if (distinct.length >= least) tool.done(distinct);
    else this.tell("too few points");
  }

  /** Paint zones, lines, and the points so far. @param {CanvasRenderingContext2D} context @param {number} thick */
  paint(context, thick) {
    const { zones, lines } = this.stage.store.index;
    context.lineWidth = 2 * thick;
    context.font = `600 ${12 * thick}px system-ui, sans-serif`;
    context.textBaseline = "top";
    for (const zone of zones || []) paintZone(context, zone, thick);
    for (const line of lines || []) paintLine(context, line, thick);
    if (!this.tool || !this.points.length) return;
    const points = this.pointer ? [...this.points, this.pointer] : this.points;
    const [first, last] = [points[0], points[points.length - 1]];
    context.strokeStyle = "#fff";
    context.beginPath();
    if (this.tool.drag) context.rect(first.x, first.y, last.x - first.x, last.y - first.y);
    else for (const { x, y } of points) context.lineTo(x, y);
    context.stroke();
  }
}

/** @param {CanvasRenderingContext2D} context @param {Zone} zone @param {number} thick */
function paintZone(context, { name, polygon, circle, rectangle }, thick) {
  context.beginPath();
  if (circle) context.arc(...circle, 0, 2 * Math.PI);
  if (rectangle) context.rect(rectangle[0], rectangle[1], rectangle[2] - rectangle[0], rectangle[3] - rectangle[1]);
  for (const [x, y] of polygon || []) context.lineTo(x, y);
  context.closePath();
  context.fillStyle = "rgba(255,255,255,.14)";
  context.fill();
  context.strokeStyle = "#fff";
  context.stroke();
  const [x, y] = circle || rectangle || (polygon || [[0, 0]])[0];
  paintName(context, name, x + 4 * thick, y + 4 * thick, thick);
}

/** @param {CanvasRenderingContext2D} context @param {Line} line @param {number} thick */
function paintLine(context, { name, from, to }, thick) {
  const [across, down] = [to[0] - from[0], to[1] - from[1]];
  const mark = (ARROW * thick) / (Math.hypot(across, down) || 1);
  const [x, y] = [from[0] + across / 2, from[1] + down / 2];
  context.beginPath();
  context.moveTo(...from);
  context.lineTo(...to);
  // To the right of the line, where a forward crossing leads.
  context.moveTo(x, y);
  context.lineTo(x - mark * down, y + mark * across);
  context.strokeStyle = "#ffd54a";
  context.stroke();
  paintName(context, name, ...from, thick);
}

/** @param {CanvasRenderingContext2D} context @param {string} name @param {number} x @param {number} y @param {number} thick */
function paintName(context, name, x, y, thick) {
  const { lineWidth } = context;
  context.fillStyle = "#fff";
  context.strokeStyle = "#101418";
  context.lineWidth = 3 * thick;
  context.strokeText(name, x, y);
  context.fillText(name, x, y);
  context.lineWidth = lineWidth;
}
