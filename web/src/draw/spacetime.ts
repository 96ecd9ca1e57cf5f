// The space-time diagram: a line for each node, time from left to right, messages as slanted arrows.
// Only what can be seen is drawn, so that long runs scroll as well as short ones.

import type { Player } from "../model/player";
import { Fate, Phase, type Story, What } from "../model/story";
import { addShape, kindColour, kindDash, type Palette, palette, phaseColours } from "./palette";
import { surface } from "./surface";
import { cross, FONT, head, type Marks, same, type Target, toSegment } from "./topology";

/** What one can point at here. */
export type Spot = Target | { kind: "record"; record: number };

const AXIS = 26;
const STRIP = 7;
const ROW_MIN = 6.5;
const ROW_MAX = 84;
/** The time of a message is so wide at first. */
const UNIT_PX = 92;
/** With more arrows in sight they have no heads, and with still more they are thinned out. */
const HEADS_MAX = 2_500;
const ARROWS_MAX = 7_000;
const LABELS_MAX = 60;

export class SpaceTimeView {
  private story: Story | undefined;
  private width = 0;
  private height = 0;
  /** The time at the left end. */
  from = 0;
  /** Pixels for a unit of time. */
  scale = 60;
  /** How far it is scrolled down. */
  top = 0;
  private gutter = 46;
  private row = 40;
  private visible: number[] = [];
  /** What does not change from frame to frame, drawn once for more than is in sight. */
  private under = document.createElement("canvas");
  private underKey = "";
  private underFrom = 0;
  private underWidth = 0;
  /** Has the reader moved it away from the cursor? */
  private moved = false;
  marks: Marks & { record?: number; hoveredRecord?: number } = { cuts: [] };

  constructor(
    readonly canvas: HTMLCanvasElement,
    private readonly player: Player,
  ) {}

  show(story: Story): void {
    const before = this.story;
    this.story = story;
    this.measure();
    // After an interference the same stretch of time stays in sight.
    const other = !before || before.nodes !== story.nodes || before.algorithm !== story.algorithm;
    if (other || story.inSteps) this.fit();
  }

  resize(width: number, height: number): void {
    const first = this.width === 0;
    this.width = width;
    this.height = height;
    this.measure();
    if (first) this.fit();
  }

  private measure(): void {
    const story = this.story;
    if (!story) return;
    const longest = Math.max(1, ...story.names.map((name) => name.length));
    this.gutter = story.names.length > 0 ? Math.min(110, 44 + longest * 6.5) : 44;
    const room = this.height - AXIS - STRIP - 8;
    this.row = Math.max(ROW_MIN, Math.min(ROW_MAX, room / Math.max(1, story.nodes)));
    this.top = Math.max(0, Math.min(this.top, this.row * story.nodes - room));
  }

  /** Up to when lines are drawn: beyond the end, where somebody may go on. */
  private get last(): number {
    const story = this.story!;
    return story.inSteps ? story.end + 0.9 * this.player.pace : story.end;
  }

  private get plot(): number {
    return Math.max(10, this.width - this.gutter - 10);
  }

  /** The whole run if it is short, and its beginning otherwise. */
  fit(): void {
    const story = this.story;
    if (!story || this.width === 0) return;
    const span = Math.max(1e-9, this.last - story.start);
    this.scale = Math.max(this.plot / span, UNIT_PX / this.player.pace);
    if (span * this.scale > this.plot * 1.3) this.scale = UNIT_PX / this.player.pace;
    else this.scale = (this.plot - 12) / span;
    this.from = story.start;
    this.moved = false;
  }

  /** All of it, however small it gets. */
  fitAll(): void {
    const story = this.story;
    if (!story) return;
    this.scale = (this.plot - 12) / Math.max(1e-9, this.last - story.start);
    this.from = story.start;
    this.moved = true;
  }

  zoom(factor: number, x = this.width / 2): void {
    const story = this.story;
    if (!story) return;
    const time = this.timeAt(x);
    const least = (this.plot - 12) / Math.max(1e-9, story.end - story.start) / 1.5;
    this.scale = Math.max(least, Math.min((600 / this.player.pace) * 4, this.scale * factor));
    this.from = time - (x - this.gutter) / this.scale;
    this.keep();
    this.moved = true;
  }

  pan(dx: number, dy: number): void {
    this.from -= dx / this.scale;
    this.top -= dy;
    this.moved = true;
    this.keep();
  }

  private keep(): void {
    const story = this.story!;
    const span = this.plot / this.scale;
    this.from = Math.max(story.start, Math.min(this.from, Math.max(story.start, story.end - span * 0.6)));
    const room = this.height - AXIS - STRIP - 8;
    this.top = Math.max(0, Math.min(this.top, this.row * story.nodes - room));
  }

  /** Has the cursor in sight again. */
  follow(): void {
    this.moved = false;
  }

  get window(): [number, number] {
    return [this.from, this.from + this.plot / this.scale];
  }

  x(time: number): number {
    return this.gutter + (time - this.from) * this.scale;
  }

  timeAt(x: number): number {
    return this.from + (x - this.gutter) / this.scale;
  }

  y(node: number): number {
    return AXIS + this.row * (node + 0.5) - this.top;
  }

  /** What is here. */
  at(x: number, y: number): Spot | undefined {
    const story = this.story;
    if (!story || x < this.gutter - 8) {
      if (!story) return undefined;
      const node = Math.floor((y - AXIS + this.top) / this.row);
      return node >= 0 && node < story.nodes && y > AXIS ? { kind: "node", node } : undefined;
    }
    const node = Math.round((y - AXIS + this.top) / this.row - 0.5);
    if (node >= 0 && node < story.nodes && Math.abs(this.y(node) - y) < Math.min(9, this.row / 2.5)) {
      // The record of this node that is nearest, if one is near.
      const records = story.recordsOf(node);
      let best = -1;
      let nearest = 8;
      const time = this.timeAt(x);
      let low = 0;
      let high = records.length;
      while (low < high) {
        const middle = (low + high) >> 1;
        if (story.rAt[records[middle]!]! < time - 8 / this.scale) low = middle + 1;
        else high = middle;
      }
      for (let i = low; i < records.length; i++) {
        const record = records[i]!;
        const distance = Math.abs(this.x(story.rAt[record]!) - x);
        if (story.rAt[record]! > time + 8 / this.scale) break;
        if (distance <= nearest && story.rWhat[record] !== What.Start) {
          nearest = distance;
          best = record;
        }
      }
      if (best >= 0) return { kind: "record", record: best };
    }
    let found: Spot | undefined;
    let nearest = 6;
    for (const arrow of this.visible) {
      const [x1, y1, x2, y2] = this.ends(arrow);
      const distance = toSegment(x, y, [x1, y1], [x2, y2]);
      if (distance < nearest) {
        nearest = distance;
        found = { kind: "message", arrow };
      }
    }
    return found;
  }

  private ends(arrow: number): [number, number, number, number] {
    const story = this.story!;
    const sent = story.aSent[arrow]!;
    const [from, to] = [story.aFrom[arrow]!, story.aTo[arrow]!];
    const open = story.aEndBy[arrow]! < 0;
    const end = open ? Math.min(this.last, sent + this.player.pace * 0.7) : story.aEnd[arrow]!;
    const y2 = open ? this.y(from) + (this.y(to) - this.y(from)) * 0.5 : this.y(to);
    const x1 = Number.isNaN(sent) ? this.x(end) - 20 : this.x(sent);
    return [x1, this.y(from), this.x(end), y2];
  }

  draw(): void {
    const story = this.story;
    if (!story || this.width === 0) return;
    this.keepInSight();
    const colours = palette();
    this.drawUnder(colours);
    const pen = surface(this.canvas, this.width, this.height);
    pen.clearRect(0, 0, this.width, this.height);
    const now = Math.max(this.gutter - 6, Math.min(this.width, this.x(this.player.time)));
    const shift = (this.underFrom - this.from) * this.scale;
    const part = (x1: number, x2: number, alpha: number) => {
      if (x2 <= x1) return;
      pen.save();
      pen.beginPath();
      pen.rect(x1, AXIS, x2 - x1, this.height - AXIS - STRIP - 2);
      pen.clip();
      pen.globalAlpha = alpha;
      pen.drawImage(this.under, this.gutter + shift, 0, this.underWidth, this.height);
      pen.restore();
    };
    // What has not happened yet is pale; but of a cone, past and future are the same.
    part(this.gutter - 6, now, 1);
    part(now, this.width, this.marks.focus ? 1 : 0.27);
    this.drawChosen(pen, colours);
    this.drawAxis(pen, colours);
    this.drawGutter(pen, colours);
    this.drawStrip(pen, colours);
    this.drawCursor(pen, colours);
  }

  /** Draws what does not change from frame to frame, if it is not there already. */
  private drawUnder(colours: Palette): void {
    const { focus, hidden } = this.marks;
    const key = [
      stories.number(this.story!),
      this.scale,
      this.top,
      this.row,
      this.width,
      this.height,
      colours.dark,
      devicePixelRatio,
      focus ? stories.number(focus) : 0,
      hidden ? [...hidden].join() : "",
    ].join(" ");
    const span = this.plot / this.scale;
    const reaches = this.underFrom + this.underWidth / this.scale;
    const covered = this.from >= this.underFrom && this.from + span <= reaches + 1e-9;
    if (this.underKey === key && covered) return;
    this.underKey = key;
    this.underFrom = this.from - span * 0.35;
    this.underWidth = this.plot * 2;
    const pen = surface(this.under, this.underWidth, this.height);
    pen.clearRect(0, 0, this.underWidth, this.height);
    // Drawn as if it were in sight, and wider.
    const { from, width, gutter } = this;
    this.from = this.underFrom;
    this.width = this.underWidth + 10;
    this.gutter = 0;
    this.drawSplits(pen, colours);
    this.drawLines(pen, colours);
    this.drawViews(pen, colours);
    this.drawArrows(pen, colours);
    this.drawMarks(pen, colours);
    this.from = from;
    this.width = width;
    this.gutter = gutter;
  }

  private keepInSight(): void {
    const story = this.story!;
    if (this.moved && !this.player.playing.peek()) return;
    if (this.player.playing.peek()) this.moved = false;
    const span = this.plot / this.scale;
    if (story.end - story.start <= span) return;
    const place = (this.player.time - this.from) / span;
    if (this.player.playing.peek()) {
      if (place > 0.62) this.from = this.player.time - 0.62 * span;
      else if (place < 0) this.from = this.player.time - 0.1 * span;
    } else if (place < 0.03 || place > 0.94) {
      this.from = this.player.time - 0.45 * span;
    }
    this.keep();
  }

  private drawSplits(pen: CanvasRenderingContext2D, colours: Palette): void {
    for (const split of this.story!.splits) {
      const [x1, x2] = [this.x(split.from), this.x(split.until ?? this.story!.end)];
      pen.fillStyle = colours.bad;
      pen.globalAlpha = 0.07;
      pen.fillRect(x1, AXIS, x2 - x1, this.height);
      pen.globalAlpha = 1;
      pen.fillStyle = colours.bad;
      pen.font = `500 11px ${FONT}`;
      pen.textBaseline = "top";
      pen.fillText(`cut ${split.text}`, Math.max(this.gutter, x1) + 4, AXIS + 3);
    }
  }

  private drawLines(pen: CanvasRenderingContext2D, colours: Palette): void {
    const story = this.story!;
    const [left, right] = [this.x(Math.max(this.from, story.start)), this.x(this.last)];
    const half = Math.max(2.5, Math.min(7, this.row * 0.16));
    pen.lineWidth = 1.2;
    pen.strokeStyle = colours.faint;
    pen.beginPath();
    for (let node = 0; node < story.nodes; node++) {
      const y = this.y(node);
      if (y < 0 || y > this.height) continue;
      pen.moveTo(left, y);
      pen.lineTo(Math.min(right, this.width), y);
    }
    pen.stroke();
    for (const outage of story.outages) {
      const [x1, x2] = [this.x(outage.from), this.x(outage.until ?? story.end)];
      const y = this.y(outage.node);
      pen.fillStyle = colours.panel;
      pen.fillRect(x1, y - 2, x2 - x1, 4);
      pen.strokeStyle = colours.faint;
      pen.setLineDash([1, 5]);
      pen.beginPath();
      pen.moveTo(x1, y);
      pen.lineTo(x2, y);
      pen.stroke();
      pen.setLineDash([]);
    }
    const [from, until] = this.window;
    for (let b = 0; b < story.barCount; b++) {
      if (story.bFrom[b]! > until || story.bUntil[b]! < from) continue;
      const y = this.y(story.bNode[b]!);
      if (y < -20 || y > this.height + 20) continue;
      const phase = story.bPhase[b]! as Phase;
      const [fill, edge] = phaseColours(colours, phase);
      const [x1, x2] = [this.x(story.bFrom[b]!), this.x(story.bUntil[b]!)];
      const thick = phase === Phase.Inside || phase === Phase.Leading ? half : half * 0.72;
      bar(pen, x1, y - thick, Math.max(3, x2 - x1), thick * 2, Math.min(thick, 4));
      pen.fillStyle = fill;
      pen.fill();
      pen.strokeStyle = edge;
      pen.lineWidth = 1;
      if (phase === Phase.Still) pen.setLineDash([2, 2]);
      pen.stroke();
      pen.setLineDash([]);
    }
  }

  private drawViews(pen: CanvasRenderingContext2D, colours: Palette): void {
    const story = this.story!;
    const byView = new Map<number, { x: number; y: number }[]>();
    for (const entry of story.entries) {
      const list = byView.get(entry.view) ?? [];
      list.push({ x: this.x(entry.at), y: this.y(entry.node) });
      byView.set(entry.view, list);
    }
    pen.strokeStyle = colours.member[1];
    pen.fillStyle = colours.member[1];
    pen.lineWidth = 1.6;
    pen.font = `600 11px ${FONT}`;
    pen.textBaseline = "bottom";
    for (const [view, list] of byView) {
      list.sort((a, b) => a.y - b.y);
      pen.beginPath();
      list.forEach(({ x, y }, i) => (i === 0 ? pen.moveTo(x, y - 9) : pen.lineTo(x, y)));
      const last = list[list.length - 1]!;
      pen.lineTo(last.x, last.y + 9);
      pen.setLineDash([4, 3]);
      pen.stroke();
      pen.setLineDash([]);
      const first = list[0]!;
      pen.fillText(`view ${view}`, first.x + 4, first.y - 6);
    }
  }

  private drawArrows(pen: CanvasRenderingContext2D, colours: Palette): void {
    const story = this.story!;
    const [from, until] = this.window;
    let visible: number[] = [];
    story.between(from, until, (arrow) => {
      if (this.marks.hidden?.has(story.aKind[arrow]!)) return;
      const [y1, y2] = [this.y(story.aFrom[arrow]!), this.y(story.aTo[arrow]!)];
      if (Math.max(y1, y2) < AXIS || Math.min(y1, y2) > this.height) return;
      visible.push(arrow);
    });
    const total = visible.length;
    if (total > ARROWS_MAX) {
      const every = total / ARROWS_MAX;
      visible = Array.from({ length: ARROWS_MAX }, (_, i) => visible[Math.floor(i * every)]!);
    }
    this.visible = visible;
    const crowded = total > HEADS_MAX;
    const focus = this.marks.focus;
    const groups = new Map<number, number[]>();
    for (const arrow of visible) {
      const kind = story.aKind[arrow]!;
      const list = groups.get(kind);
      if (list) list.push(arrow);
      else groups.set(kind, [arrow]);
    }
    const width = crowded ? 0.6 : this.row < 22 ? 1 : 1.4;
    const strong = crowded ? Math.max(0.12, 0.7 * (HEADS_MAX / total)) : 0.92;
    const pass = (alpha: number, inFocus: boolean | undefined) => {
      for (const [kind, list] of groups) {
        const colour = kindColour(colours, kind);
        pen.strokeStyle = colour;
        pen.fillStyle = colour;
        pen.lineWidth = width;
        pen.globalAlpha = alpha;
        const dash = kindDash(kind);
        const lines = new Path2D();
        const open = new Path2D();
        const heads = new Path2D();
        for (const arrow of list) {
          if (focus && inFocus !== undefined && isFocused(story, focus, arrow) !== inFocus) continue;
          const [x1, y1, x2, y2] = this.ends(arrow);
          const isOpen = story.aFate[arrow] === Fate.InFlight;
          const line = isOpen ? open : lines;
          if (story.aFrom[arrow] === story.aTo[arrow]) {
            line.moveTo(x1, y1);
            line.quadraticCurveTo((x1 + x2) / 2, y1 - 22, x2, y2);
            continue;
          }
          line.moveTo(x1, y1);
          line.lineTo(x2, y2);
          if (!crowded && !isOpen) {
            const size = this.row < 22 ? 5 : 7;
            const angle = Math.atan2(y2 - y1, x2 - x1);
            if (story.aFate[arrow] === Fate.Received) {
              addHead(heads, x2, y2, angle, size);
              // A further copy has a second head.
              if (story.aCopy[arrow]! >= 0) {
                addHead(heads, x2 - 8 * Math.cos(angle), y2 - 8 * Math.sin(angle), angle, size);
              }
            }
          }
        }
        pen.setLineDash(dash);
        pen.stroke(lines);
        pen.setLineDash([3, 4]);
        pen.stroke(open);
        pen.setLineDash([]);
        if (!crowded) pen.fill(heads);
        pen.globalAlpha = 1;
      }
      if (crowded) return;
      pen.globalAlpha = Math.min(1, alpha * 1.2);
      for (const arrow of visible) {
        if (story.aFate[arrow] !== Fate.Lost) continue;
        if (focus && inFocus !== undefined && isFocused(story, focus, arrow) !== inFocus) continue;
        const [x1, y1, x2, y2] = this.ends(arrow);
        // The cross stands before the line of the receiver, where nothing arrives.
        const part = 1 - Math.min(0.25, 12 / Math.max(1, Math.hypot(x2 - x1, y2 - y1)));
        cross(pen, x1 + (x2 - x1) * part, y1 + (y2 - y1) * part, 4.5, colours.bad, 2);
      }
      pen.globalAlpha = 1;
    };
    if (focus) pass(0.08, false);
    pass(strong, focus ? true : undefined);
    if (!crowded && visible.length <= LABELS_MAX && this.row >= 24) this.drawLabels(pen, colours);
  }

  /** What is selected or pointed at. */
  private drawChosen(pen: CanvasRenderingContext2D, colours: Palette): void {
    const story = this.story!;
    pen.save();
    pen.beginPath();
    pen.rect(this.gutter - 6, AXIS, this.width, this.height - AXIS - STRIP - 2);
    pen.clip();
    for (const target of [this.marks.hovered, this.marks.selected]) {
      if (target?.kind !== "message" || target.arrow >= story.arrowCount) continue;
      const [x1, y1, x2, y2] = this.ends(target.arrow);
      pen.strokeStyle = kindColour(colours, story.aKind[target.arrow]!);
      pen.lineWidth = 3;
      pen.beginPath();
      pen.moveTo(x1, y1);
      pen.lineTo(x2, y2);
      pen.stroke();
      pen.fillStyle = pen.strokeStyle;
      head(pen, x2, y2, Math.atan2(y2 - y1, x2 - x1), 10);
    }
    for (const broken of story.broken) {
      const [x, y] = [this.x(story.rAt[broken.record]!), this.y(story.rNode[broken.record]!)];
      pen.strokeStyle = colours.bad;
      pen.lineWidth = 1.5;
      pen.setLineDash([6, 4]);
      pen.beginPath();
      pen.moveTo(x, AXIS);
      pen.lineTo(x, this.height);
      pen.stroke();
      pen.setLineDash([]);
      pen.beginPath();
      pen.arc(x, y, 8, 0, 2 * Math.PI);
      pen.lineWidth = 2.5;
      pen.stroke();
    }
    for (const record of [this.marks.hoveredRecord, this.marks.record]) {
      if (record === undefined || record >= story.recordCount) continue;
      pen.strokeStyle = colours.accent;
      pen.lineWidth = 2.5;
      pen.beginPath();
      pen.arc(this.x(story.rAt[record]!), this.y(story.rNode[record]!), 9, 0, 2 * Math.PI);
      pen.stroke();
    }
    pen.restore();
  }

  private drawLabels(pen: CanvasRenderingContext2D, colours: Palette): void {
    const story = this.story!;
    pen.font = `500 11px ${FONT}`;
    pen.textBaseline = "bottom";
    pen.textAlign = "center";
    const taken: [number, number, number][] = [];
    for (const arrow of this.visible) {
      if (story.aCopy[arrow]! >= 0 || story.aFrom[arrow] === story.aTo[arrow]) continue;
      const [x1, y1, x2, y2] = this.ends(arrow);
      const text = story.shortMessage(arrow);
      const width = pen.measureText(text).width;
      const length = Math.hypot(x2 - x1, y2 - y1);
      if (length < width + 26) continue;
      for (const part of [0.42, 0.3, 0.56, 0.68]) {
        const [x, y] = [x1 + (x2 - x1) * part, y1 + (y2 - y1) * part];
        const near = Math.round((y - AXIS + this.top) / this.row - 0.5);
        if (Math.abs(this.y(near) - y) < 9) continue;
        const clash = taken.some(([tx, ty, tw]) => Math.hypot(tx - x, (ty - y) * 1.6) < (tw + width) / 2 + 3);
        if (clash) continue;
        taken.push([x, y, width]);
        let angle = Math.atan2(y2 - y1, x2 - x1);
        if (angle > Math.PI / 2) angle -= Math.PI;
        if (angle < -Math.PI / 2) angle += Math.PI;
        pen.save();
        pen.translate(x, y);
        pen.rotate(angle);
        pen.lineWidth = 3.5;
        pen.lineJoin = "round";
        pen.strokeStyle = colours.panel;
        pen.strokeText(text, 0, -2);
        pen.fillStyle = kindColour(colours, story.aKind[arrow]!);
        pen.fillText(text, 0, -2);
        pen.restore();
        break;
      }
    }
    pen.textAlign = "start";
    pen.globalAlpha = 1;
  }

  private drawMarks(pen: CanvasRenderingContext2D, colours: Palette): void {
    const story = this.story!;
    const [from, until] = this.window;
    const first = Math.max(0, story.upTo(from - 1e-9));
    const last = story.upTo(until);
    const crowded = last - first > 3_000;
    for (let r = first; r < last; r++) {
      const what = story.rWhat[r]!;
      if (crowded && what !== What.Crash && what !== What.Recover) continue;
      if (what === What.Receive && story.rTold[r] === 0) continue;
      if (what === What.Start || what === What.Lose) continue;
      const [x, y] = [this.x(story.rAt[r]!), this.y(story.rNode[r]!)];
      if (y < AXIS - 10 || y > this.height) continue;
      pen.globalAlpha = this.marks.focus && !this.marks.focus[r] ? 0.12 : 1;
      mark(pen, colours, what, x, y, story.rTold[r] !== 0);
    }
    pen.globalAlpha = 1;
  }

  private drawAxis(pen: CanvasRenderingContext2D, colours: Palette): void {
    const story = this.story!;
    const step = tick(86 / this.scale);
    const [from, until] = this.window;
    pen.font = `500 11px ${FONT}`;
    pen.fillStyle = colours.soft;
    pen.strokeStyle = colours.line;
    pen.textBaseline = "middle";
    pen.textAlign = "center";
    pen.lineWidth = 1;
    for (let time = Math.ceil(from / step) * step; time <= Math.min(until, story.end) + 1e-9; time += step) {
      const x = this.x(time);
      if (x < this.gutter - 4) continue;
      pen.fillText(shortTime(time), x, AXIS / 2);
      pen.beginPath();
      pen.moveTo(x, AXIS - 4);
      pen.lineTo(x, AXIS);
      pen.stroke();
    }
    pen.textAlign = "start";
  }

  private drawGutter(pen: CanvasRenderingContext2D, colours: Palette): void {
    const story = this.story!;
    const size = Math.max(10, Math.min(13, this.row * 0.72));
    pen.textBaseline = "middle";
    pen.textAlign = "right";
    const records = this.player.now;
    // Where lines are close together, every second or fifth one has its name.
    const every = [1, 2, 5, 10].find((step) => step * this.row >= 11) ?? 20;
    for (let node = 0; node < story.nodes; node++) {
      const y = this.y(node);
      if (y < AXIS || y > this.height - STRIP || (every > 1 && (node + 1) % every !== 0)) continue;
      const chosen =
        same(this.marks.selected, { kind: "node", node }) ||
        same(this.marks.hovered, { kind: "node", node });
      const down = story.outages.some(
        (it) => it.node === node && it.by < records && (it.end_by === null || it.end_by >= records),
      );
      pen.font = `600 ${size}px ${FONT}`;
      pen.fillStyle = chosen ? colours.accent : down ? colours.bad : colours.ink;
      pen.fillText(story.name(node), this.gutter - 12, y);
    }
    pen.textAlign = "start";
  }

  /** Green as long as everything holds, red from the first bad event on. */
  private drawStrip(pen: CanvasRenderingContext2D, colours: Palette): void {
    const story = this.story!;
    const y = this.height - STRIP;
    const [left, right] = [Math.max(this.gutter, this.x(story.start)), this.x(story.end)];
    const bad = story.broken[0];
    const limit = bad ? this.x(story.rAt[bad.record]!) : right;
    const now = this.x(this.player.time);
    const stretch = (x1: number, x2: number, colour: string) => {
      const [a, b] = [Math.max(this.gutter, x1), Math.min(this.width - 4, x2)];
      if (b <= a) return;
      pen.fillStyle = colour;
      pen.globalAlpha = 0.25;
      pen.fillRect(a, y, b - a, STRIP - 3);
      pen.globalAlpha = 0.9;
      pen.fillRect(a, y, Math.max(0, Math.min(b, now) - a), STRIP - 3);
      pen.globalAlpha = 1;
    };
    stretch(left, limit, colours.good);
    if (bad) stretch(limit, Math.max(right, limit + 6), colours.bad);
  }

  private drawCursor(pen: CanvasRenderingContext2D, colours: Palette): void {
    const x = this.x(this.player.time);
    if (x < this.gutter - 4 || x > this.width) return;
    pen.strokeStyle = colours.accent;
    pen.lineWidth = 1.5;
    pen.beginPath();
    pen.moveTo(x, AXIS - 2);
    pen.lineTo(x, this.height);
    pen.stroke();
    const text = shortTime(this.player.time, true);
    pen.font = `600 11px ${FONT}`;
    const width = pen.measureText(text).width + 12;
    const left = Math.max(2, Math.min(this.width - width - 2, x - width / 2));
    bar(pen, left, 4, width, 18, 9);
    pen.fillStyle = colours.accent;
    pen.fill();
    pen.fillStyle = colours.paper;
    pen.textBaseline = "middle";
    pen.fillText(text, left + 6, 13.5);
  }
}

/** Numbers things, so that they can be told apart by a text. */
const stories = {
  known: new WeakMap<object, number>(),
  count: 0,
  number(thing: object): number {
    let number = this.known.get(thing);
    if (number === undefined) {
      number = ++this.count;
      this.known.set(thing, number);
    }
    return number;
  },
};

function isFocused(story: Story, focus: Uint8Array, arrow: number): boolean {
  const [sent, end] = [story.aSentBy[arrow]!, story.aEndBy[arrow]!];
  return sent >= 0 && end >= 0 && focus[sent] === 1 && focus[end] === 1;
}

function addHead(path: Path2D, x: number, y: number, angle: number, size: number): void {
  path.moveTo(x, y);
  path.lineTo(x - size * Math.cos(angle - 0.36), y - size * Math.sin(angle - 0.36));
  path.lineTo(x - size * Math.cos(angle + 0.36), y - size * Math.sin(angle + 0.36));
  path.closePath();
}

function bar(pen: CanvasRenderingContext2D, x: number, y: number, w: number, h: number, r: number): void {
  pen.beginPath();
  pen.roundRect(x, y, w, h, Math.min(r, w / 2, h / 2));
}

function mark(
  pen: CanvasRenderingContext2D,
  colours: Palette,
  what: number,
  x: number,
  y: number,
  told: boolean,
): void {
  switch (what) {
    case What.Crash:
      cross(pen, x, y, 6, colours.bad, 2.5);
      return;
    case What.Recover:
      pen.fillStyle = colours.good;
      pen.beginPath();
      addShape(pen, "triangle", x, y, 6);
      pen.fill();
      return;
    case What.Pause:
    case What.Resume:
      pen.fillStyle = colours.ink;
      pen.fillRect(x - 4, y - 6, 3, 12);
      pen.fillRect(x + 1, y - 6, 3, 12);
      return;
    case What.Timer:
      pen.strokeStyle = colours.soft;
      pen.fillStyle = colours.panel;
      pen.lineWidth = 1.4;
      pen.beginPath();
      pen.arc(x, y, 4.5, 0, 2 * Math.PI);
      pen.fill();
      pen.stroke();
      pen.beginPath();
      pen.moveTo(x, y - 3);
      pen.lineTo(x, y);
      pen.lineTo(x + 2.5, y);
      pen.stroke();
      break;
    case What.Liveness:
      pen.fillStyle = colours.suspect;
      pen.beginPath();
      addShape(pen, "diamond", x, y, 4);
      pen.fill();
      break;
    case What.Command:
    case What.Refused:
      pen.fillStyle = what === What.Refused ? colours.bad : colours.soft;
      pen.beginPath();
      pen.moveTo(x, y - 4);
      pen.lineTo(x - 4, y - 11);
      pen.lineTo(x + 4, y - 11);
      pen.closePath();
      pen.fill();
      break;
  }
  if (told) {
    pen.fillStyle = colours.ink;
    pen.strokeStyle = colours.panel;
    pen.lineWidth = 1.5;
    pen.beginPath();
    pen.arc(x, y, 3.6, 0, 2 * Math.PI);
    pen.fill();
    pen.stroke();
  }
}

/** The next round number: 1, 2 or 5 with as many zeros as it takes. */
export function tick(atLeast: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(1e-9, atLeast)));
  for (const factor of [1, 2, 5, 10]) if (factor * power >= atLeast) return factor * power;
  return 10 * power;
}

export function shortTime(time: number, fine = false): string {
  const digits = fine ? (Math.abs(time) >= 100 ? 1 : 2) : 3;
  return String(Math.round(time * 10 ** digits) / 10 ** digits);
}
