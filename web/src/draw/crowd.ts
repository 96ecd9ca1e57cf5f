// Thousands of messages at once. A canvas takes as long for each small shape as for a large picture, so they
// are put into one picture, pixel by pixel, which is drawn once.

import { addShape, kindColour, kindShape, type Palette } from "./palette";
import { surface } from "./surface";

interface Spot {
  x: number;
  y: number;
}

/** What a message of a kind looks like: its pixels that can be seen, row by row. */
interface Stamp {
  half: number;
  dx: Int16Array;
  dy: Int16Array;
  colour: Uint32Array;
}

export class Crowd {
  private readonly canvas = document.createElement("canvas");
  private readonly stamps = new Map<string, Stamp>();
  private image: ImageData | undefined;

  /** Draws a message of its kind at each spot, all of them within the hull of these points. */
  draw<S extends Spot>(
    pen: CanvasRenderingContext2D,
    spots: S[],
    hull: [x: number, y: number][],
    size: number,
    colours: Palette,
    kindOf: (spot: S) => number,
  ): void {
    const ratio = devicePixelRatio || 1;
    const [xs, ys] = [hull.map(([x]) => x), hull.map(([, y]) => y)];
    const margin = 2 * size + 16;
    const [left, top] = [Math.floor(Math.min(...xs) - margin), Math.floor(Math.min(...ys) - margin)];
    const width = Math.ceil((Math.max(...xs) + margin - left) * ratio);
    const height = Math.ceil((Math.max(...ys) + margin - top) * ratio);
    if (this.image?.width !== width || this.image.height !== height) {
      this.image = new ImageData(width, height);
      this.canvas.width = width;
      this.canvas.height = height;
    }
    const pixels = new Uint32Array(this.image.data.buffer);
    pixels.fill(0);
    const stamps: Stamp[] = [];
    for (const spot of spots) {
      const kind = kindOf(spot);
      const stamp = (stamps[kind] ??= this.stamp(kind, size, ratio, colours));
      const { half, dx, dy, colour } = stamp;
      const x = Math.round((spot.x - left) * ratio) - half;
      const y = Math.round((spot.y - top) * ratio) - half;
      if (x < 0 || y < 0 || x + 2 * half >= width || y + 2 * half >= height) continue;
      const base = y * width + x;
      for (let i = 0; i < colour.length; i++) {
        const place = base + dy[i]! * width + dx[i]!;
        // At the rim of one the other shows through.
        if (colour[i]! >>> 24 === 255 || colour[i]! >>> 24 > pixels[place]! >>> 24) pixels[place] = colour[i]!;
      }
    }
    this.canvas.getContext("2d", { willReadFrequently: true })!.putImageData(this.image, 0, 0);
    pen.drawImage(this.canvas, left, top, width / ratio, height / ratio);
  }

  private stamp(kind: number, size: number, ratio: number, colours: Palette): Stamp {
    const key = `${kind} ${size} ${colours.dark} ${ratio}`;
    const known = this.stamps.get(key);
    if (known) return known;
    const width = Math.ceil(size * 3) + 2;
    const canvas = document.createElement("canvas");
    const pen = surface(canvas, width, width);
    pen.fillStyle = kindColour(colours, kind);
    pen.beginPath();
    addShape(pen, kindShape(kind), width / 2, width / 2, size);
    pen.fill();
    const side = canvas.width;
    const all = new Uint32Array(pen.getImageData(0, 0, side, side).data.buffer);
    const seen = [...all.keys()].filter((place) => all[place]! >>> 24 > 0);
    const stamp = {
      half: side >> 1,
      dx: Int16Array.from(seen, (place) => place % side),
      dy: Int16Array.from(seen, (place) => Math.floor(place / side)),
      colour: Uint32Array.from(seen, (place) => all[place]!),
    };
    this.stamps.set(key, stamp);
    return stamp;
  }
}
