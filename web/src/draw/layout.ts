// Where nodes stand: on a circle, in a tree, on a grid, or where springs pull them. Always the same way.

import type { Story } from "../model/story";

export type Point = [x: number, y: number];

/** Places from 0 to 1 in both directions, by node. */
export function places(story: Story): Point[] {
  const { nodes, links, shape, topology } = story;
  if (nodes === 1) return [[0.5, 0.5]];
  const name = topology?.split(":")[0];
  if (name === "star") return star(nodes);
  if (name === "path") return path(nodes);
  if (name === "grid" || name === "torus") return grid(nodes);
  if (name === "hypercube") return hypercube(nodes);
  if (shape === "tree" && links) return tree(nodes, links);
  if (shape === "graph" && links && nodes <= 400) return springs(nodes, links);
  return circle(nodes);
}

function circle(count: number): Point[] {
  return Array.from({ length: count }, (_, i) => {
    // Two stand side by side: pictures are wide.
    const angle = (count === 2 ? -Math.PI : -Math.PI / 2) + (2 * Math.PI * i) / count;
    return [0.5 + 0.5 * Math.cos(angle), 0.5 + 0.5 * Math.sin(angle)];
  });
}

function star(count: number): Point[] {
  return [[0.5, 0.5], ...circle(count - 1)];
}

/** One after the other, in rows that run to and fro. */
function path(count: number): Point[] {
  const width = Math.min(count, Math.max(6, Math.ceil(Math.sqrt(count * 2.5))));
  const rows = Math.ceil(count / width);
  return Array.from({ length: count }, (_, i) => {
    const row = Math.floor(i / width);
    const column = row % 2 === 0 ? i % width : width - 1 - (i % width);
    return [width > 1 ? column / (width - 1) : 0.5, rows > 1 ? row / (rows - 1) : 0.5];
  });
}

function grid(count: number): Point[] {
  // As square as the number allows: the widest divisor not above the root.
  let rows = Math.floor(Math.sqrt(count));
  while (count % rows !== 0) rows--;
  const columns = count / rows;
  return Array.from({ length: count }, (_, i) => [
    columns > 1 ? (i % columns) / (columns - 1) : 0.5,
    rows > 1 ? Math.floor(i / columns) / (rows - 1) : 0.5,
  ]);
}

/** Each dimension is a shift of its own, so that every edge of it is parallel. */
function hypercube(count: number): Point[] {
  const shifts: Point[] = [
    [1, 0],
    [0, 1],
    [0.45, 0.38],
    [-0.36, 0.5],
    [2.2, 0.3],
    [0.3, 2.2],
    [4.8, 0.4],
    [0.4, 4.8],
  ];
  const raw = Array.from({ length: count }, (_, i): Point => {
    let [x, y] = [0, 0];
    shifts.forEach(([dx, dy], bit) => {
      if ((i >> bit) & 1) {
        x += dx;
        y += dy;
      }
    });
    return [x, y];
  });
  return fitted(raw);
}

function neighbours(count: number, links: [number, number][]): number[][] {
  const sets = Array.from({ length: count }, () => new Set<number>());
  for (const [a, b] of links) {
    sets[a]?.add(b);
    sets[b]?.add(a);
  }
  return sets.map((set) => [...set].sort((a, b) => a - b));
}

function tree(count: number, links: [number, number][]): Point[] {
  const near = neighbours(count, links);
  const depth = new Int32Array(count).fill(-1);
  const children: number[][] = Array.from({ length: count }, () => []);
  const order = [0];
  depth[0] = 0;
  for (const node of order) {
    for (const next of near[node]!) {
      if (depth[next]! >= 0) continue;
      depth[next] = depth[node]! + 1;
      children[node]!.push(next);
      order.push(next);
    }
  }
  const x = new Float64Array(count);
  let leaf = 0;
  const place = (node: number): void => {
    const below = children[node]!;
    if (below.length === 0) {
      x[node] = leaf++;
      return;
    }
    below.forEach(place);
    x[node] = (x[below[0]!]! + x[below[below.length - 1]!]!) / 2;
  };
  place(0);
  return fitted(Array.from({ length: count }, (_, i): Point => [x[i]!, Math.max(0, depth[i]!)]));
}

/** Linked nodes attract, all others repel: the usual springs, from a circle, for a fixed number of rounds. */
function springs(count: number, links: [number, number][]): Point[] {
  const points = circle(count).map(([x, y]): Point => [x * 2 - 1, y * 2 - 1]);
  const near = neighbours(count, links);
  const ideal = 1.6 / Math.sqrt(count);
  const rounds = count <= 80 ? 260 : 90;
  for (let round = 0; round < rounds; round++) {
    const heat = 0.12 * (1 - round / rounds);
    const moves = points.map((): Point => [0, 0]);
    for (let a = 0; a < count; a++) {
      for (let b = a + 1; b < count; b++) {
        const dx = points[a]![0] - points[b]![0];
        const dy = points[a]![1] - points[b]![1];
        const distance = Math.max(1e-3, Math.hypot(dx, dy));
        const force = (ideal * ideal) / distance / distance;
        moves[a]![0] += dx * force;
        moves[a]![1] += dy * force;
        moves[b]![0] -= dx * force;
        moves[b]![1] -= dy * force;
      }
      for (const b of near[a]!) {
        const dx = points[a]![0] - points[b]![0];
        const dy = points[a]![1] - points[b]![1];
        const force = Math.hypot(dx, dy) / ideal / 2;
        moves[a]![0] -= dx * force;
        moves[a]![1] -= dy * force;
      }
    }
    for (let a = 0; a < count; a++) {
      const [dx, dy] = moves[a]!;
      const length = Math.max(1e-6, Math.hypot(dx, dy));
      const step = Math.min(length, heat) / length;
      points[a]![0] += dx * step;
      points[a]![1] += dy * step;
    }
  }
  return fitted(points);
}

function fitted(points: Point[]): Point[] {
  const xs = points.map(([x]) => x);
  const ys = points.map(([, y]) => y);
  const [left, right] = [Math.min(...xs), Math.max(...xs)];
  const [top, bottom] = [Math.min(...ys), Math.max(...ys)];
  return points.map(([x, y]) => [
    right > left ? (x - left) / (right - left) : 0.5,
    bottom > top ? (y - top) / (bottom - top) : 0.5,
  ]);
}
