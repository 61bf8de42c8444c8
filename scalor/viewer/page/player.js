// Playback of the film by exact frames. The position is that of the frame that is on the screen.

export class Player {
  /**
   * @param {HTMLVideoElement} video
   * @param {(position: number) => void} show called with the position of the frame that the video holds now
   */
  constructor(video, show) {
    this.video = video;
    this.show = show;
    this.frames = 1;
    this.rate = 25;
    this.position = 0;
    this.playing = false;
    this.speed = 1;
    /** Whether the film can be shown; without it, a clock drives the position. */
    this.film = false;
    /** @type {number | null} position of the seek that is under way */
    this.seeking = null;
    /** @type {number | null} position to go to */
    this.wanted = null;
    /** @type {{now: number, position: number} | null} start of playback by the clock */
    this.started = null;
    this.onstate = () => {};
    video.addEventListener("seeked", () => this.seeked());
    video.addEventListener("ended", () => this.pause());
    video.addEventListener("error", () => this.lose());
  }

  /** @param {string} source @param {number} frames @param {number} rate */
  open(source, frames, rate) {
    this.frames = frames;
    this.rate = rate;
    this.video.muted = true;
    this.video.preload = "auto";
    this.video.addEventListener(
      "loadeddata",
      () => {
        this.film = true;
        const { position } = this;
        this.position = -1;
        this.seek(position);
      },
      { once: true },
    );
    this.video.src = source;
    this.show(0);
  }

  /** Go on without the film. */
  lose() {
    const { playing } = this;
    this.film = false;
    this.seeking = null;
    this.playing = false;
    this.show(this.position);
    if (playing) this.play();
    else this.onstate();
  }

  /** Go to a frame. @param {number} position */
  seek(position) {
    const to = Math.min(Math.max(Math.round(position), 0), this.frames - 1);
    if (this.playing && this.film) {
      this.video.currentTime = (to + 0.5) / this.rate;
      return;
    }
    if (!this.film) {
      this.position = to;
      this.started = null;
      this.show(to);
      return;
    }
    this.wanted = to;
    if (this.seeking === null) this.start();
  }

  start() {
    if (this.wanted === null) return;
    this.seeking = this.wanted;
    this.wanted = null;
    // The middle of the frame: no rounding of times leads to a neighbour.
    this.video.currentTime = (this.seeking + 0.5) / this.rate;
  }

  seeked() {
    if (this.seeking === null) return;
    this.position = this.seeking;
    this.seeking = null;
    this.show(this.position);
    this.start();
  }

  /** Go some frames on or back. @param {number} by */
  step(by) {
    this.pause();
    const from = this.wanted ?? this.seeking ?? this.position;
    this.seek(from + by);
  }

  play() {
    if (this.playing) return;
    if (this.position >= this.frames - 1) {
      if (this.film) this.video.currentTime = 0;
      this.position = 0;
    }
    this.playing = true;
    this.wanted = this.seeking = null;
    this.onstate();
    if (!this.film) {
      this.started = null;
      requestAnimationFrame((now) => this.tick(now));
      return;
    }
    this.video.playbackRate = this.speed;
    this.video.play().catch(() => this.pause());
    this.follow();
  }

  /** Show each frame that the video presents. */
  follow() {
    if (!this.playing || !this.film) return;
    const presented = (/** @type {number} */ seconds) => {
      if (!this.playing) return;
      const position = Math.min(Math.max(Math.round(seconds), 0), this.frames - 1);
      if (position !== this.position) {
        this.position = position;
        this.show(position);
      }
      this.follow();
    };
    if ("requestVideoFrameCallback" in this.video) {
      this.video.requestVideoFrameCallback((_, frame) => presented(frame.mediaTime * this.rate));
    } else {
      requestAnimationFrame(() => presented(Math.floor(this.video.currentTime * this.rate + 1e-3)));
    }
  }

  /** Advance by the clock. @param {number} now */
  tick(now) {
    if (!this.playing || this.film) return;
    if (!this.started) this.started = { now, position: this.position };
    const position = this.started.position + Math.floor(((now - this.started.now) / 1000) * this.rate * this.speed);
    if (position !== this.position) {
      this.position = Math.min(position, this.frames - 1);
      this.show(this.position);
    }
    if (this.position >= this.frames - 1) this.pause();
    else requestAnimationFrame((later) => this.tick(later));
  }

  pause() {
    if (!this.playing) return;
    this.playing = false;
    if (this.film) {
      this.video.pause();
      if (this.video.ended) this.position = this.frames - 1;
      this.seek(this.position); // the video may be a frame ahead of what was shown last
    }
    this.onstate();
  }

  toggle() {
    if (this.playing) this.pause();
    else this.play();
  }

  /** @param {number} speed */
  setSpeed(speed) {
    this.speed = speed;
    this.started = null;
    if (this.film) this.video.playbackRate = speed;
  }
}
