// Edits of tracks, and drawing of zones, lines and a known length, where the page is served by `scalor view`.

/** @typedef {{x: number, y: number}} Point */
/** @typedef {{hint: string, enough: number, drag?: boolean, done: (points: Point[]) => void}} Tool a drawing on the picture */

/** Groups of buttons: name, text, title. */
const GROUPS = {
  edit: [
    ["swap", "swap", "exchange two ids from this frame on (s)"],
    ["merge", "merge", "join two tracks (g)"],
    ["split", "split", "a new id from this frame on (x)"],
    ["delete", "delete", "delete the track (delete)"],
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

/** @type {Record<string, string>} */
const KEYS = { s: "swap", g: "merge", x: "split", Delete: "delete", r: "name", a: "add", c: "crossing", u: "doubt" };

export class Editor {
  /** @param {any} page @param {HTMLElement} root @param {string} base */
  constructor(page, root, base) {
    this.page = page;
    this.root = root;
    this.base = base;
    /** @type {Tool | null} */
    this.tool = null;
    /** @type {Point[]} */
    this.points = [];
    /** @type {Point | null} */
    this.pointer = null;
    /** What a click on another object completes. @type {((id: number) => void) | null} */
    this.waiting = null;
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
    this.page.stage.after = (/** @type {CanvasRenderingContext2D} */ context, /** @type {number} */ thick) => this.draw(context, thick);
    const { canvas } = this.page.stage;
    canvas.addEventListener("pointermove", (/** @type {PointerEvent} */ event) => {
      if (!this.tool) return;
      this.pointer = this.page.stage.pointOf(event);
      this.page.draw();
    });
    canvas.addEventListener("pointerup", (/** @type {PointerEvent} */ event) => {
      if (this.tool?.drag && this.points.length === 1) this.place(this.page.stage.pointOf(event));
    });
    canvas.addEventListener("dblclick", () => this.finish());
    this.state();
  }

  /** Enable the buttons that make sense now. */
  state() {
    const { index } = this.page.store;
    const drawings = ["zone", "line", "scale", "erase"];
    const one = this.page.stage.selected !== null;
    for (const button of this.root.querySelectorAll("button")) {
      const name = button.dataset.edit || "";
      if (["swap", "merge", "split", "delete", "name"].includes(name)) button.disabled = !one;
      if (name === "undo") button.disabled = !index.undo;
      if (name === "redo") button.disabled = !index.redo;
      if (drawings.includes(name)) button.hidden = !index.zones;
      if (name === "erase") button.disabled = !index.zones?.length && !index.lines?.length;
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
      name: async () => {
        const name = await this.ask(`name of track ${id}`, this.page.store.byId.get(id)?.name || "");
        if (name !== null) this.send({ op: "name", id, name });
      },
      add: () => this.begin({ hint: "drag a box", enough: 2, drag: true, done: (points) => this.add(points) }),
      undo: () => this.send({ op: "undo" }),
      redo: () => this.send({ op: "redo" }),
      crossing: () => this.next("crossings"),
      doubt: () => this.next("doubts"),
      zone: () => this.begin({ hint: "click the corners; a double click or enter ends", enough: Infinity, done: (points) => this.region("zone", points) }),
      line: () => this.begin({ hint: "click the two ends; it counts from its left to its right", enough: 2, done: (points) => this.region("line", points) }),
      scale: () => this.begin({ hint: "click two points a known length apart", enough: 2, done: (points) => this.scale(points) }),
      erase: () => this.erase(),
    };
    if (["swap", "merge", "split", "delete", "name"].includes(name) && id === null) return;
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
  }

  /** @param {string} where @param {unknown} document_ @returns {Promise<any>} */
  async post(where, document_) {
    try {
      const answer = await fetch(`${this.base}/${where}`, {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify(document_),
      });
      const document = await answer.json();
      if (answer.ok) return document;
      this.tell(document.error);
    } catch {
      this.tell("The server does not answer: is scalor view still running?");
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

  /** Go to the next place to look at. @param {string} kind */
  async next(kind) {
    const places = await this.page.store.load(kind);
    const { position } = this.page.player;
    const after = places.findIndex((/** @type {any} */ place) => place.position > position);
    const place = places[Math.max(after, 0)];
    if (!place) {
      this.tell("there is none");
      return;
    }
    this.page.choose(place.ids[0], false);
    for (const other of place.ids.slice(1)) this.page.choose(other, true);
    this.page.player.seek(place.position);
    this.tell(`${after < 0 ? "from the start: " : ""}frame ${place.frame}: ${place.text}`);
  }

  // Drawing on the picture

  /** @param {Tool} tool */
  begin(tool) {
    this.tool = tool;
    this.points = [];
    this.pointer = null;
    this.page.stage.canvas.classList.add("tool");
    this.tell(`${tool.hint}; escape ends without`);
  }

  cancel() {
    this.tool = null;
    this.waiting = null;
    this.points = [];
    this.page.stage.canvas.classList.remove("tool");
    this.tell("");
    this.page.draw();
  }

  /** @param {Point} point */
  place(point) {
    const [height, width] = this.page.store.size;
    this.points.push({ x: Math.min(Math.max(point.x, 0), width), y: Math.min(Math.max(point.y, 0), height) });
    this.page.draw();
    if (this.tool && this.points.length >= this.tool.enough) this.finish();
  }

  finish() {
    const { tool, points } = this;
    if (!tool) return;
    // A double click places its point twice.
    const distinct = points.filter((p, i) => !i || Math.hypot(p.x - points[i - 1].x, p.y - points[i - 1].y) > 0.5);
    this.cancel();
    const least = tool.enough === Infinity ? 3 : 2;
    if (distinct.length >= least) tool.done(distinct);
    else this.tell("too few points");
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

  /** @param {CanvasRenderingContext2D} context @param {number} thick */
  draw(context, thick) {
    const { index } = this.page.store;
    context.lineWidth = 2 * thick;
    context.font = `600 ${12 * thick}px system-ui, sans-serif`;
    context.textBaseline = "bottom";
    const named = (/** @type {string} */ name, /** @type {number} */ x, /** @type {number} */ y) => {
      context.fillStyle = "#fff";
      context.strokeStyle = "#101418";
      context.textBaseline = "top";
      context.lineWidth = 3 * thick;
      context.strokeText(name, x, y);
      context.fillText(name, x, y);
      context.lineWidth = 2 * thick;
    };
    for (const zone of index.zones || []) {
      context.beginPath();
      if (zone.circle) context.arc(zone.circle[0], zone.circle[1], zone.circle[2], 0, 2 * Math.PI);
      else if (zone.rectangle) context.rect(zone.rectangle[0], zone.rectangle[1], zone.rectangle[2] - zone.rectangle[0], zone.rectangle[3] - zone.rectangle[1]);
      else for (const [x, y] of zone.polygon) context.lineTo(x, y);
      context.closePath();
      context.fillStyle = "rgba(255,255,255,.14)";
      context.fill();
      context.strokeStyle = "#fff";
      context.stroke();
      const [x, y] = zone.circle || zone.rectangle || zone.polygon[0];
      named(zone.name, x + 4 * thick, y + 4 * thick);
    }
    for (const line of index.lines || []) {
      context.beginPath();
      context.moveTo(line.from[0], line.from[1]);
      context.lineTo(line.to[0], line.to[1]);
      context.strokeStyle = "#ffd54a";
      context.stroke();
      // A mark points to the right of the line, where a forward crossing leads.
      const length = Math.hypot(line.to[0] - line.from[0], line.to[1] - line.from[1]) || 1;
      const middle = [(line.from[0] + line.to[0]) / 2, (line.from[1] + line.to[1]) / 2];
      context.beginPath();
      context.moveTo(middle[0], middle[1]);
      context.lineTo(middle[0] - ((line.to[1] - line.from[1]) / length) * 14 * thick, middle[1] + ((line.to[0] - line.from[0]) / length) * 14 * thick);
      context.stroke();
      named(line.name, line.from[0], line.from[1]);
    }
    if (!this.tool || !this.points.length) return;
    const points = this.pointer ? [...this.points, this.pointer] : this.points;
    context.strokeStyle = "#fff";
    context.beginPath();
    if (this.tool.drag) context.rect(points[0].x, points[0].y, points[points.length - 1].x - points[0].x, points[points.length - 1].y - points[0].y);
    else for (const { x, y } of points) context.lineTo(x, y);
    context.stroke();
  }

  /** Take a press on the picture, if a tool or an edit waits for it. @param {PointerEvent} event */
  press(event) {
    if (this.tool) {
      if (this.tool.drag) this.page.stage.canvas.setPointerCapture(event.pointerId);
      this.place(this.page.stage.pointOf(event));
      return true;
    }
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
    if (event.key === "Escape" && (this.tool || this.waiting)) {
      this.cancel();
      return true;
    }
    if (event.key === "Enter" && this.tool) {
      this.finish();
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
    this.act(name);
    return true;
  }
}
