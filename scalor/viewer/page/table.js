// The table of all tracks: sorted, filtered, and only as many rows in the page as fit on the screen.

import { cssOf } from "./colors.js";
import { Store, clock, inView } from "./data.js";

/** @typedef {import("./data.js").Track} Track */

const ROW = 30; // height of a row, CSS pixels

/**
 * @typedef {object} Column
 * @property {string} key
 * @property {(unit: string) => string} head
 * @property {string} title
 * @property {(track: Track) => number} value to sort by
 * @property {(track: Track, store: Store) => string} text
 */

/** @type {Column[]} */
const COLUMNS = [
  { key: "id", head: () => "id", title: "id and name", value: (t) => t.id, text: (t) => (t.name ? `${t.id} ${t.name}` : `${t.id}`) },
  { key: "first", head: () => "first", title: "time of the first frame", value: (t) => t.first, text: (t, s) => clock(s.seconds[t.first]) },
  { key: "seconds", head: () => "time s", title: "seconds from the first to the last frame", value: (t) => t.seconds, text: (t) => t.seconds.toFixed(1) },
  { key: "path", head: (unit) => `path ${unit}`, title: "length of the path", value: (t) => t.length, text: (t, s) => figures(t.length * s.unit.pixel) },
  { key: "speed", head: (unit) => `${unit}/s`, title: "mean speed: the path divided by its time", value: speedOf, text: (t, s) => (t.seconds > 0 ? figures(speedOf(t) * s.unit.pixel) : "") },
  { key: "confidence", head: () => "sure", title: "mean confidence", value: (t) => t.confidence, text: (t) => t.confidence.toFixed(2) },
];

/** Mean speed in pixels a second. @param {Track} track */
function speedOf(track) {
  return track.seconds > 0 ? track.length / track.seconds : 0;
}

/** A number as text: whole from 100 on, otherwise three digits. @param {number} value */
function figures(value) {
  return value >= 100 || value === 0 ? value.toFixed(0) : value.toPrecision(3);
}

/** @type {Record<string, (track: Track, pixel: number) => number>} */
const FIELDS = {
  id: (t) => t.id,
  seconds: (t) => t.seconds,
  frames: (t) => t.rows,
  path: (t, pixel) => t.length * pixel,
  speed: (t, pixel) => speedOf(t) * pixel,
  confidence: (t) => t.confidence,
  sure: (t) => t.confidence,
};

/**
 * Whether a track passes a filter: words all of which must hold, such as `12`, `wasp`, `seconds>10`, `now`.
 * @param {Track} track @param {string[]} words @param {number} position @param {number} pixel length of a pixel
 */
export function passes(track, words, position, pixel) {
  return words.every((word) => {
    const comparison = /^([a-z]+)(>=|<=|>|<|=)(-?[\d.]+)$/.exec(word);
    if (comparison && FIELDS[comparison[1]]) {
      const value = FIELDS[comparison[1]](track, pixel);
      const bound = Number(comparison[3]);
      if (comparison[2] === "=") return value === bound;
      if (comparison[2] === ">=") return value >= bound;
      if (comparison[2] === "<=") return value <= bound;
      return comparison[2] === ">" ? value > bound : value < bound;
    }
    if (word === "now") return inView(track, position);
    if (/^\d+$/.test(word)) return track.id === Number(word) || track.name.toLowerCase().includes(word);
    return track.name.toLowerCase().includes(word);
  });
}

export class Table {
  /**
   * @param {HTMLElement} root
   * @param {Store} store
   * @param {{pick: (track: Track, follow: boolean, more: boolean) => void, changed: (tracks: Track[]) => void}} calls
   */
  constructor(root, store, calls) {
    this.root = root;
    this.store = store;
    this.calls = calls;
    const part = (/** @type {string} */ name) => /** @type {any} */ (root.querySelector(`.${name}`));
    /** @type {HTMLElement} */
    this.grid = part("grid");
    /** @type {HTMLElement} */
    this.head = part("head");
    /** @type {HTMLElement} */
    this.body = part("body");
    /** @type {HTMLInputElement} */
    this.filter = part("filter");
    /** @type {HTMLElement} */
    this.found = part("found");
    this.sort = { key: "first", down: false };
    /** @type {Track[]} */
    this.tracks = [];
    /** @type {number | null} */
    this.selected = null;
    this.position = 0;
    this.spacer = document.createElement("div");
    this.body.append(this.spacer);
    /** @type {HTMLElement[]} */
    this.pool = [];
    for (const column of COLUMNS) {
      const cell = document.createElement("div");
      cell.setAttribute("role", "columnheader");
      const button = document.createElement("button");
      button.type = "button";
      button.title = column.title;
      button.addEventListener("click", () => {
        this.sort = { key: column.key, down: this.sort.key === column.key && !this.sort.down };
        this.update();
      });
      cell.append(button);
      this.head.append(cell);
    }
    this.filter.addEventListener("input", () => this.update());
    this.body.addEventListener("scroll", () => this.paint());
    this.grid.addEventListener("keydown", (event) => this.pressed(event));
    this.body.addEventListener("click", (event) => {
      const track = this.trackOf(event);
      if (track) this.calls.pick(track, false, event.shiftKey || event.ctrlKey);
    });
    this.body.addEventListener("dblclick", (event) => {
      const track = this.trackOf(event);
      if (track) this.calls.pick(track, true, false);
    });
  }

  /** @param {Event} event */
  trackOf(event) {
    const row = /** @type {HTMLElement | null} */ (/** @type {HTMLElement} */ (event.target).closest("[data-row]"));
    return row ? this.tracks[Number(row.dataset.row)] : null;
  }

  /** Sort and filter again. */
  update() {
    const words = this.filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    this.now = words.includes("now");
    const column = COLUMNS.find(({ key }) => key === this.sort.key) || COLUMNS[0];
    const sign = this.sort.down ? -1 : 1;
    const { unit } = this.store;
    this.tracks = this.store.tracks
      .filter((track) => passes(track, words, this.position, unit.pixel))
      .sort((a, b) => sign * (column.value(a) - column.value(b)) || a.id - b.id);
    [...this.head.children].forEach((cell, i) => {
      const sorted = COLUMNS[i].key === this.sort.key;
      /** @type {Element} */ (cell.firstChild).textContent = COLUMNS[i].head(unit.name);
      cell.setAttribute("aria-sort", sorted ? (this.sort.down ? "descending" : "ascending") : "none");
    });
    this.grid.setAttribute("aria-rowcount", `${this.tracks.length + 1}`);
    const all = this.store.tracks.length;
    this.found.textContent = words.length ? `${this.tracks.length} of ${all}` : `${all}`;
    this.root.style.setProperty("--first", (this.store.seconds.at(-1) || 0) < 3600 ? "2.9rem" : "4.4rem");
    this.spacer.style.height = `${this.tracks.length * ROW}px`;
    this.paint();
    this.calls.changed(this.tracks);
  }

  /** Write the rows that are on the screen. */
  paint() {
    const first = Math.max(0, Math.floor(this.body.scrollTop / ROW) - 2);
    const fit = Math.ceil(this.body.clientHeight / ROW) + 4;
    const last = Math.min(this.tracks.length, first + fit);
    while (this.pool.length < fit) this.pool.push(this.newRow());
    this.pool.forEach((row, i) => {
      const at = first + i;
      row.hidden = at >= last;
      if (row.hidden) return;
      const track = this.tracks[at];
      row.style.transform = `translateY(${at * ROW}px)`;
      row.dataset.row = `${at}`;
      row.title = track.name;
      row.id = `scalor-track-${track.id}`;
      row.setAttribute("aria-rowindex", `${at + 2}`);
      row.setAttribute("aria-selected", `${track.id === this.selected}`);
      row.classList.toggle("away", !inView(track, this.position));
      [...row.children].forEach((cell, k) => {
        const text = COLUMNS[k].text(track, this.store);
        const place = k ? cell : /** @type {Element} */ (cell.lastChild);
        if (place.textContent !== text) place.textContent = text;
      });
      const dot = /** @type {HTMLElement} */ (row.children[0].firstChild);
      dot.style.background = cssOf(track.id);
    });
    if (this.selected === null) this.grid.removeAttribute("aria-activedescendant");
    else this.grid.setAttribute("aria-activedescendant", `scalor-track-${this.selected}`);
  }

  newRow() {
    const row = document.createElement("div");
    row.setAttribute("role", "row");
    row.className = "row";
    for (const [k] of COLUMNS.entries()) {
      const cell = document.createElement("div");
      cell.setAttribute("role", "gridcell");
      if (!k) {
        const dot = document.createElement("i");
        cell.append(dot, document.createElement("span"));
      }
      row.append(cell);
    }
    this.body.append(row);
    return row;
  }

  /** @param {KeyboardEvent} event */
  pressed(event) {
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10 }[event.key];
    const at = this.tracks.findIndex((track) => track.id === this.selected);
    if (step) {
      event.preventDefault();
      event.stopPropagation();
      const track = this.tracks[Math.min(Math.max(at + step, 0), this.tracks.length - 1)];
      if (track) this.calls.pick(track, false, false);
    } else if (event.key === "Enter" && at >= 0 && event.target === this.grid) {
      event.preventDefault();
      this.calls.pick(this.tracks[at], true, false);
    }
  }

  /** @param {number | null} id */
  select(id) {
    this.selected = id;
    const row = this.tracks.findIndex((track) => track.id === id);
    const top = row * ROW;
    if (row >= 0 && (top < this.body.scrollTop || top + ROW > this.body.scrollTop + this.body.clientHeight)) {
      this.body.scrollTop = top - this.body.clientHeight / 2;
    }
    this.paint();
  }

  /** Tell of the frame that is shown. @param {number} position @param {boolean} resting whether playback rests */
  move(position, resting) {
    this.position = position;
    if (this.now && resting) this.update();
    else if (resting) this.paint();
  }
}
