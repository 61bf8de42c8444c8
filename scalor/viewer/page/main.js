// The page: joins data, player, picture, timeline and table, and answers keys and pointers.

import { rgbOf } from "./colors.js";
import { Store, clock, fromScripts, fromServer } from "./data.js";
import { Editor } from "./editor.js";
import { Player } from "./player.js";
import { Stage } from "./stage.js";
import { Table } from "./table.js";
import { Timeline } from "./timeline.js";

/** @typedef {import("./data.js").Track} Track */

const KEYS = [
  ["space", "play or pause"],
  ["← →", "one frame back or on; with shift ten"],
  ["home, end", "first or last frame"],
  ["[ ]", "slower or faster"],
  ["b m i t d", "boxes, masks, ids, trails, discoveries"],
  ["f", "follow the chosen object"],
  ["+ - 0", "zoom in, out, whole picture; control and wheel likewise"],
  ["n p", "next or previous track in the table"],
  ["/", "filter the table"],
  ["escape", "choose nothing"],
];

export class Page {
  /** @param {HTMLElement} root */
  constructor(root) {
    this.root = root;
    this.part = (/** @type {string} */ name) => /** @type {any} */ (root.querySelector(name));
    /** @type {HTMLVideoElement} */
    this.video = this.part("video");
    const served = root.dataset.source === "server";
    this.base = root.dataset.base || ".";
    this.store = new Store(served ? fromServer(`${this.base}/data`) : fromScripts(this.base));
    this.stage = new Stage(this.part(".picture"), this.video, this.store);
    this.player = new Player(this.video, (position) => this.show(position));
    this.timeline = new Timeline(this.part(".timeline"), this.store, (position, track) => {
      if (track) this.choose(track.id, false);
      this.player.seek(position);
    });
    this.timeline.readout = this.part(".readout");
    this.table = new Table(this.part(".right"), this.store, {
      pick: (track, follow, more) => this.pick(track, follow, more),
      changed: (tracks) => this.timeline.order(tracks),
    });
    this.editor = served ? new Editor(this, this.part(".edits"), this.base) : null;
    this.store.onload = () => this.draw();
    this.store.onfail = (text) => this.say(`Data cannot be read: ${text}.`);
    this.player.onstate = () => this.state();
  }

  async open() {
    this.root.hidden = false;
    try {
      await this.store.open();
    } catch (error) {
      this.part(".columns").hidden = true;
      const why = error instanceof Error ? error.message : String(error);
      this.say(`The player needs the folder ${this.base} beside this page (${why}).`);
      return;
    }
    const { store } = this;
    this.part('[data-layer="masks"]').hidden = !store.index.masks;
    this.part(".seek").max = store.frames - 1;
    this.part(".stage").style.setProperty("--shape", `${store.size[1] / store.size[0]}`);
    this.listen();
    this.keys();
    this.timeline.whole();
    this.table.update();
    this.resize();
    this.layers();
    this.video.addEventListener("error", () =>
      this.say("This browser cannot play the video; tracks are shown without it."),
    );
    this.player.open(`${this.base}/${store.index.film}`, store.frames, store.rate);
    this.state();
    if (this.editor) this.editor.open();
  }

  /** Show a message on the page. @param {string} text */
  say(text) {
    const place = this.part(".message");
    place.textContent = text;
    place.hidden = !text;
  }

  /** Read the data again, after an edit. */
  async reload() {
    const kept = this.stage.selected;
    await this.store.open(Math.max(this.player.position, 0));
    if (kept !== null && !this.store.byId.has(kept)) this.choose(null, false);
    this.table.update();
    this.timeline.redraw();
    this.draw();
    this.state();
  }

  /** Show the frame that the video holds. @param {number} position */
  show(position) {
    const { store, player } = this;
    this.stage.draw(position, player.film);
    this.timeline.move(position);
    this.table.move(position, !player.playing);
    const seek = this.part(".seek");
    seek.value = position;
    const imagined = store.predicted !== null && position >= store.predicted ? ", imagined" : "";
    const text = `${clock(store.seconds[position])}, frame ${store.frame[position]}`;
    this.part(".time").textContent = text + imagined;
    seek.setAttribute("aria-valuetext", text + imagined);
    if (!player.playing) this.announce(`${text}${imagined}, ${store.counts[position]} objects in view`);
  }

  /** Say a sentence to screen readers. @param {string} text */
  announce(text) {
    clearTimeout(this.telling);
    this.telling = setTimeout(() => {
      this.part(".live").textContent = text;
    }, 250);
  }

  draw() {
    if (!this.player.playing) this.show(Math.max(this.player.position, 0));
  }

  resize() {
    this.stage.resize();
    this.draw();
    this.timeline.order(this.table.tracks);
    this.table.paint();
  }

  state() {
    const play = this.part('[data-do="play"]');
    play.textContent = this.player.playing ? "\u275A\u275A" : "\u25B6";
    play.setAttribute("aria-label", this.player.playing ? "Pause" : "Play");
    this.part('[data-do="follow"]').setAttribute("aria-pressed", `${this.stage.following}`);
    this.part('[data-do="follow"]').disabled = this.stage.selected === null;
    if (this.editor) this.editor.state();
  }

  layers() {
    for (const button of this.root.querySelectorAll("[data-layer]")) {
      const on = this.stage.layers[/** @type {HTMLElement} */ (button).dataset.layer || ""];
      button.setAttribute("aria-pressed", `${on}`);
    }
    this.draw();
  }

  /** @param {string} name */
  toggle(name) {
    this.stage.layers[name] = !this.stage.layers[name];
    this.layers();
  }

  /** Choose an object. @param {number | null} id @param {boolean} more whether to add it to those chosen */
  choose(id, more) {
    if (more && id !== null && this.stage.selected !== null && id !== this.stage.selected) {
      if (!this.stage.others.delete(id)) this.stage.others.add(id);
    } else {
      this.stage.selected = id;
      this.stage.others.clear();
      if (id === null) this.stage.following = false;
      this.timeline.select(id);
      this.table.select(id);
      if (id !== null) this.announce(`id ${id} is chosen`);
    }
    this.state();
    this.draw();
  }

  /** Choose a track of the table, and go to it if it is not in view. @param {Track} track @param {boolean} follow @param {boolean} more */
  pick(track, follow, more) {
    if (this.editor?.chosen(track.id)) return;
    this.choose(track.id, more);
    const { position } = this.player;
    if (!more && (follow || position < track.first || position > track.last)) this.player.seek(track.first);
    if (follow) this.follow(true);
  }

  /** @param {boolean} on */
  follow(on) {
    this.stage.following = on && this.stage.selected !== null;
    if (this.stage.following && this.stage.zoom === 1) this.zoom(2.5);
    this.state();
    this.draw();
  }

  /** @param {number} factor @param {{x: number, y: number}} [around] point of the video to keep in place */
  zoom(factor, around) {
    const before = this.stage.zoom;
    this.stage.zoom = Math.min(Math.max(before * factor, 1), 40);
    if (around) {
      const share = before / this.stage.zoom;
      const { centre } = this.stage;
      this.stage.centre = { x: around.x + (centre.x - around.x) * share, y: around.y + (centre.y - around.y) * share };
    }
    this.draw();
  }

  /** @param {string} name */
  act(name) {
    const { player, timeline } = this;
    if (name === "play") player.toggle();
    if (name === "back") player.step(-1);
    if (name === "on") player.step(1);
    if (name === "follow") this.follow(!this.stage.following);
    if (name === "zoomin") this.zoom(1.5);
    if (name === "zoomout") this.zoom(1 / 1.5);
    if (name === "timein") timeline.zoom(1 / 2);
    if (name === "timeout") timeline.zoom(2);
    if (name === "timeall") timeline.whole();
    if (name === "theme") theme(document.documentElement.dataset.theme === "dark" ? "light" : "dark");
    if (name === "theme") timeline.redraw();
    if (name === "help") this.part(".keys").showModal();
  }

  listen() {
    this.root.addEventListener("click", (event) => {
      const button = /** @type {HTMLElement | null} */ (/** @type {HTMLElement} */ (event.target).closest("button"));
      if (event.detail) button?.blur(); // so that the space key plays after a click
      if (button?.dataset.do) this.act(button.dataset.do);
      if (button?.dataset.layer) this.toggle(button.dataset.layer);
    });
    this.part(".seek").addEventListener("input", (/** @type {any} */ event) => this.player.seek(Number(event.target.value)));
    const speed = this.part(".speed select");
    let byPointer = false;
    speed.addEventListener("pointerdown", () => (byPointer = true));
    speed.addEventListener("keydown", () => (byPointer = false));
    speed.addEventListener("change", () => {
      this.player.setSpeed(Number(speed.value));
      if (byPointer) speed.blur(); // so that keys are those of the player again
    });
    new ResizeObserver(() => this.resize()).observe(this.part(".stage"));
    const { canvas } = this.stage;
    canvas.addEventListener("pointermove", (event) => this.hover(event));
    canvas.addEventListener("pointerleave", () => (this.part(".hover").hidden = true));
    canvas.addEventListener("pointerdown", (event) => this.press(event));
    canvas.addEventListener("dblclick", () => this.follow(true));
    canvas.addEventListener(
      "wheel",
      (event) => {
        if (!event.ctrlKey) return;
        event.preventDefault();
        this.zoom(event.deltaY < 0 ? 1.2 : 1 / 1.2, this.stage.pointOf(event));
      },
      { passive: false },
    );
    document.addEventListener("keydown", (event) => this.key(event));
  }

  /** @param {PointerEvent} event */
  press(event) {
    if (this.editor?.press(event)) return;
    const hit = this.stage.rowAt(this.stage.pointOf(event));
    this.choose(hit ? hit.id : null, event.shiftKey || event.ctrlKey);
    if (hit || this.stage.zoom === 1) return;
    // Drag the picture.
    const { canvas } = this.stage;
    let last = event;
    const move = (/** @type {PointerEvent} */ next) => {
      const scale = (this.stage.ratio || 1) / this.stage.view.scale;
      const { centre } = this.stage;
      this.stage.centre = { x: centre.x - (next.clientX - last.clientX) * scale, y: centre.y - (next.clientY - last.clientY) * scale };
      last = next;
      this.draw();
    };
    canvas.setPointerCapture(event.pointerId);
    canvas.addEventListener("pointermove", move);
    canvas.addEventListener("pointerup", () => canvas.removeEventListener("pointermove", move), { once: true });
  }

  /** @param {PointerEvent} event */
  hover(event) {
    const place = this.part(".hover");
    const hit = event.buttons ? null : this.stage.rowAt(this.stage.pointOf(event));
    place.hidden = !hit;
    if (!hit) return;
    place.textContent = this.stage.describe(hit).join("\n");
    const box = this.stage.canvas.getBoundingClientRect();
    const x = event.clientX - box.left;
    const y = event.clientY - box.top;
    place.style.left = `${x > box.width - 190 ? x - 175 : x + 16}px`;
    place.style.top = `${Math.max(0, y > box.height - 110 ? y - 105 : y + 12)}px`;
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const target = /** @type {HTMLElement} */ (event.target);
    if (target.tagName === "SELECT" || this.part(".keys").open || this.part(".ask").open) return;
    if (target.tagName === "INPUT" && target.className !== "seek") {
      if (event.key === "Escape" || event.key === "Enter") target.blur();
      return;
    }
    if (this.editor?.key(event)) {
      event.preventDefault();
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const speeds = [0.1, 0.25, 0.5, 1, 2, 4, 8];
    const faster = (/** @type {number} */ by) => {
      const select = this.part(".speed select");
      select.value = speeds[Math.min(Math.max(speeds.indexOf(Number(select.value)) + by, 0), speeds.length - 1)];
      this.player.setSpeed(Number(select.value));
    };
    const next = (/** @type {number} */ by) => {
      const { tracks } = this.table;
      const at = tracks.findIndex((track) => track.id === this.stage.selected);
      const track = tracks[Math.min(Math.max(at + by, 0), tracks.length - 1)];
      if (track) this.pick(track, this.stage.following, false);
    };
    /** @type {Record<string, () => void>} */
    const actions = {
      ArrowRight: () => this.player.step(event.shiftKey ? 10 : 1),
      ArrowLeft: () => this.player.step(event.shiftKey ? -10 : -1),
      ".": () => this.player.step(1),
      ",": () => this.player.step(-1),
      Home: () => this.player.seek(0),
      End: () => this.player.seek(this.store.frames - 1),
      "[": () => faster(-1),
      "]": () => faster(1),
      b: () => this.toggle("boxes"),
      m: () => this.toggle("masks"),
      i: () => this.toggle("ids"),
      t: () => this.toggle("trails"),
      d: () => this.toggle("marks"),
      f: () => this.act("follow"),
      "+": () => this.act("zoomin"),
      "=": () => this.act("zoomin"),
      "-": () => this.act("zoomout"),
      0: () => this.zoom(0),
      n: () => next(1),
      p: () => next(-1),
      "/": () => this.part(".filter").focus(),
      "?": () => this.act("help"),
      Escape: () => this.choose(null, false),
    };
    if (event.key === " " && target.tagName !== "BUTTON") actions[" "] = () => this.player.toggle();
    const action = actions[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  }

  keys() {
    const list = this.part(".keys dl");
    for (const [key, what] of [...KEYS, ...(this.editor ? this.editor.help : [])]) {
      const term = document.createElement("dt");
      const meaning = document.createElement("dd");
      term.textContent = key;
      meaning.textContent = what;
      list.append(term, meaning);
    }
  }
}

/** Set the colours of the page. @param {string} name */
function theme(name) {
  document.documentElement.dataset.theme = name;
  try {
    localStorage.setItem("scalor-theme", name);
  } catch {
    // no storage for files in this browser: the choice lasts as long as the page
  }
}

function start() {
  let name = null;
  try {
    name = localStorage.getItem("scalor-theme");
  } catch {
    // as above
  }
  theme(name || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light"));
  const root = document.getElementById("scalor");
  if (!root) return;
  const page = new Page(root);
  // What was drawn and where, for tests and benchmarks.
  Object.assign(window, {
    scalor: {
      page,
      colour: rgbOf,
      get drawn() {
        return { position: page.stage.position, ...page.stage.view, boxes: page.stage.drawn };
      },
    },
  });
  page.open();
}

start();
