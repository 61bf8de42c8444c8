// Edits of tracks, where the page is served by `scalor view`.

export class Editor {
  /** @param {any} page @param {HTMLElement} root @param {string} address */
  constructor(page, root, address) {
    this.page = page;
    this.root = root;
    this.address = address;
    /** @type {string[][]} */
    this.help = [];
  }

  open() {}

  state() {}

  /** @param {PointerEvent} event */
  press(event) {
    return false;
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    return false;
  }
}
