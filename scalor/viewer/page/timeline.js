// The timeline: objects in view over time, and a bar for each track, under one cursor.

import { cssOf } from "./colors.js";
import { Store, clock, inView } from "./data.js";

/** @typedef {import("./data.js").Track} Track */

const ROW = 8; // height of a bar with its gap, CSS pixels
const COUNTS = 56; // height of the plot of counts
const HINT = "Click an object to choose it, double click to follow it. The button \u201ckeys\u201d lists all keys.";

export class Timeline {
  /**
   * @param {HTMLElement} root
   * @param {Store} store
   * @param {(position: number, track: Track | null) => void} pick called with a clicked position, and the track of a clicked bar
   */
  constructor(root, store, pick) {
    this.root = root;
    this.store = store;
    this.pick = pick;
    const part = (/** @type {string} */ name) => /** @type {any} */ (root.querySelector(`.${name}`));
    /** @type {HTMLCanvasElement} */
    this.counts = part("counts");
    /** @type {HTMLCanvasElement} */
    this.bars = part("bars");
    /** @type {HTMLElement} */
    this.scroller = part("scroller");
    /** @type {HTMLElement} */
    this.spacer = part("spacer");
    /** @type {HTMLElement} */
    this.cursor = part("cursor");
    /** @type {HTMLElement} */
    this.readout = part("readout");
    /** @type {Track[]} tracks in the order of the table */
    this.tracks = [];
    /** @type {number | null} */
    this.selected = null;
    /** Visible range of positions. */
    this.from = 0;
    this.to = 1;
    this.position = 0;
    this.dirty = false;
    this.scroller.addEventListener("scroll", () => this.redraw());
    for (const canvas of [this.counts, this.bars]) {
      canvas.addEventListener("pointerdown", (event) => {
        canvas.setPointerCapture(event.pointerId);
        this.pointed(event, canvas === this.bars);
      });
      canvas.addEventListener("pointermove", (event) => {
        this.hover(event, canvas === this.bars);
        if (event.buttons & 1) this.pointed(event, false);
      });
      canvas.addEventListener("pointerleave", () => (this.readout.textContent = HINT));
      canvas.addEventListener(
        "wheel",
        (event) => {
          if (!event.ctrlKey && !event.shiftKey) return;
          event.preventDefault();
          this.zoom((event.deltaY || event.deltaX) > 0 ? 1.4 : 1 / 1.4, this.positionAt(event));
        },
        { passive: false },
      );
    }
  }

  /** Show these tracks. @param {Track[]} tracks */
  order(tracks) {
    this.tracks = tracks;
    this.spacer.style.height = `${Math.max(0, tracks.length * ROW + 2 - this.scroller.clientHeight)}px`;
    this.redraw();
  }

  /** Show the whole video. */
  whole() {
    this.readout.textContent ||= HINT;
    this.from = 0;
    this.to = this.store.frames;
    this.redraw();
  }

  /** Change the visible range by a factor. @param {number} factor @param {number} [around] */
  zoom(factor, around = this.position) {
    const span = Math.min(Math.max((this.to - this.from) * factor, 20), this.store.frames);
    const share = (around - this.from) / (this.to - this.from);
    this.from = Math.min(Math.max(around - span * share, 0), this.store.frames - span);
    this.to = this.from + span;
    this.redraw();
  }

  redraw() {
    if (this.dirty) return;
    this.dirty = true;
    requestAnimationFrame(() => {
      this.dirty = false;
      this.paint();
    });
  }

  paint() {
    this.paintCounts();
    this.paintBars();
    this.move(this.position);
  }

  /** @param {HTMLCanvasElement} canvas @param {number} height */
  fit(canvas, height) {
    const ratio = Math.min(window.devicePixelRatio || 1, 2);
    canvas.width = Math.max(1, Math.round(canvas.clientWidth * ratio));
    canvas.height = Math.round(height * ratio);
    const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
    context.scale(ratio, ratio);
    return context;
  }

  paintCounts() {
    const context = this.fit(this.counts, COUNTS);
    const width = this.counts.clientWidth;
    const { counts, frames, predicted } = this.store;
    const style = getComputedStyle(this.root);
    let most = 1;
    for (let i = 0; i < frames; i++) if (counts[i] > most) most = counts[i];
    const top = 12;
    const up = (/** @type {number} */ count) => COUNTS - 1 - ((COUNTS - top - 2) * count) / most;
    if (predicted !== null) {
      const x = Math.max(0, this.x(predicted));
      context.fillStyle = "rgba(242,184,75,.25)";
      context.fillRect(x, 0, width - x, COUNTS);
    }
    context.beginPath();
    context.moveTo(0, COUNTS);
    const step = (this.to - this.from) / width;
    for (let x = 0; x < width; x++) {
      const a = Math.floor(this.from + x * step);
      const b = Math.min(frames, Math.max(a + 1, Math.floor(this.from + (x + 1) * step)));
      let highest = 0;
      for (let i = a; i < b; i++) if (counts[i] > highest) highest = counts[i];
      context.lineTo(x, up(highest));
      context.lineTo(x + 1, up(highest));
    }
    context.lineTo(width, COUNTS);
    context.fillStyle = style.getPropertyValue("--plot");
    context.fill();
    context.fillStyle = style.getPropertyValue("--soft");
    context.font = "11px system-ui, sans-serif";
    context.textBaseline = "top";
    context.fillText(`in view, up to ${most}`, 2, 0);
  }

  paintBars() {
    const height = this.scroller.clientHeight;
    const context = this.fit(this.bars, height);
    const first = Math.floor(this.scroller.scrollTop / ROW);
    const last = Math.min(this.tracks.length, Math.ceil((this.scroller.scrollTop + height) / ROW));
    const style = getComputedStyle(this.root);
    for (let i = first; i < last; i++) {
      const track = this.tracks[i];
      const y = i * ROW - this.scroller.scrollTop;
      if (track.id === this.selected) {
        context.fillStyle = style.getPropertyValue("--chosen");
        context.fillRect(0, y - 1, this.bars.clientWidth, ROW);
      }
      context.fillStyle = cssOf(track.id);
      for (let k = 0; k < track.spans.length; k += 2) {
        const x = this.x(track.spans[k]);
        const end = this.x(track.spans[k + 1] + 1);
        if (end < 0 || x > this.bars.clientWidth) continue;
        context.fillRect(x, y, Math.max(end - x, 1), ROW - 2);
      }
    }
  }

  /** CSS pixel of a position. @param {number} position */
  x(position) {
    return ((position - this.from) / (this.to - this.from)) * this.counts.clientWidth;
  }

  /** @param {MouseEvent} event */
  positionAt(event) {
    const place = this.counts.getBoundingClientRect();
    const share = (event.clientX - place.left) / Math.max(1, place.width);
    return Math.min(Math.max(Math.floor(this.from + share * (this.to - this.from)), 0), this.store.frames - 1);
  }

  /** @param {MouseEvent} event */
  trackAt(event) {
    const y = event.clientY - this.bars.getBoundingClientRect().top + this.scroller.scrollTop;
    return this.tracks[Math.floor(y / ROW)] || null;
  }

  /** @param {MouseEvent} event @param {boolean} bars */
  pointed(event, bars) {
    this.pick(this.positionAt(event), bars ? this.trackAt(event) : null);
  }

  /** @param {MouseEvent} event @param {boolean} bars */
  hover(event, bars) {
    const position = this.positionAt(event);
    const track = bars ? this.trackAt(event) : null;
    const who = track ? `, id ${track.id}${track.name ? ` ${track.name}` : ""}` : "";
    this.readout.textContent = `${clock(this.store.seconds[position])}, frame ${this.store.frame[position]}, ${this.store.counts[position]} in view${who}`;
  }

  /** Move the cursor. @param {number} position */
  move(position) {
    const moved = position !== this.position;
    this.position = position;
    const x = this.x(position + 0.5);
    this.cursor.style.transform = `translateX(${x}px)`;
    this.cursor.hidden = x < 0 || x > this.counts.clientWidth;
    if (moved) this.reveal(); // not while a hand scrolls
    // When zoomed in, playback turns the page.
    if (this.to - this.from < this.store.frames && (position < this.from || position >= this.to)) {
      const span = this.to - this.from;
      this.from = Math.min(Math.max(position - 0.1 * span, 0), this.store.frames - span);
      this.to = this.from + span;
      this.redraw();
    }
  }

  /** Scroll to the bars under the cursor, if none of those on the screen is. */
  reveal() {
    const { scrollTop, clientHeight } = this.scroller;
    const first = Math.ceil(scrollTop / ROW);
    const last = Math.floor((scrollTop + clientHeight) / ROW);
    const under = (/** @type {Track} */ track) => inView(track, this.position);
    if (this.tracks.slice(first, last).some(under)) return;
    const row = this.tracks.findIndex(under);
    if (row >= 0) this.scroller.scrollTop = row * ROW;
  }

  /** Scroll to a track, and mark it. @param {number | null} id */
  select(id) {
    this.selected = id;
    const row = this.tracks.findIndex((track) => track.id === id);
    const top = row * ROW;
    if (row >= 0 && (top < this.scroller.scrollTop || top > this.scroller.scrollTop + this.scroller.clientHeight - ROW)) {
      this.scroller.scrollTop = top - this.scroller.clientHeight / 2;
    }
    this.redraw();
  }
}
