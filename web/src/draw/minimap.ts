// The whole run in a strip: how much was sent when, who entered or led, what went wrong. Dragged, it is
// the time.

import type { Player } from "../model/player";
import { Phase, type Story } from "../model/story";
import { palette, phaseColours } from "./palette";
import { surface } from "./surface";

const PAD = 6;

export class Minimap {
  private story: Story | undefined;
  private width = 0;
  private height = 0;
  private under = document.createElement("canvas");
  private key = "";

  constructor(
    readonly canvas: HTMLCanvasElement,
    private readonly player: Player,
  ) {}

  show(story: Story): void {
    this.story = story;
    this.key = "";
  }

  resize(width: number, height: number): void {
    this.width = width;
    this.height = height;
    this.key = "";
  }

  timeAt(x: number): number {
    const story = this.story;
    if (!story) return 0;
    const part = Math.max(0, Math.min(1, (x - PAD) / Math.max(1, this.width - 2 * PAD)));
    return story.start + part * (story.end - story.start);
  }

  private x(time: number): number {
    const story = this.story!;
    const span = Math.max(1e-9, story.end - story.start);
    return PAD + ((time - story.start) / span) * (this.width - 2 * PAD);
  }

  draw(window: [number, number]): void {
    const story = this.story;
    if (!story || this.width === 0) return;
    const colours = palette();
    const pen = surface(this.canvas, this.width, this.height);
    pen.clearRect(0, 0, this.width, this.height);
    const key = `${this.width}x${this.height} ${colours.dark}`;
    if (this.key !== key) {
      this.key = key;
      this.drawUnder();
    }
    const [x1, x2] = [this.x(Math.max(story.start, window[0])), this.x(Math.min(story.end, window[1]))];
    pen.fillStyle = colours.accent;
    pen.globalAlpha = 0.1;
    pen.beginPath();
    pen.roundRect(x1, 2, Math.max(4, x2 - x1), this.height - 4, 5);
    pen.fill();
    pen.globalAlpha = 1;
    pen.drawImage(this.under, 0, 0, this.width, this.height);
    const x = this.x(this.player.time);
    pen.fillStyle = colours.accent;
    pen.fillRect(x - 1, 1, 2, this.height - 2);
    pen.beginPath();
    pen.arc(x, this.height - 5, 5, 0, 2 * Math.PI);
    pen.fill();
  }

  private drawUnder(): void {
    const story = this.story!;
    const colours = palette();
    const pen = surface(this.under, this.width, this.height);
    pen.clearRect(0, 0, this.width, this.height);
    const bins = Math.max(20, Math.min(400, Math.floor(this.width / 3)));
    const counts = new Float64Array(bins);
    const span = Math.max(1e-9, story.end - story.start);
    for (let a = 0; a < story.arrowCount; a++) {
      const sent = story.aSent[a]!;
      if (Number.isNaN(sent)) continue;
      const bin = Math.min(bins - 1, Math.floor(((sent - story.start) / span) * bins));
      counts[bin]!++;
    }
    const most = Math.max(1, ...counts);
    const base = this.height - 8;
    pen.fillStyle = colours.faint;
    const step = (this.width - 2 * PAD) / bins;
    counts.forEach((count, i) => {
      if (count === 0) return;
      const high = Math.max(1.5, Math.sqrt(count / most) * (base - 8));
      pen.globalAlpha = 0.55;
      pen.fillRect(PAD + i * step, base - high, Math.max(1, step - 1), high);
    });
    pen.globalAlpha = 1;
    pen.fillStyle = colours.line;
    pen.fillRect(PAD, base, this.width - 2 * PAD, 2);
    for (let b = 0; b < story.barCount; b++) {
      const phase = story.bPhase[b]! as Phase;
      if (phase !== Phase.Inside && phase !== Phase.Leading) continue;
      const [fill, edge] = phaseColours(colours, phase);
      const x = this.x(story.bFrom[b]!);
      pen.fillStyle = phase === Phase.Leading ? edge : fill;
      pen.fillRect(x, base - 1, Math.max(1.5, this.x(story.bUntil[b]!) - x), 4);
    }
    pen.fillStyle = colours.bad;
    for (const outage of story.outages) pen.fillRect(this.x(outage.from) - 1, 2, 2, base - 2);
    const bad = story.broken[0];
    if (bad) {
      const x = this.x(story.rAt[bad.record]!);
      pen.globalAlpha = 0.18;
      pen.fillRect(x, 2, this.width - PAD - x, base);
      pen.globalAlpha = 1;
      pen.fillRect(x - 1, 2, 2, base);
    }
  }
}
