// Colours and shapes. A kind of message has a colour, a dash and a shape; a phase has a colour and a sign:
// nobody has to tell two things apart by colour alone. The colours of kinds are those of Okabe and Ito.

import { Phase } from "../model/story";

export interface Palette {
  paper: string;
  panel: string;
  ink: string;
  soft: string;
  faint: string;
  line: string;
  accent: string;
  bad: string;
  good: string;
  wanting: [fill: string, edge: string];
  inside: [fill: string, edge: string];
  leading: [fill: string, edge: string];
  member: [fill: string, edge: string];
  suspect: string;
  kinds: string[];
  dark: boolean;
}

const LIGHT: Palette = {
  paper: "#fbfbf8",
  panel: "#ffffff",
  ink: "#171b21",
  soft: "#59626e",
  faint: "#9aa3ad",
  line: "#e3e3dc",
  accent: "#0b5c8a",
  bad: "#b42318",
  good: "#0f7b53",
  wanting: ["#cfe4f4", "#2d7fb8"],
  inside: ["#171b21", "#171b21"],
  leading: ["#f5c710", "#8f7200"],
  member: ["#c9e8dc", "#3f8f76"],
  suspect: "#7b4fa3",
  kinds: ["#0072b2", "#d55e00", "#009e73", "#b0578d", "#3a9bd9", "#a6761d", "#6a6a6a"],
  dark: false,
};

const DARK: Palette = {
  paper: "#14171b",
  panel: "#1b1f25",
  ink: "#eceef1",
  soft: "#a3acb7",
  faint: "#68727d",
  line: "#2c323a",
  accent: "#7cc1ee",
  bad: "#ff8d7e",
  good: "#5fd3a4",
  wanting: ["#20435c", "#7cc1ee"],
  inside: ["#eceef1", "#eceef1"],
  leading: ["#f5c710", "#ffe27a"],
  member: ["#1d4a3c", "#5fd3a4"],
  suspect: "#c9a3ee",
  kinds: ["#56b4e9", "#f0883e", "#2fc79b", "#e08fbf", "#9fd4f7", "#d9a94a", "#a9b0b8"],
  dark: true,
};

export function palette(): Palette {
  return document.documentElement.dataset["theme"] === "dark" ? DARK : LIGHT;
}

export function kindColour(palette: Palette, kind: number): string {
  return palette.kinds[kind % palette.kinds.length]!;
}

/** Beyond as many kinds as there are colours, colours come again with another dash. */
export function kindDash(kind: number): number[] {
  return [[], [10, 3], [7, 3, 2, 3], [2, 2]][Math.min(3, Math.floor(kind / 7))]!;
}

export const SHAPES = ["circle", "diamond", "square", "triangle", "hexagon", "pentagon", "star"] as const;
export type Shape = (typeof SHAPES)[number];

/** When colours come again, it is with another shape. */
export function kindShape(kind: number): Shape {
  return SHAPES[(kind + Math.floor(kind / 7) * 3) % SHAPES.length]!;
}

export function phaseColours(palette: Palette, phase: Phase): [string, string] {
  switch (phase) {
    case Phase.Wanting:
      return palette.wanting;
    case Phase.Inside:
      return palette.inside;
    case Phase.Leading:
      return palette.leading;
    case Phase.Member:
      return palette.member;
    case Phase.Still:
      return [palette.panel, palette.member[1]];
    default:
      return [palette.panel, palette.faint];
  }
}

type Pen = CanvasRenderingContext2D | Path2D;

/** Adds a shape to a path. */
export function addShape(pen: Pen, shape: Shape, x: number, y: number, size: number): void {
  const corners = (count: number, turn: number, radius = size * 1.15) => {
    for (let i = 0; i < count; i++) {
      const angle = turn + (i * 2 * Math.PI) / count;
      const [px, py] = [x + radius * Math.cos(angle), y + radius * Math.sin(angle)];
      if (i === 0) pen.moveTo(px, py);
      else pen.lineTo(px, py);
    }
    pen.closePath();
  };
  switch (shape) {
    case "circle":
      pen.moveTo(x + size, y);
      pen.arc(x, y, size, 0, 2 * Math.PI);
      break;
    case "diamond":
      corners(4, 0, size * 1.3);
      break;
    case "square":
      corners(4, Math.PI / 4, size * 1.25);
      break;
    case "triangle":
      corners(3, -Math.PI / 2, size * 1.35);
      break;
    case "hexagon":
      corners(6, 0);
      break;
    case "pentagon":
      corners(5, -Math.PI / 2);
      break;
    case "star":
      for (let i = 0; i < 10; i++) {
        const radius = i % 2 === 0 ? size * 1.4 : size * 0.65;
        const angle = -Math.PI / 2 + (i * Math.PI) / 5;
        const [px, py] = [x + radius * Math.cos(angle), y + radius * Math.sin(angle)];
        if (i === 0) pen.moveTo(px, py);
        else pen.lineTo(px, py);
      }
      pen.closePath();
  }
}
