// Edits of tracks, and drawing of zones, lines and a known length, where the page is served by `scalor view`.

import { Sketch } from "./sketch.js";

/** @typedef {import("./main.js").Page} Page */
/** @typedef {import("./sketch.js").Point} Point */
/** @typedef {{frame: number, position: number, ids: number[], text: string}} Place a place to look at */

/** Groups of buttons: name, text, title. */
const GROUPS = {
  edit: [
    ["swap", "swap", "exchange two ids from this frame on (s)"],
    ["merge", "merge", "join two tracks (g)"],
    ["split", "split", "a new id from this frame on (x)"],
    ["delete", "delete", "delete the track (delete)"],
    ["deletebox", "delete box", "delete the box of this frame (shift delete)"],
    ["name", "name", "name the track (r)"],
    ["add", "add box", "draw a missing box (a)"],
    ["undo", "undo", "take back the last edit (control z)"],
    ["redo", "redo", "repeat the edit taken back (control y)"],
  ],
  check: [
    ["crossing", "next crossing", "go to the next place where two tracks are near (c)"],
    ["doubt", "next doubtful place", "go to the next place where a track may be wrong (u)"],
  ],
  measure: [
    ["zone", "zone", "draw a zone for scalor measure"],
    ["line", "line", "draw a counting line for scalor measure"],
    ["scale", "known length", "click two points a known length apart"],
    ["erase", "erase drawing", "erase a zone or line by its name"],
  ],
};

/** Edits of the chosen track. */
const OF_ONE = ["swap", "merge", "split", "delete", "deletebox", "name"];
const CHECK_AFTER = 5000; // milliseconds after the last edit
const GONE = "The server does not answer: is scalor view still running?";

/** @type {Record<string, string>} */
const KEYS = { s: "swap", g: "merge", x: "split", Delete: "delete", Backspace: "delete", r: "name", a: "add", c: "crossing", u: "doubt" };

export class Editor {
  /** @param {Page} page @param {HTMLElement} root @param {string} base */
  constructor(page, root, base) {
    this.page = page;
    this.root = root;
    this.base = base;
    this.sketch = new Sketch(page.stage, () => page.draw(), (text) => this.tell(text));
    /** What a click on another object completes. @type {((id: number) => void) | null} */
    this.waiting = null;
    /** The place that was gone to last. @type {{kind: string, at: number} | null} */
    this.visited = null;
    this.queue = Promise.resolve();
    /** Edits that the server has not answered yet. */
    this.unsaved = 0;
    window.addEventListener("beforeunload", (event) => {
      if (this.unsaved) event.preventDefault();
    });
    const buttons = Object.values(GROUPS).flat();
    this.help = buttons.map(([, , title]) => /^(.*) \((.*)\)$/.exec(title)).flatMap((found) => (found ? [[found[2], found[1]]] : []));
  }

  open() {
    this.root.hidden = false;
    this.root.setAttribute("role", "group");
    this.root.setAttribute("aria-label", "Edits");
    for (const [group, buttons] of Object.entries(GROUPS)) {
      const part = document.createElement("span");
      part.className = "group";
      part.setAttribute("role", "group");
      part.setAttribute("aria-label", group);
      const caption = document.createElement("span");
      caption.className = "quiet";
      caption.textContent = group;
      part.append(caption);
      for (const [name, text, title] of buttons) {
        const button = document.createElement("button");
        button.type = "button";
        button.dataset.edit = name;
        button.textContent = text;
        button.title = title;
        button.addEventListener("click", () => this.act(name));
        part.append(button);
      }
      this.root.append(part);
    }
    this.status = document.createElement("p");
    this.status.className = "quiet";
    this.status.setAttribute("role", "status");
    this.root.append(this.status);
    this.page.stage.after = (context, thick) => this.sketch.paint(context, thick);
    this.state();
  }

  /** Enable the buttons that make sense now. */
  state() {
    const { index } = this.page.store;
    const one = this.page.stage.selected !== null;
    for (const button of this.root.querySelectorAll("button")) {
      const name = button.dataset.edit || "";
      if (OF_ONE.includes(name)) button.disabled = !one;
      if (name === "undo") button.disabled = !index.undo;
      if (name === "redo") button.disabled = !index.redo;
      if (name === "erase") button.disabled = !index.zones.length && !index.lines.length;
    }
  }

  /** @param {string} text */
  tell(text) {
    if (this.status) this.status.textContent = text;
  }

  /** Number of the frame that is shown, in the original video. */
  get frame() {
    return this.page.store.frame[this.page.player.position];
  }

  /** @param {string} name */
  act(name) {
    this.cancel();
    this.page.player.pause();
    const id = this.page.stage.selected;
    const actions = {
      swap: () => this.withOther("swap", (other) => this.send({ op: "swap", a: id, b: other, frame: this.frame })),
      merge: () => this.withOther("merge", (other) => this.send({ op: "merge", keep: id, other })),
      split: () => this.send({ op: "split", id, frame: this.frame }),
      delete: () => this.send({ op: "delete", id }),
      deletebox: () => this.send({ op: "delete", id, first: this.frame, last: this.frame }),
      name: async () => {
        const name = await this.ask(`name of track ${id}`, this.page.store.byId.get(id ?? 0)?.name || "");
        if (name !== null) this.send({ op: "name", id, name });
      },
      add: () => this.sketch.begin({ hint: "drag a box", enough: 2, drag: true, done: (points) => this.add(points) }),
      undo: () => this.send({ op: "undo" }),
      redo: () => this.send({ op: "redo" }),
      crossing: () => this.next("crossings"),
      doubt: () => this.next("doubts"),
      zone: () => this.sketch.begin({ hint: "click the corners; a double click or enter ends", enough: Infinity, done: (points) => this.region("zone", points) }),
      line: () => this.sketch.begin({ hint: "click the two ends; it counts from its left to its right", enough: 2, done: (points) => this.region("line", points) }),
      scale: () => this.sketch.begin({ hint: "click two points a known length apart", enough: 2, done: (points) => this.scale(points) }),
      erase: () => this.erase(),
    };
    if (OF_ONE.includes(name) && id === null) return;
    /** @type {Record<string, () => void>} */ (actions)[name]();
  }

  /** Run with the second chosen id, or wait for a click on it. @param {string} what @param {(other: number) => void} run */
  withOther(what, run) {
    const [other] = this.page.stage.others;
    if (other !== undefined) {
      run(other);
      return;
    }
    this.waiting = run;
    this.tell(`${what}: click the other object, or its row`);
  }

  /** Do an edit after those that were asked for before. @param {Record<string, unknown>} step */
  send(step) {
    this.unsaved += 1;
    this.queue = this.queue.then(() => this.doOne(step)).finally(() => (this.unsaved -= 1));
    return this.queue;
  }

  /** @param {Record<string, unknown>} step */
  async doOne(step) {
    this.tell("saving");
    const answer = await this.post("edit", step);
    if (!answer) return;
    await this.page.reload();
    this.tell(answer.done);
    clearTimeout(this.checking);
    this.checking = setTimeout(() => this.check(), CHECK_AFTER);
  }

  /** Say on the page if the server could not make the files of the folder again. */
  async check() {
    try {
      const { problem } = await this.page.store.load("index");
      if (problem || this.warned) this.page.say(problem ? `The edits are saved, but the files could not be made again: ${problem}` : "");
      this.warned = problem !== null;
    } catch {
      this.tell(GONE);
    }
  }

  /** Send a document; return the answer, or null after telling what is wrong. @param {string} where @param {unknown} content @returns {Promise<any>} */
  async post(where, content) {
    try {
      const answer = await fetch(`${this.base}/${where}`, {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify(content),
      });
      const told = await answer.json();
      if (answer.ok) return told;
      this.tell(told.error);
    } catch {
      this.tell(GONE);
    }
    return null;
  }

  /** @param {Point[]} points */
  add(points) {
    const [a, b] = points;
    const box = [Math.min(a.x, b.x), Math.min(a.y, b.y), Math.max(a.x, b.x), Math.max(a.y, b.y)];
    const { selected } = this.page.stage;
    const free = selected !== null && !this.page.store.boxOf(selected, this.page.player.position);
    this.send({ op: "add", frame: this.frame, box, ...(free ? { id: selected } : {}) });
  }

  /** Go to the next place to look at; also to others in the same frame. @param {"crossings" | "doubts"} kind */
  async next(kind) {
    /** @type {Place[]} */
    const places = await this.page.store.load(kind);
    const { position } = this.page.player;
    const visited = this.visited?.kind === kind ? this.visited.at : -1;
    const here = places[visited]?.position === position;
    const after = here ? visited + 1 : places.findIndex((place) => place.position >= position);
    const at = after < 0 || after >= places.length ? 0 : after;
    const place = places[at];
    if (!place) {
      this.tell("there is none");
      return;
    }
    this.visited = { kind, at };
    this.page.choose(place.ids[0], false);
    for (const other of place.ids.slice(1)) this.page.choose(other, true);
    this.page.player.seek(place.position);
    this.tell(`${at === after ? "" : "from the start: "}frame ${place.frame}: ${place.text}`);
  }

  /** End what waits for a click. */
  cancel() {
    this.waiting = null;
    this.sketch.cancel();
    this.tell("");
    this.page.draw();
  }

  /** Save a zone or a line. @param {"zone" | "line"} kind @param {Point[]} points */
  async region(kind, points) {
    const name = await this.ask(`name of the ${kind}`, "");
    if (!name) return;
    const places = points.map(({ x, y }) => [Number(x.toFixed(1)), Number(y.toFixed(1))]);
    const { zones, lines } = this.page.store.index;
    const more = kind === "zone" ? { zones: [...zones, { name, polygon: places }], lines } : { zones, lines: [...lines, { name, from: places[0], to: places[1] }] };
    await this.keep(await this.post("regions", more), `the ${kind} is saved; scalor measure FOLDER uses it`);
  }

  async erase() {
    const { zones, lines } = this.page.store.index;
    const name = await this.ask("name of the zone or line to erase", (zones[0] || lines[0] || { name: "" }).name);
    if (name === null) return;
    const others = (/** @type {{name: string}[]} */ list) => list.filter((one) => one.name !== name);
    await this.keep(await this.post("regions", { zones: others(zones), lines: others(lines) }), "erased");
  }

  /** @param {Point[]} points */
  async scale(points) {
    const text = await this.ask("distance of the two points in millimetres", "");
    if (text === null) return;
    const numbers = points.flatMap(({ x, y }) => [Number(x.toFixed(2)), Number(y.toFixed(2))]);
    const saved = await this.post("scale", { known_length: [...numbers, Number(text)] });
    if (!saved) return;
    await this.keep(saved, `a pixel shows ${saved.scale.mm_per_pixel.toPrecision(4)} mm; scalor measure FOLDER uses it`);
  }

  /** @param {any} saved @param {string} text */
  async keep(saved, text) {
    if (!saved) return;
    Object.assign(this.page.store.index, saved);
    this.tell(text);
    this.state();
    this.page.table.update();
    this.page.draw();
  }

  /** Ask for a text; null if nothing is wanted. @param {string} label @param {string} value @returns {Promise<string | null>} */
  async ask(label, value) {
    await new Promise(requestAnimationFrame); // a press on the picture takes the focus first
    const dialog = this.page.part(".ask");
    const input = dialog.querySelector("input");
    dialog.querySelector("label span").textContent = label;
    input.value = value;
    dialog.returnValue = "";
    dialog.showModal();
    input.select();
    return new Promise((resolve) => {
      dialog.addEventListener("close", () => resolve(dialog.returnValue === "ok" ? input.value.trim() : null), { once: true });
    });
  }

  /** Take a press on the picture, if a tool or an edit waits for it. @param {PointerEvent} event */
  press(event) {
    if (this.sketch.press(event)) return true;
    const hit = this.waiting ? this.page.stage.rowAt(this.page.stage.pointOf(event)) : null;
    return hit ? this.chosen(hit.id) : false;
  }

  /** Take an id that was clicked, if an edit waits for it. @param {number} id */
  chosen(id) {
    const run = this.waiting;
    if (!run || id === this.page.stage.selected) return false;
    this.cancel();
    run(id);
    return true;
  }

  /** Take a key, if it is of the editor. @param {KeyboardEvent} event */
  key(event) {
    if (event.key === "Escape" && (this.sketch.tool || this.waiting)) {
      this.cancel();
      return true;
    }
    if (event.key === "Enter" && this.sketch.tool) {
      this.sketch.finish();
      return true;
    }
    if (event.ctrlKey || event.metaKey) {
      const name = { z: event.shiftKey ? "redo" : "undo", Z: "redo", y: "redo" }[event.key];
      if (!name) return false;
      this.act(name);
      return true;
    }
    const name = KEYS[event.key];
    if (!name || event.altKey) return false;
    this.act(name === "delete" && event.shiftKey ? "deletebox" : name);
    return true;
  }
}
