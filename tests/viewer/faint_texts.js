// Texts of the page whose contrast with their ground is below a ratio, by the formula of WCAG 2. Disabled controls are left out.
(least) => {
  const parsed = (text) => {
    const [red, green, blue, alpha] = text.match(/[\d.]+/g).map(Number);
    return [red, green, blue, alpha ?? 1];
  };
  const over = (top, under) => [0, 1, 2].map((i) => top[i] * top[3] + under[i] * (1 - top[3])).concat(1);
  const chain = (one) => (one ? [...chain(one.parentElement), one] : []);
  const luminance = (color) => {
    const [red, green, blue] = color.map((value) => (value <= 10 ? value / 3294.6 : ((value / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const ratio = (one) => {
    const styles = chain(one).map((part) => getComputedStyle(part));
    const ground = styles.reduce((under, style) => over(parsed(style.backgroundColor), under), [255, 255, 255, 1]);
    const ink = parsed(getComputedStyle(one).color);
    ink[3] *= styles.reduce((product, style) => product * Number(style.opacity), 1);
    const [more, less] = [luminance(over(ink, ground)), luminance(ground)].sort((a, b) => b - a);
    return (more + 0.05) / (less + 0.05);
  };
  const texts = [...document.querySelectorAll("body *")].filter(
    (one) => [...one.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim()),
  );
  const shown = texts.filter((one) => one.checkVisibility() && !one.closest("script, style, option") && !one.disabled);
  return shown.filter((one) => ratio(one) < least).map((one) => `${one.tagName} ${one.textContent.trim()}: ${ratio(one).toFixed(2)}`);
}
