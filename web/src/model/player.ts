// The one cursor: how many records have happened, and what time it is between them.

import { signal } from "@preact/signals";
import { Phase, type Story, What } from "./story";

/** How long a step takes to be seen, in milliseconds. */
const STEP_MS = 320;
/** While it plays, words change so often at most: nobody reads faster, and pictures stay smooth. */
const WORDS_MS = 160;
/** The time of a message takes so long at usual speed. */
const UNIT_MS = 900;

export const SPEEDS = [0.125, 0.25, 0.5, 1, 2, 4, 8, 16, 32];

/** What one can jump to. */
export type Stop = "event" | "entry" | "leader" | "view" | "told" | "fault" | "violation";

export function isStill(): boolean {
  return matchMedia("(prefers-reduced-motion: reduce)").matches;
}

export class Player {
  /** How many records have happened, as words say it: while it plays, some times a second. */
  readonly records = signal(0);
  /** How many records have happened. */
  now = 0;
  readonly playing = signal(false);
  readonly speed = signal(1);
  /** The time that is shown. */
  time = 0;
  /** The mean time of a message, which makes the pace. */
  pace = 1;
  /** How long the last frames took, for those who measure. */
  readonly frames: number[] = [];
  /** How long drawing took. */
  readonly draws: number[] = [];

  private story: Story | undefined;
  private listeners = new Set<() => void>();
  private frame = 0;
  private toldAt = 0;
  private last = 0;
  private glide: { from: number; to: number; begun: number; records: number } | undefined;

  /** Shows another run, from this record on. */
  show(story: Story, records: number, pace: number): void {
    this.story = story;
    this.pace = pace > 0 ? pace : 1;
    this.pause();
    this.jump(records);
  }

  get current(): Story | undefined {
    return this.story;
  }

  private happened(records: number): void {
    this.now = records;
    const now = performance.now();
    if (this.playing.peek() && now - this.toldAt < WORDS_MS) return;
    this.toldAt = now;
    this.records.value = records;
  }

  /** Hears of every frame. */
  listen(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** Something that is seen has changed. */
  refresh(): void {
    this.wake();
  }

  private timeAt(records: number): number {
    const story = this.story;
    if (!story) return 0;
    return records <= 0 ? story.start : story.rAt[Math.min(records, story.recordCount) - 1]!;
  }

  /** Goes there at once. */
  jump(records: number): void {
    if (!this.story) return;
    const target = Math.max(0, Math.min(this.story.recordCount, Math.round(records)));
    this.glide = undefined;
    this.pause();
    this.happened(target);
    this.time = this.timeAt(target);
    this.wake();
  }

  /** Goes to a time, and shows it as it is between two records. */
  scrub(time: number): void {
    if (!this.story) return;
    this.glide = undefined;
    this.time = Math.max(this.story.start, Math.min(this.story.end, time));
    this.happened(this.story.upTo(this.time));
    this.wake();
  }

  /** One record forth or back, so that one can see it move. */
  step(by: number): void {
    if (!this.story) return;
    this.pause();
    const from = this.glide ? this.glide.records : this.now;
    const target = Math.max(0, Math.min(this.story.recordCount, from + by));
    if (target === from) return;
    this.moveTo(target);
  }

  private moveTo(target: number): void {
    const to = this.timeAt(target);
    if (isStill() || to === this.time) {
      this.jump(target);
      return;
    }
    // Backwards, what was done is undone first and then runs back.
    if (to < this.time) this.happened(target);
    this.glide = { from: this.time, to, begun: performance.now(), records: target };
    this.wake();
  }

  /** To the next record of this kind; false if there is none. */
  seek(stop: Stop, direction: 1 | -1, node?: number): boolean {
    const story = this.story;
    if (!story) return false;
    this.pause();
    const now = this.glide ? this.glide.records : this.now;
    for (let r = now - 1 + direction; r >= 0 && r < story.recordCount; r += direction) {
      if ((node === undefined || story.rNode[r] === node) && isStop(story, r, stop)) {
        this.jump(r + 1);
        return true;
      }
    }
    if (direction < 0) this.jump(0);
    return false;
  }

  toggle(): void {
    if (this.playing.value) this.pause();
    else this.play();
  }

  play(): void {
    if (!this.story) return;
    if (this.now >= this.story.recordCount) this.jump(0);
    this.glide = undefined;
    this.last = 0;
    this.frames.length = 0;
    this.draws.length = 0;
    this.playing.value = true;
    this.wake();
  }

  pause(): void {
    this.playing.value = false;
    this.records.value = this.now;
  }

  private wake(): void {
    if (this.frame === 0) this.frame = requestAnimationFrame((now) => this.tick(now));
  }

  private tick(now: number): void {
    this.frame = 0;
    const story = this.story;
    if (story && this.playing.value) {
      const passed = this.last === 0 ? 0 : now - this.last;
      if (this.last !== 0 && this.frames.length < 2000) this.frames.push(passed);
      this.last = now;
      this.time += (Math.min(passed, 100) / UNIT_MS) * this.pace * this.speed.value;
      if (this.time >= story.end) {
        this.time = story.end;
        this.now = story.recordCount;
        this.pause();
      } else {
        const records = story.upTo(this.time);
        if (records > this.now) this.happened(records);
      }
    } else if (this.glide) {
      const { from, to, begun, records } = this.glide;
      const part = Math.min(1, (performance.now() - begun) / STEP_MS);
      const eased = part < 0.5 ? 2 * part * part : 1 - (-2 * part + 2) ** 2 / 2;
      this.time = from + (to - from) * eased;
      if (part >= 1) {
        this.time = to;
        this.glide = undefined;
        this.happened(records);
      }
    }
    const begun = performance.now();
    for (const listener of this.listeners) listener();
    if (this.draws.length < 4000) this.draws.push(performance.now() - begun);
    if (this.playing.value || this.glide) this.wake();
  }
}

/** Is a record one of those? */
export function isStop(story: Story, record: number, stop: Stop): boolean {
  const what = story.rWhat[record]!;
  switch (stop) {
    case "event":
      return true;
    case "entry":
      return begins(story, record, Phase.Inside);
    case "leader":
      return begins(story, record, Phase.Leading);
    case "view":
      return story.entries.some((entry) => entry.by === record);
    case "told":
      return story.rTold[record] !== 0;
    case "fault":
      return (
        what === What.Crash ||
        what === What.Recover ||
        what === What.Pause ||
        what === What.Resume ||
        what === What.Lose
      );
    case "violation":
      return story.broken.some((broken) => broken.record === record);
  }
}

const begun = new WeakMap<Story, Map<number, Set<number>>>();

function begins(story: Story, record: number, phase: Phase): boolean {
  let known = begun.get(story);
  if (!known) {
    known = new Map();
    for (let b = 0; b < story.barCount; b++) {
      const set = known.get(story.bPhase[b]!) ?? new Set();
      set.add(story.bBy[b]!);
      known.set(story.bPhase[b]!, set);
    }
    begun.set(story, known);
  }
  return known.get(phase)?.has(record) ?? false;
}

/** The kinds of stops that a run has. */
export function stops(story: Story): Stop[] {
  const found: Stop[] = ["event"];
  for (const stop of ["entry", "leader", "view", "told", "fault", "violation"] as const) {
    for (let r = 0; r < story.recordCount; r++) {
      if (isStop(story, r, stop)) {
        found.push(stop);
        break;
      }
    }
  }
  return found;
}
