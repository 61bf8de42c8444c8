// Data of a tracked video: the index of all tracks, and chunks of rows that are loaded when they are needed.

/**
 * @typedef {object} Track
 * @property {number} id
 * @property {string} name
 * @property {number[]} spans first and last position of each stretch without a gap, one after the other
 * @property {number} first
 * @property {number} last
 * @property {number} rows
 * @property {number} seconds
 * @property {number} length
 * @property {number} confidence mean over its frames
 */

/**
 * @typedef {object} Chunk
 * @property {number} start
 * @property {Uint32Array} offsets
 * @property {Int32Array} id
 * @property {Float32Array} box
 * @property {Float32Array} confidence
 * @property {Uint8Array} discovered
 * @property {Int32Array} previous the row of the same object in an earlier frame of the chunk, or -1
 * @property {Map<number, number>} last the last row of each object
 */

/** @typedef {(name: string) => Promise<any>} Load */

const VERSION = 1;
const CHUNKS_HELD = 16;

/**
 * Decode base64 to an array of numbers.
 * @param {string} text
 * @param {any} Kind
 */
export function unpack(text, Kind) {
  const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  return new Kind(bytes.buffer);
}

/** @type {Map<string, (value: any) => void>} */
const awaited = new Map();

/**
 * Loader of data that lie beside the page, as classic scripts: they work where the page is opened as a file.
 * @param {string} base
 * @returns {Load}
 */
export function fromScripts(base) {
  Object.assign(window, { scalorData: (/** @type {string} */ name, /** @type {any} */ value) => awaited.get(name)?.(value) });
  return (name) =>
    new Promise((resolve, reject) => {
      awaited.set(name, resolve);
      const script = document.createElement("script");
      script.src = `${base}/${name}.js`;
      script.onload = () => script.remove();
      script.onerror = () => reject(new Error(`${base}/${name}.js is missing`));
      document.head.append(script);
    });
}

/**
 * Loader of data from `scalor view`.
 * @param {string} base
 * @returns {Load}
 */
export function fromServer(base) {
  return async (name) => {
    const answer = await fetch(`${base}/${name}`, { cache: "no-store" });
    if (!answer.ok) throw new Error(`${name}: ${await answer.text()}`);
    return answer.json();
  };
}

export class Store {
  /** @param {Load} load */
  constructor(load) {
    this.load = load;
    /** @type {Map<number, Chunk>} */
    this.chunks = new Map();
    /** @type {Map<number, string[]>} */
    this.masks = new Map();
    /** @type {Set<string>} */
    this.pending = new Set();
    /** Called when a chunk has arrived. */
    this.onload = () => {};
    /** Called with a sentence when data are missing. @type {(text: string) => void} */
    this.onfail = () => {};
    this.generation = 0;
    /** Position of the first frame of each chunk. @type {number[]} */
    this.starts = [];
    /** The index as it was read. @type {any} */
    this.index = {};
    /** Frames a second of the film. */
    this.rate = 25;
    /** Height and width of the video. @type {[number, number]} */
    this.size = [1, 1];
    /** Number of each frame in the original video. */
    this.frame = new Int32Array();
    this.seconds = new Float64Array();
    /** Objects in view in each frame. */
    this.counts = new Uint32Array();
    this.frames = 0;
    /** Position of the first predicted frame. @type {number | null} */
    this.predicted = null;
    /** @type {Track[]} */
    this.tracks = [];
    /** @type {Map<number, Track>} */
    this.byId = new Map();
  }

  /** Load the index and the chunk of a position, and forget all other chunks. @param {number} [position] */
  async open(position = 0) {
    const index = await this.load("index");
    if (index.version !== VERSION) throw new Error(`The data have version ${index.version}; this page reads ${VERSION}.`);
    this.starts = index.starts;
    const k = this.chunkOf(position);
    const [rows, masks] = await Promise.all([this.load(`rows-${k}`), index.masks ? this.load(`masks-${k}`) : null]);
    this.generation += 1;
    this.chunks.clear();
    this.masks.clear();
    this.pending.clear();
    this.chunks.set(k, decoded(rows));
    if (masks) this.masks.set(k, masks);
    this.index = index;
    this.rate = index.rate[0] / index.rate[1];
    this.size = index.size;
    this.frame = unpack(index.frame, Int32Array);
    this.seconds = unpack(index.seconds, Float64Array);
    this.counts = unpack(index.counts, Uint32Array);
    this.frames = this.frame.length;
    this.predicted = index.predicted;
    const table = index.tracks;
    this.tracks = table.id.map((/** @type {number} */ id, /** @type {number} */ i) => {
      const spans = table.spans[i];
      const first = spans[0];
      const last = spans[spans.length - 1];
      return {
        id,
        name: (index.names && index.names[id]) || "",
        spans,
        first,
        last,
        rows: table.rows[i],
        seconds: this.seconds[last] - this.seconds[first],
        length: table.length[i],
        confidence: table.confidence[i],
      };
    });
    this.byId = new Map(this.tracks.map((track) => [track.id, track]));
  }

  /** Unit of lengths, and a pixel's length in it: millimetres once a known length is drawn. */
  get unit() {
    const { scale } = this.index;
    return scale ? { name: "mm", pixel: scale.mm_per_pixel } : { name: "px", pixel: 1 };
  }

  /** Number of the chunk that holds a position. @param {number} position */
  chunkOf(position) {
    let low = 0;
    let high = this.starts.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.starts[middle] <= position) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  /** The chunk of a position if it is here; otherwise null, and it is asked for. @param {number} position */
  at(position) {
    const k = this.chunkOf(position);
    this.want(k);
    // Trails reach into the chunk before, and playback into the next.
    if (k > 0 && position - this.starts[k] < 64) this.want(k - 1);
    if (k + 1 < this.starts.length && this.starts[k + 1] - position < 128) this.want(k + 1);
    return this.chunks.get(k) || null;
  }

  /** Ask for a chunk. @param {number} k */
  want(k) {
    const held = this.chunks.get(k);
    if (held) {
      this.chunks.delete(k);
      this.chunks.set(k, held); // the most recent is last
      return;
    }
    this.request(`rows-${k}`, (raw) => {
      this.chunks.set(k, decoded(raw));
      for (const old of this.chunks.keys()) {
        if (this.chunks.size <= CHUNKS_HELD) break;
        this.chunks.delete(old);
        this.masks.delete(old);
      }
    });
  }

  /** The masks of a chunk if they are here; otherwise null, and they are asked for. @param {number} position */
  masksAt(position) {
    if (!this.index.masks) return null;
    const k = this.chunkOf(position);
    const held = this.masks.get(k);
    if (!held) this.request(`masks-${k}`, (raw) => this.masks.set(k, raw));
    return held || null;
  }

  /** @param {string} name @param {(raw: any) => void} take */
  async request(name, take) {
    if (this.pending.has(name)) return;
    this.pending.add(name);
    const generation = this.generation;
    try {
      const raw = await this.load(name);
      if (generation !== this.generation) return;
      take(raw);
      this.pending.delete(name);
      this.onload();
    } catch (error) {
      if (generation === this.generation) this.onfail(`${error instanceof Error ? error.message : error}`);
    }
  }

  /** Rows of a frame in its chunk: first, and one after the last. @param {Chunk} chunk @param {number} position */
  rowsOf(chunk, position) {
    const k = position - chunk.start;
    return [chunk.offsets[k], chunk.offsets[k + 1]];
  }

  /** Centre of an object at a position, if the data are here. @param {number} id @param {number} position */
  boxOf(id, position) {
    const chunk = this.at(position);
    if (!chunk) return null;
    const [from, to] = this.rowsOf(chunk, position);
    for (let row = from; row < to; row++) if (chunk.id[row] === id) return chunk.box.subarray(4 * row, 4 * row + 4);
    return null;
  }
}

/** @param {any} raw @returns {Chunk} */
function decoded(raw) {
  const id = unpack(raw.id, Int32Array);
  const previous = new Int32Array(id.length);
  /** @type {Map<number, number>} */
  const last = new Map();
  for (let row = 0; row < id.length; row++) {
    const before = last.get(id[row]);
    previous[row] = before === undefined ? -1 : before;
    last.set(id[row], row);
  }
  return {
    start: raw.start,
    offsets: unpack(raw.offsets, Uint32Array),
    id,
    box: unpack(raw.box, Float32Array),
    confidence: unpack(raw.confidence, Float32Array),
    discovered: unpack(raw.discovered, Uint8Array),
    previous,
    last,
  };
}

/** Whether a track has a box at a position. @param {Track} track @param {number} position */
export function inView(track, position) {
  for (let k = 0; k < track.spans.length; k += 2) {
    if (track.spans[k] <= position && position <= track.spans[k + 1]) return true;
  }
  return false;
}

/**
 * Decode a mask in COCO's text format to the lengths of its runs down the columns, zeros first.
 * @param {string} text
 * @returns {number[]}
 */
export function runsOf(text) {
  /** @type {number[]} */
  const counts = [];
  let value = 0;
  let shift = 0;
  for (let i = 0; i < text.length; i++) {
    const bits = text.charCodeAt(i) - 48;
    value |= (bits & 31) << shift;
    shift += 5;
    if (bits & 32) continue;
    if (bits & 16 && shift < 32) value |= -1 << shift;
    counts.push(counts.length > 2 ? value + counts[counts.length - 2] : value);
    value = 0;
    shift = 0;
  }
  return counts;
}

/** Time as on a clock, such as 1:02.3. @param {number} seconds */
export function clock(seconds) {
  const tenths = Math.floor(10 * seconds + 1e-6);
  const hours = Math.floor(tenths / 36000);
  const minutes = Math.floor((tenths % 36000) / 600);
  const rest = ((tenths % 600) / 10).toFixed(1).padStart(4, "0");
  return hours ? `${hours}:${String(minutes).padStart(2, "0")}:${rest}` : `${minutes}:${rest}`;
}
