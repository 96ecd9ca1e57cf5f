// Charts: measured values as points, what is published as lines.

import { useSignal } from "@preact/signals";
import { useRef } from "preact/hooks";
import { kindColour, kindDash, kindShape, palette } from "../draw/palette";
import { tick } from "../draw/spacetime";
import { t } from "../texts";
import { useSize } from "./stage";
import { theme } from "./theme";
import { Menu, save, savePng } from "./ui";

export interface Series {
  name: string;
  /** Which colour, dash and shape. */
  kind: number;
  points: [x: number, y: number][];
  /** What is published: at each x the lowest and the highest value. */
  theory: [x: number, low: number, high: number][];
}

export interface ChartProps {
  title: string;
  series: Series[];
  xLabel: string;
  yLabel: string;
  logX?: boolean;
  logY?: boolean;
  height?: number;
  /** Are the points joined, where nothing is published? */
  joined?: boolean;
}

// Above stand what is drawn and the menu.
const [LEFT, RIGHT, TOP, BOTTOM] = [54, 18, 38, 48];
const [WIDTH_MIN, WIDTH_MAX] = [340, 860];

export function Chart(props: ChartProps) {
  const { series, logX, logY } = props;
  const height = props.height ?? 420;
  const svg = useRef<SVGSVGElement>(null);
  const near = useSignal<{ series: Series; x: number; y: number } | undefined>(undefined);
  // A pixel of the drawing is one of the page, so that letters are as large as elsewhere.
  const room = useSignal(WIDTH_MAX);
  const holder = useSize((width) => (room.value = Math.max(WIDTH_MIN, Math.min(WIDTH_MAX, width))));
  const WIDTH = room.value;
  void theme.value;
  const colours = palette();
  const xs = series.flatMap((one) => one.points.map(([x]) => x));
  const ys = series.flatMap((one) => [
    ...one.points.map(([, y]) => y),
    ...one.theory.flatMap(([, low, high]) => [low, high]),
  ]).filter((y) => Number.isFinite(y) && (!logY || y > 0));
  if (xs.length === 0 || ys.length === 0) {
    return (
      <figure class="chart" ref={holder}>
        <p class="quiet">{t.compare.idle}</p>
      </figure>
    );
  }
  const [xMin, xMax] = [Math.min(...xs), Math.max(...xs)];
  const yMin = logY ? Math.min(...ys) : Math.min(0, ...ys);
  const yMax = Math.max(...ys) * (logY ? 1.15 : 1.06) || 1;
  const scale = (value: number, min: number, max: number, log: boolean | undefined) => {
    if (max === min) return 0.5;
    return log
      ? (Math.log(value) - Math.log(min)) / (Math.log(max) - Math.log(min))
      : (value - min) / (max - min);
  };
  const x = (value: number) => LEFT + scale(value, xMin, xMax, logX) * (WIDTH - LEFT - RIGHT);
  const y = (value: number) =>
    height - BOTTOM - scale(Math.max(value, logY ? yMin : value), yMin, yMax, logY) * (height - TOP - BOTTOM);
  const path = (points: [number, number][]) =>
    points.map(([px, py], i) => `${i === 0 ? "M" : "L"}${x(px).toFixed(1)} ${y(py).toFixed(1)}`).join("");
  const dimmed = (one: Series) => near.value !== undefined && near.value.series !== one;
  return (
    <figure class="chart" ref={holder}>
      <svg
        ref={svg}
        xmlns="http://www.w3.org/2000/svg"
        viewBox={`0 0 ${WIDTH} ${height}`}
        role="img"
        aria-label={props.title}
        font-family="ui-sans-serif, system-ui, sans-serif"
        onPointerMove={(event) => {
          const box = svg.current!.getBoundingClientRect();
          const px = ((event.clientX - box.left) / box.width) * WIDTH;
          const py = ((event.clientY - box.top) / box.height) * height;
          let best: { series: Series; x: number; y: number } | undefined;
          let nearest = 26;
          for (const one of series) {
            for (const [vx, vy] of one.points) {
              const distance = Math.hypot(x(vx) - px, y(vy) - py);
              if (distance < nearest) {
                nearest = distance;
                best = { series: one, x: vx, y: vy };
              }
            }
          }
          near.value = best;
        }}
        onPointerLeave={() => (near.value = undefined)}
      >
        <rect width={WIDTH} height={height} fill={colours.panel} />
        {ticks(yMin, yMax, logY, 6).map((value) => (
          <g key={value}>
            <line x1={LEFT} x2={WIDTH - RIGHT} y1={y(value)} y2={y(value)} stroke={colours.line} />
            <text x={LEFT - 10} y={y(value) + 4} text-anchor="end" font-size="12" fill={colours.soft}>
              {short(value)}
            </text>
          </g>
        ))}
        {(new Set(xs).size <= WIDTH / 70 ? [...new Set(xs)].sort((a, b) => a - b) : ticks(xMin, xMax, logX, 8)).map((value) => (
          <g key={value}>
            <line x1={x(value)} x2={x(value)} y1={height - BOTTOM} y2={height - BOTTOM + 5} stroke={colours.faint} />
            <text x={x(value)} y={height - BOTTOM + 20} text-anchor="middle" font-size="12" fill={colours.soft}>
              {short(value)}
            </text>
          </g>
        ))}
        <text x={WIDTH - RIGHT} y={height - 8} text-anchor="end" font-size="13" fill={colours.soft}>
          {props.xLabel}
        </text>
        <text x={LEFT} y={12} font-size="13" fill={colours.soft}>
          {props.yLabel}
        </text>
        {series.map((one) => {
          const colour = kindColour(colours, one.kind);
          const dash = kindDash(one.kind).join(" ");
          const low = one.theory.map(([px, value]): [number, number] => [px, value]);
          const high = one.theory.map(([px, , value]): [number, number] => [px, value]);
          const band = one.theory.some(([, a, b]) => b - a > 1e-6 * Math.abs(b));
          return (
            <g key={one.name} opacity={dimmed(one) ? 0.18 : 1}>
              {band && (series.length <= 4 || near.value?.series === one) && (
                <path
                  d={`${path(low)}${path([...high].reverse()).replace("M", "L")}Z`}
                  fill={colour}
                  opacity="0.1"
                />
              )}
              {one.theory.length > 1 && (
                <path d={path(high)} fill="none" stroke={colour} stroke-width="1.6" stroke-dasharray={dash} opacity="0.75" />
              )}
              {band && (series.length <= 4 || near.value?.series === one) && (
                <path d={path(low)} fill="none" stroke={colour} stroke-width="1" stroke-dasharray="2 3" opacity="0.7" />
              )}
              {props.joined && one.theory.length === 0 && (
                <path d={path(one.points)} fill="none" stroke={colour} stroke-width="1.6" stroke-dasharray={dash} />
              )}
              {one.points.map(([px, py]) => (
                <path
                  key={px}
                  d={chartShape(one.kind, x(px), y(py))}
                  fill={kindShape(one.kind) === "star" ? "none" : colour}
                  stroke={kindShape(one.kind) === "star" ? colour : colours.panel}
                  stroke-width={kindShape(one.kind) === "star" ? 2.4 : 1.2}
                >
                  <title>{`${one.name}: ${short(py)}`}</title>
                </path>
              ))}
            </g>
          );
        })}
        {near.value && <Tip near={near.value} x={x(near.value.x)} y={y(near.value.y)} width={WIDTH} />}
      </svg>
      <Menu
        icon="save"
        label={t.compare.save}
        items={[
          ["SVG", () => save("chart.svg", svg.current!.outerHTML, "image/svg+xml")],
          [
            "PNG",
            () =>
              savePng(
                "chart.png",
                svg.current!.outerHTML.replace("<svg", `<svg width="${WIDTH}" height="${height}"`),
              ),
          ],
        ]}
      />
    </figure>
  );
}

function Tip(props: { near: { series: Series; x: number; y: number }; x: number; y: number; width: number }) {
  const { near, x, y } = props;
  const colours = palette();
  const text = `${near.series.name}  ${short(near.y)}`;
  const width = text.length * 7.4 + 20;
  const left = Math.max(LEFT, Math.min(props.width - width - 6, x - width / 2));
  const top = y > 60 ? y - 38 : y + 14;
  return (
    <g pointer-events="none">
      <rect x={left} y={top} width={width} height="26" rx="8" fill={colours.ink} />
      <text x={left + width / 2} y={top + 17.5} text-anchor="middle" font-size="13" font-weight="550" fill={colours.paper}>
        {text}
      </text>
    </g>
  );
}

function ticks(min: number, max: number, log: boolean | undefined, count: number): number[] {
  if (log) {
    const found: number[] = [];
    for (let power = Math.floor(Math.log10(min)); power <= Math.ceil(Math.log10(max)); power++) {
      for (const factor of max / min < 300 ? [1, 2, 5] : [1]) {
        const value = factor * 10 ** power;
        if (value >= min * 0.999 && value <= max * 1.001) found.push(value);
      }
    }
    return found;
  }
  const step = tick((max - min) / count);
  const found: number[] = [];
  for (let value = Math.ceil(min / step) * step; value <= max + 1e-9; value += step) {
    found.push(Math.round(value / step) * step);
  }
  return found;
}

export function short(value: number): string {
  if (Math.abs(value) >= 10_000) return value.toLocaleString("en", { notation: "compact", maximumFractionDigits: 1 });
  const digits = Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : Math.abs(value) >= 0.1 ? 2 : 4;
  return String(Number(value.toFixed(digits)));
}

/** The outline of a point. */
export function chartShape(kind: number, px: number, py: number, size = 4.6): string {
  switch (kindShape(kind)) {
    case "diamond":
      return `M${px} ${py - size * 1.3}L${px + size * 1.3} ${py}L${px} ${py + size * 1.3}L${px - size * 1.3} ${py}Z`;
    case "square":
      return `M${px - size} ${py - size}h${size * 2}v${size * 2}h${-size * 2}Z`;
    case "triangle":
      return `M${px} ${py - size * 1.3}L${px + size * 1.2} ${py + size}H${px - size * 1.2}Z`;
    case "hexagon":
    case "pentagon":
      return `M${px + size} ${py}L${px + size / 2} ${py + size}H${px - size / 2}L${px - size} ${py}L${px - size / 2} ${py - size}H${px + size / 2}Z`;
    case "star":
      return `M${px - size} ${py}H${px + size}M${px} ${py - size}V${py + size}`;
    default:
      return `M${px + size} ${py}A${size} ${size} 0 1 1 ${px - size} ${py}A${size} ${size} 0 1 1 ${px + size} ${py}Z`;
  }
}

/** The sign of a series, for lists beside a chart. */
export function SeriesMark({ kind }: { kind: number }) {
  const line = kindShape(kind) === "star";
  return (
    <svg class="series-mark" width="16" height="14" aria-hidden="true" style={{ "--kind": `var(--kind-${kind % 7})` }}>
      <path d={chartShape(kind, 8, 7)} class={line ? "stroke" : "fill"} />
    </svg>
  );
}
