// The nodes, the links between them, and the messages on their way.

import type { Player } from "../model/player";
import { type Doing, Fate, Phase, type Story } from "../model/story";
import { Crowd } from "./crowd";
import { type Point, places } from "./layout";
import { addShape, kindColour, kindShape, type Palette, palette, phaseColours } from "./palette";
import { surface } from "./surface";

/** What one can point at. */
export type Target =
  | { kind: "node"; node: number }
  | { kind: "message"; arrow: number }
  | { kind: "link"; from: number; to: number };

export function same(a: Target | undefined, b: Target | undefined): boolean {
  if (!a || !b || a.kind !== b.kind) return a === b;
  if (a.kind === "node") return a.node === (b as typeof a).node;
  if (a.kind === "message") return a.arrow === (b as typeof a).arrow;
  return a.from === (b as typeof a).from && a.to === (b as typeof a).to;
}

/** With more messages under way, none is labelled. */
const LABELS_MAX = 10;
/** With more messages under way, none leaves a trail. */
const TRAILS_MAX = 160;
/** With more messages under way, they are a crowd. */
const CROWD_MIN = 120;

interface Flight {
  arrow: number;
  x: number;
  y: number;
  fx: number;
  fy: number;
  part: number;
}

export interface Marks {
  selected?: Target;
  hovered?: Target;
  /** Links that are cut, as pairs of nodes. */
  cuts: [number, number][];
  /** Arrows that can be delivered next, where somebody schedules. */
  choices?: Set<string>;
  /** Is this record part of what is looked at? */
  focus?: Uint8Array;
  /** Kinds of messages that are not shown. */
  hidden?: ReadonlySet<number>;
}

export class TopologyView {
  private story: Story | undefined;
  private spots: Point[] = [];
  private points: Point[] = [];
  private radius = 20;
  private width = 0;
  private height = 0;
  private inset = 0;
  private edges = document.createElement("canvas");
  private edgesKey = "";
  private doings: Doing[] = [];
  private doingsAt = -1;
  private flights: Flight[] = [];
  private readonly crowd = new Crowd();
  marks: Marks = { cuts: [] };

  constructor(
    readonly canvas: HTMLCanvasElement,
    private readonly player: Player,
  ) {}

  show(story: Story): void {
    if (this.story !== story) {
      const other =
        !this.story ||
        this.story.nodes !== story.nodes ||
        this.story.shape !== story.shape ||
        this.story.topology !== story.topology ||
        JSON.stringify(this.story.links) !== JSON.stringify(story.links);
      this.story = story;
      if (other) this.spots = places(story);
      this.doingsAt = -1;
      this.edgesKey = "";
      this.place();
    }
  }

  resize(width: number, height: number): void {
    this.width = width;
    this.height = height;
    this.edgesKey = "";
    this.place();
  }

  /** Leaves so much free above: something else stands there. */
  leave(inset: number): void {
    if (this.inset === inset) return;
    this.inset = inset;
    this.edgesKey = "";
    this.place();
  }

  /** Do nodes stand on a circle? */
  private get round(): boolean {
    return ["complete", "ring", "unknown"].includes(this.story?.shape ?? "");
  }

  private place(): void {
    const story = this.story;
    if (!story || this.width === 0) return;
    const { width, height } = this;
    const named = story.names.length > 0;
    // As large as they can be with room between them.
    const { round } = this;
    const room = Math.min(width, height - this.inset) / 2 - 34;
    const apart = round
      ? 2 * room * Math.sin(Math.PI / Math.max(2, story.nodes))
      : Math.sqrt((width * height) / Math.max(1, story.nodes)) * 0.62;
    this.radius = Math.max(4, Math.min(24, apart * 0.34));
    const margin = this.radius + (named ? 22 : 14);
    const [w, h] = [width - 2 * margin - (named && round ? 24 : 0), height - 2 * margin - this.inset];
    const middle = (height + this.inset) / 2;
    if (round) {
      // What they take of a circle is in the middle: three of them leave some of it empty.
      const [[left, right], [top, bottom]] = [0, 1].map((axis) => {
        const along = this.spots.map((spot) => spot[axis]!);
        return [Math.min(...along), Math.max(...along)] as const;
      }) as [readonly [number, number], readonly [number, number]];
      const [across, down] = [Math.max(0.1, right - left), Math.max(0.1, bottom - top)];
      const r = Math.max(1, Math.min(w / across, h / down, 1.2 * h));
      // A little wider than high where there is room, as eyes see it.
      const stretch = Math.min(w / (r * across), 1.35);
      this.points = this.spots.map(([x, y]) => [
        width / 2 + (x - (left + right) / 2) * r * stretch,
        middle + (y - (top + bottom) / 2) * r,
      ]);
    } else {
      const wide = Math.min(w, h * 2.2);
      const left = (width - wide) / 2;
      this.points = this.spots.map(([x, y]) => [left + x * wide, middle + (y - 0.5) * h]);
    }
  }

  /** Where a node stands, for what is put beside it. */
  spot(node: number): Point {
    return this.points[node] ?? [0, 0];
  }

  get nodeRadius(): number {
    return this.radius;
  }

  where(target: Target): Point | undefined {
    switch (target.kind) {
      case "node":
        return this.points[target.node];
      case "message": {
        const flight = this.flights.find((flight) => flight.arrow === target.arrow);
        return flight ? [flight.x, flight.y] : undefined;
      }
      case "link": {
        const [a, b] = [this.points[target.from], this.points[target.to]];
        return a && b ? [(a[0] + b[0]) / 2, (a[1] + b[1]) / 2] : undefined;
      }
    }
  }

  /** What is here. */
  at(x: number, y: number, reach = 12): Target | undefined {
    const story = this.story;
    if (!story) return undefined;
    let best: Target | undefined;
    let nearest = reach;
    for (const flight of this.flights) {
      const distance = Math.hypot(flight.x - x, flight.y - y);
      if (distance < nearest) {
        nearest = distance;
        best = { kind: "message", arrow: flight.arrow };
      }
    }
    if (best) return best;
    nearest = this.radius + 6;
    this.points.forEach(([px, py], node) => {
      const distance = Math.hypot(px - x, py - y);
      if (distance < nearest) {
        nearest = distance;
        best = { kind: "node", node };
      }
    });
    if (best) return best;
    nearest = Math.min(7, reach);
    this.eachLink((from, to) => {
      const distance = toSegment(x, y, this.points[from]!, this.points[to]!);
      if (distance < nearest) {
        nearest = distance;
        best = { kind: "link", from, to };
      }
    });
    return best;
  }

  private eachLink(visit: (from: number, to: number) => void): void {
    const story = this.story!;
    if (story.links) {
      const seen = new Set<number>();
      for (const [a, b] of story.links) {
        const key = Math.min(a, b) * story.nodes + Math.max(a, b);
        if (seen.has(key)) continue;
        seen.add(key);
        visit(a, b);
      }
    } else if (story.shape === "complete" && story.nodes <= 120) {
      for (let a = 0; a < story.nodes; a++) for (let b = a + 1; b < story.nodes; b++) visit(a, b);
    }
  }

  draw(): void {
    const story = this.story;
    if (!story || this.width === 0) return;
    const colours = palette();
    const pen = surface(this.canvas, this.width, this.height);
    pen.clearRect(0, 0, this.width, this.height);
    this.drawEdges(pen, colours);
    this.drawCuts(pen, colours);
    this.findFlights();
    this.drawFlights(pen, colours);
    const records = this.player.now;
    if (this.doingsAt !== records) {
      this.doingsAt = records;
      this.doings = Array.from({ length: story.nodes }, (_, node) => story.doing(node, records));
    }
    for (let node = 0; node < story.nodes; node++) this.drawNode(pen, colours, node);
    this.drawLabels(pen, colours);
  }

  /** How large a message is drawn. */
  private get parcel(): number {
    return Math.max(2.6, Math.min(7, this.radius * 0.32));
  }

  private drawEdges(pen: CanvasRenderingContext2D, colours: Palette): void {
    const story = this.story!;
    const key = `${this.width}x${this.height} ${colours.dark} ${devicePixelRatio}`;
    if (this.edgesKey !== key) {
      this.edgesKey = key;
      const under = surface(this.edges, this.width, this.height);
      under.clearRect(0, 0, this.width, this.height);
      under.strokeStyle = colours.faint;
      under.globalAlpha = story.links ? 0.55 : Math.max(0.07, 0.5 / Math.sqrt(story.nodes));
      under.lineWidth = 1;
      under.beginPath();
      this.eachLink((from, to) => {
        const [a, b] = [this.points[from]!, this.points[to]!];
        under.moveTo(a[0], a[1]);
        under.lineTo(b[0], b[1]);
      });
      under.stroke();
      // Where messages go in one direction only, the link says which.
      if (story.links && !story.twoWay && story.nodes <= 60) {
        under.globalAlpha = 0.7;
        under.fillStyle = colours.faint;
        for (const [from, to] of story.links) {
          const [a, b] = [this.points[from]!, this.points[to]!];
          const angle = Math.atan2(b[1] - a[1], b[0] - a[0]);
          const gap = this.radius + 4;
          head(under, b[0] - gap * Math.cos(angle), b[1] - gap * Math.sin(angle), angle, 6);
        }
      }
      under.globalAlpha = 1;
    }
    pen.drawImage(this.edges, 0, 0, this.width, this.height);
    const chosen = [this.marks.hovered, this.marks.selected];
    for (const target of chosen) {
      if (target?.kind !== "link") continue;
      const [a, b] = [this.points[target.from]!, this.points[target.to]!];
      pen.strokeStyle = colours.accent;
      pen.lineWidth = 2.5;
      pen.beginPath();
      pen.moveTo(a[0], a[1]);
      pen.lineTo(b[0], b[1]);
      pen.stroke();
    }
  }

  private drawCuts(pen: CanvasRenderingContext2D, colours: Palette): void {
    for (const [from, to] of this.marks.cuts) {
      const [a, b] = [this.points[from], this.points[to]];
      if (!a || !b) continue;
      pen.strokeStyle = colours.bad;
      pen.lineWidth = 2;
      pen.setLineDash([5, 5]);
      pen.beginPath();
      pen.moveTo(a[0], a[1]);
      pen.lineTo(b[0], b[1]);
      pen.stroke();
      pen.setLineDash([]);
      cross(pen, (a[0] + b[0]) / 2, (a[1] + b[1]) / 2, 6, colours.bad, 2.5);
    }
  }

  /** Where the messages are that are under way. */
  private findFlights(): void {
    const story = this.story!;
    const time = this.player.time;
    const flights: Flight[] = [];
    const waiting = new Map<number, number>();
    story.inFlight(this.player.now, (arrow) => {
      if (this.marks.hidden?.has(story.aKind[arrow]!)) return;
      const [from, to] = [story.aFrom[arrow]!, story.aTo[arrow]!];
      const sent = story.aSent[arrow]!;
      const end = story.aEndBy[arrow]! < 0 ? Infinity : story.aEnd[arrow]!;
      let part = end > sent ? (time - sent) / (end - sent) : 1;
      if (end === Infinity) {
        // What never arrives in this run waits beyond the middle, one behind the other.
        const link = from * story.nodes + to;
        const before = waiting.get(link) ?? 0;
        waiting.set(link, before + 1);
        const far = Math.max(0.2, 0.64 - 0.12 * before);
        part = far * (0.5 + 0.5 * Math.min(1, (time - sent) / this.player.pace));
      }
      const [a, b] = [this.points[from]!, this.points[to]!];
      const [dx, dy] = [b[0] - a[0], b[1] - a[1]];
      const length = Math.max(1, Math.hypot(dx, dy));
      const gap = Math.min(length / 2, this.radius + this.parcel + 1);
      const along = gap + (length - 2 * gap) * Math.max(0, Math.min(1, part));
      // Each direction on its own side, and what can be picked beside what comes towards it.
      const side = this.marks.choices ? this.parcel + 6 : Math.min(5, this.radius * 0.3);
      const [ox, oy] = [(-dy / length) * side, (dx / length) * side];
      if (from === to) {
        flights.push({ arrow, x: a[0], y: a[1] - this.radius - 10, fx: a[0], fy: a[1], part });
        return;
      }
      flights.push({
        arrow,
        x: a[0] + (dx / length) * along + ox,
        y: a[1] + (dy / length) * along + oy,
        fx: a[0] + (dx / length) * gap + ox,
        fy: a[1] + (dy / length) * gap + oy,
        part,
      });
    });
    this.flights = flights;
  }

  private drawFlights(pen: CanvasRenderingContext2D, colours: Palette): void {
    const story = this.story!;
    const { flights } = this;
    const size = this.parcel;
    if (flights.length <= TRAILS_MAX) {
      pen.lineWidth = 1.5;
      pen.globalAlpha = 0.4;
      for (const flight of flights) {
        pen.strokeStyle = kindColour(colours, story.aKind[flight.arrow]!);
        pen.beginPath();
        pen.moveTo(flight.fx, flight.fy);
        pen.lineTo(flight.x, flight.y);
        pen.stroke();
      }
      pen.globalAlpha = 1;
    }
    const isCrowd = flights.length > CROWD_MIN;
    if (isCrowd) this.crowd.draw(pen, flights, this.points, size, colours, (flight) => story.aKind[flight.arrow]!);
    const byKind = new Map<number, Flight[]>();
    for (const flight of isCrowd ? [] : flights) {
      const kind = story.aKind[flight.arrow]!;
      const list = byKind.get(kind);
      if (list) list.push(flight);
      else byKind.set(kind, [flight]);
    }
    for (const [kind, list] of byKind) {
      const shape = kindShape(kind);
      pen.fillStyle = kindColour(colours, kind);
      pen.strokeStyle = colours.panel;
      pen.lineWidth = size > 4 ? 1.5 : 0.8;
      pen.beginPath();
      for (const flight of list) addShape(pen, shape, flight.x, flight.y, size);
      pen.fill();
      pen.stroke();
    }
    const marked = this.marks.selected?.kind === "message" || this.marks.hovered?.kind === "message";
    const lossy = flights.length <= 400 || marked;
    for (const flight of lossy || this.marks.choices ? flights : []) {
      const { arrow } = flight;
      if (story.aFate[arrow] === Fate.Lost && flight.part > 0.7) {
        cross(pen, flight.x, flight.y, size + 3, colours.bad, 2);
      }
      const target: Target = { kind: "message", arrow };
      const key = `${story.aFrom[arrow]}.${story.aId[arrow]}-${story.aTo[arrow]}`;
      if (same(this.marks.selected, target) || same(this.marks.hovered, target)) {
        ring(pen, flight.x, flight.y, size + 5, colours.accent, 2.5);
      } else if (this.marks.choices?.has(key)) {
        ring(pen, flight.x, flight.y, size + 4, colours.ink, 1.5);
      }
    }
  }

  /** What the messages say, where it covers no node and no other label. */
  private drawLabels(pen: CanvasRenderingContext2D, colours: Palette): void {
    const story = this.story!;
    const { flights } = this;
    if (flights.length > LABELS_MAX || this.radius < 10) return;
    const size = this.parcel;
    const named = story.names.length > 0;
    pen.font = `500 12px ${FONT}`;
    pen.textBaseline = "middle";
    const taken: [x: number, y: number, width: number][] = [];
    for (const flight of flights) {
      const text = story.shortMessage(flight.arrow);
      const width = pen.measureText(text).width;
      const places: Point[] = [
        [flight.x + size + 6, flight.y],
        [flight.x - size - 6 - width, flight.y],
        [flight.x - width / 2, flight.y - size - 10],
        [flight.x - width / 2, flight.y + size + 10],
      ];
      const free = places.find(([x, y]) => {
        if (x < 4 || x + width > this.width - 4 || y < 10 || y > this.height - 10) return false;
        const onLabel = taken.some(
          ([tx, ty, tw]) => Math.abs(ty - y) < 15 && x < tx + tw + 4 && tx < x + width + 4,
        );
        const onNode = this.points.some(([nx, ny]) => {
          const near = Math.max(x - 3, Math.min(x + width + 3, nx));
          return Math.hypot(near - nx, y - ny) < this.radius + 7;
        });
        const onName =
          named &&
          this.points.some((_, node) => {
            const [nx, ny] = this.nameSpot(node);
            return Math.abs(y - ny) < 13 && x < nx + 24 && x + width > nx - 24;
          });
        if (onName) return false;
        const onOther = flights.some(
          (other) =>
            other !== flight &&
            Math.abs(other.y - y) < size + 8 &&
            other.x > x - size - 3 &&
            other.x < x + width + size + 3,
        );
        return !onLabel && !onNode && !onOther;
      });
      if (!free) continue;
      const [x, y] = free;
      taken.push([x, y, width]);
      pen.lineWidth = 4;
      pen.strokeStyle = colours.panel;
      pen.lineJoin = "round";
      pen.strokeText(text, x, y);
      pen.fillStyle = kindColour(colours, story.aKind[flight.arrow]!);
      pen.fillText(text, x, y);
    }
  }

  private drawNode(pen: CanvasRenderingContext2D, colours: Palette, node: number): void {
    const story = this.story!;
    const [x, y] = this.points[node]!;
    const r = this.radius;
    const { phase, down, paused, suspects } = this.doings[node]!;
    const target: Target = { kind: "node", node };
    if (same(this.marks.selected, target)) ring(pen, x, y, r + 5, colours.accent, 3);
    else if (same(this.marks.hovered, target)) ring(pen, x, y, r + 5, colours.faint, 2);
    const [fill, edge] = down ? [colours.paper, colours.bad] : phaseColours(colours, phase);
    pen.beginPath();
    pen.arc(x, y, r, 0, 2 * Math.PI);
    pen.fillStyle = fill;
    pen.fill();
    pen.lineWidth = r > 8 ? 2 : 1.2;
    pen.strokeStyle = edge;
    pen.setLineDash(down || phase === Phase.Still ? [3, 3] : []);
    pen.stroke();
    pen.setLineDash([]);
    if (phase === Phase.Inside && !down && r > 8) ring(pen, x, y, r + 3.5, edge, 1.5);
    if (r >= 7) {
      pen.font = `600 ${Math.round(Math.max(9, Math.min(15, r * 0.72)))}px ${FONT}`;
      pen.textAlign = "center";
      pen.textBaseline = "middle";
      pen.fillStyle = down
        ? colours.soft
        : phase === Phase.Inside
          ? colours.panel
          : phase === Phase.Leading
            ? "#171b21"
            : colours.ink;
      pen.fillText(String(node + 1), x, y + 0.5);
      pen.textAlign = "start";
    }
    // Large enough, the cross stands beside the number.
    if (down && r > 12) {
      const [cx, cy, size] = [x + r * 0.8, y - r * 0.8, Math.max(6, r * 0.4)];
      pen.beginPath();
      pen.arc(cx, cy, size, 0, 2 * Math.PI);
      pen.fillStyle = colours.bad;
      pen.fill();
      cross(pen, cx, cy, size * 0.4, colours.panel, 2);
    } else if (down) cross(pen, x, y, r * 0.75, colours.bad, 1.5);
    if (paused) {
      pen.fillStyle = colours.ink;
      pen.fillRect(x + r * 0.55, y - r * 1.05, 3, 10);
      pen.fillRect(x + r * 0.55 + 5, y - r * 1.05, 3, 10);
    }
    if (phase === Phase.Leading && !down && r > 8) {
      pen.fillStyle = colours.leading[0];
      pen.strokeStyle = colours.leading[1];
      pen.lineWidth = 1;
      pen.beginPath();
      addShape(pen, "star", x + r * 0.8, y - r * 0.8, Math.max(4, r * 0.26));
      pen.fill();
      pen.stroke();
    }
    if (suspects.length > 0 && r > 6) {
      pen.fillStyle = colours.suspect;
      pen.font = `600 10px ${FONT}`;
      pen.textBaseline = "middle";
      const text = suspects.length > 4 ? `? ${suspects.length}` : `? ${suspects.map((n) => n + 1).join(" ")}`;
      pen.fillText(text, x + r + 3, y - r * 0.6);
    }
    const more = story.names[node];
    if (more && r > 8) {
      const [nx, ny] = this.nameSpot(node);
      pen.font = `500 11px ${FONT}`;
      pen.textAlign = "center";
      pen.textBaseline = "middle";
      // A link may run behind it.
      pen.lineWidth = 4;
      pen.lineJoin = "round";
      pen.strokeStyle = colours.panel;
      pen.strokeText(more, nx, ny);
      pen.fillStyle = colours.soft;
      pen.fillText(more, nx, ny);
      pen.textAlign = "start";
    }
  }

  /** The middle of what else a node is called: outside of a circle, where no links are, and below otherwise. */
  private nameSpot(node: number): Point {
    const [x, y] = this.points[node]!;
    if (!this.round) return [x, y + this.radius + 11];
    const [dx, dy] = [x - this.width / 2, y - (this.height + this.inset) / 2];
    const length = Math.max(1, Math.hypot(dx, dy));
    return [x + (dx / length) * (this.radius + 19), y + (dy / length) * (this.radius + 11)];
  }

  /** The same as a drawing of its own. */
  svg(title: string): string {
    const story = this.story!;
    const colours = palette();
    const escape = (text: string) =>
      text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;");
    const parts: string[] = [];
    const number = (value: number) => String(Math.round(value * 10) / 10);
    this.eachLink((from, to) => {
      const [a, b] = [this.points[from]!, this.points[to]!];
      const alpha = story.links ? 0.55 : Math.max(0.07, 0.5 / Math.sqrt(story.nodes));
      parts.push(
        `<line x1="${number(a[0])}" y1="${number(a[1])}" x2="${number(b[0])}" y2="${number(b[1])}" stroke="${colours.faint}" stroke-opacity="${number(alpha)}"/>`,
      );
    });
    for (const [from, to] of this.marks.cuts) {
      const [a, b] = [this.points[from]!, this.points[to]!];
      parts.push(
        `<line x1="${number(a[0])}" y1="${number(a[1])}" x2="${number(b[0])}" y2="${number(b[1])}" stroke="${colours.bad}" stroke-width="2" stroke-dasharray="5 5"/>`,
      );
    }
    this.findFlights();
    for (const flight of this.flights) {
      const colour = kindColour(colours, story.aKind[flight.arrow]!);
      const text = escape(story.message(flight.arrow));
      parts.push(
        `<line x1="${number(flight.fx)}" y1="${number(flight.fy)}" x2="${number(flight.x)}" y2="${number(flight.y)}" stroke="${colour}" stroke-opacity="0.5" stroke-width="1.5"/>` +
          `<circle cx="${number(flight.x)}" cy="${number(flight.y)}" r="5" fill="${colour}"><title>${text}</title></circle>`,
      );
      if (this.flights.length <= LABELS_MAX) {
        parts.push(
          `<text x="${number(flight.x + 9)}" y="${number(flight.y + 4)}" font-size="12" fill="${colour}">${escape(story.shortMessage(flight.arrow))}</text>`,
        );
      }
    }
    this.points.forEach(([x, y], node) => {
      const doing = story.doing(node, this.player.now);
      const [fill, edge] = doing.down
        ? [colours.paper, colours.bad]
        : phaseColours(colours, doing.phase);
      const ink = doing.phase === Phase.Inside && !doing.down ? colours.panel : colours.ink;
      parts.push(
        `<circle cx="${number(x)}" cy="${number(y)}" r="${number(this.radius)}" fill="${fill}" stroke="${edge}" stroke-width="2"${doing.down ? ' stroke-dasharray="3 3"' : ""}/>` +
          `<text x="${number(x)}" y="${number(y + 5)}" font-size="14" font-weight="600" text-anchor="middle" fill="${ink}">${node + 1}</text>`,
      );
      if (doing.down) {
        const [cx, cy] = [x + this.radius * 0.8, y - this.radius * 0.8];
        parts.push(
          `<circle cx="${number(cx)}" cy="${number(cy)}" r="8" fill="${colours.bad}"/>` +
            `<path d="M${number(cx - 3)} ${number(cy - 3)}l6 6m0 -6l-6 6" stroke="${colours.panel}" stroke-width="2"/>`,
        );
      }
    });
    return (
      `<svg xmlns="http://www.w3.org/2000/svg" width="${this.width}" height="${this.height}" viewBox="0 0 ${this.width} ${this.height}" font-family="${escape(FONT)}">` +
      `<title>${escape(title)}</title><rect width="100%" height="100%" fill="${colours.panel}"/>${parts.join("")}</svg>`
    );
  }
}

export const FONT = '"Inter Variable", ui-sans-serif, system-ui, "DejaVu Sans", sans-serif';

function ring(
  pen: CanvasRenderingContext2D,
  x: number,
  y: number,
  r: number,
  colour: string,
  width: number,
): void {
  pen.beginPath();
  pen.arc(x, y, r, 0, 2 * Math.PI);
  pen.strokeStyle = colour;
  pen.lineWidth = width;
  pen.stroke();
}

export function cross(
  pen: CanvasRenderingContext2D,
  x: number,
  y: number,
  r: number,
  colour: string,
  width: number,
): void {
  pen.strokeStyle = colour;
  pen.lineWidth = width;
  pen.beginPath();
  pen.moveTo(x - r, y - r);
  pen.lineTo(x + r, y + r);
  pen.moveTo(x + r, y - r);
  pen.lineTo(x - r, y + r);
  pen.stroke();
}

export function head(
  pen: CanvasRenderingContext2D,
  x: number,
  y: number,
  angle: number,
  size: number,
): void {
  pen.beginPath();
  pen.moveTo(x, y);
  pen.lineTo(x - size * Math.cos(angle - 0.4), y - size * Math.sin(angle - 0.4));
  pen.lineTo(x - size * Math.cos(angle + 0.4), y - size * Math.sin(angle + 0.4));
  pen.closePath();
  pen.fill();
}

export function toSegment(x: number, y: number, a: Point, b: Point): number {
  const [dx, dy] = [b[0] - a[0], b[1] - a[1]];
  const length = dx * dx + dy * dy;
  const part = length === 0 ? 0 : Math.max(0, Math.min(1, ((x - a[0]) * dx + (y - a[1]) * dy) / length));
  return Math.hypot(x - a[0] - part * dx, y - a[1] - part * dy);
}
