// Colours of object ids, the same as in every picture that Python draws: hues advance by the golden ratio in OKLCH.

const GOLDEN = (Math.sqrt(5) - 1) / 2;

/** @type {Map<number, [number, number, number]>} */
const known = new Map();

/** RGB, 0 to 255, of an id. @param {number} id @returns {[number, number, number]} */
export function rgbOf(id) {
  const held = known.get(id);
  if (held) return held;
  const hue = (0.08 + GOLDEN * id) % 1;
  const lightness = 0.75 + 0.1 * Math.cos(2 * Math.PI * (hue - 0.3)) + [0, 0.08, -0.08][id % 3];
  const a = 0.16 * Math.cos(2 * Math.PI * hue);
  const b = 0.16 * Math.sin(2 * Math.PI * hue);
  const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
  const linear = [
    4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
    -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
    -0.0041960863 * l - 0.7034186147 * m + 1.7076147010 * s,
  ].map((value) => Math.min(1, Math.max(0, value)));
  const [red, green, blue] = linear.map((value) =>
    Math.round(255 * (value <= 0.0031308 ? 12.92 * value : 1.055 * value ** (1 / 2.4) - 0.055)),
  );
  known.set(id, [red, green, blue]);
  return [red, green, blue];
}

/** CSS colour of an id. @param {number} id @param {number} [alpha] */
export function cssOf(id, alpha = 1) {
  const [red, green, blue] = rgbOf(id);
  return `rgba(${red},${green},${blue},${alpha})`;
}
