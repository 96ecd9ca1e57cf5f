// The pictures of a running cluster: who reaches whom, and views and leases over time. They are elements
// with their colours in them, so that what is seen can be saved as it is.

import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { type About, begin, type LockSpan, type Member, linkState, members, messages, now, presides, short, version } from "../model/live";
import { t } from "../texts";
import { type Palette, palette } from "./palette";

export type Thing = { kind: "member"; name: string } | { kind: "link"; a: string; b: string };

const FONT = '"Inter Variable", ui-sans-serif, system-ui, sans-serif';
/** How long a message is seen on its way, in milliseconds: it is a thousand times as fast. */
const FLIGHT = 700;
/** So many are seen at a time. */
const FLYING = 36;
/** So much room a member needs above, below and beside it. */
const ABOVE = 64;
const BELOW = 84;
const SIDE = 90;

export function aboutColour(colours: Palette, about: About): string {
  const place = { seat: 0, lock: 1, consensus: 6, founding: 3 }[about];
  return colours.kinds[place]!;
}

/** Views next to each other differ in their colour; their number says which they are. */
function viewColour(colours: Palette, epoch: number): string {
  return colours.kinds[[0, 2, 3, 4, 5][epoch % 5]!]!;
}

/** Where members stand: on a circle, all of it in the middle of what is left below the inset. */
export function places(width: number, height: number, inset: number): Map<string, [number, number]> {
  const names = [...members.keys()];
  const angles = names.map((_, place) => -Math.PI / 2 + (place * 2 * Math.PI) / names.length);
  const spots = angles.map((angle) => (names.length === 1 ? ([0, 0] as const) : ([Math.cos(angle), Math.sin(angle)] as const)));
  const ys = spots.map(([, y]) => y);
  const [top, bottom] = [Math.min(0, ...ys), Math.max(0, ...ys)];
  // Words stand above and below those at the ends.
  const [from, to] = [inset + ABOVE, height - BELOW];
  const radius = Math.max(40, Math.min((width / 2 - SIDE) / 0.95, (to - from) / Math.max(1, bottom - top)));
  const wide = Math.min(1.5, Math.max(1, (width / 2 - SIDE) / radius));
  const middle = (from + to) / 2 - ((top + bottom) / 2) * radius;
  return new Map(
    names.map((name, place) => {
      const [x, y] = spots[place]!;
      return [name, [width / 2 + x * radius * wide, middle + y * radius]];
    }),
  );
}

/** What a member may do, as a colour and a word. */
function looks(it: Member, colours: Palette): { fill: string; edge: string; ink: string; word: string } {
  const { ink, soft, faint, panel, bad } = colours;
  if (it.state === "gone") return { fill: panel, edge: bad, ink: soft, word: t.live.gone };
  if (it.state === "paused") return { fill: panel, edge: soft, ink: soft, word: t.live.paused };
  const standing = it.status?.standing ?? (it.views.at(-1)?.to === undefined && it.views.length > 0 ? "member" : "");
  const word = t.live.standings[standing] ?? standing;
  switch (standing) {
    case "member":
      return { fill: colours.member[0], edge: colours.member[1], ink, word };
    case "jeopardy":
      return { fill: colours.leading[0], edge: colours.leading[1], ink: "#171b21", word };
    case "not primary":
    case "majority lost":
      return { fill: panel, edge: bad, ink: bad, word };
    default:
      return { fill: panel, edge: faint, ink: soft, word };
  }
}

export const wordFor = (it: Member): string => looks(it, palette()).word;

/** What a picture is drawn on, here and in a file. */
function Sheet(props: {
  width: number;
  height: number;
  role: "group" | "img";
  label: string;
  svg?: { current: SVGSVGElement | null };
  onClick?: () => void;
  children: ComponentChildren;
}) {
  const { width, height } = props;
  return (
    <svg
      ref={props.svg}
      width={width}
      height={height}
      viewBox={`0 0 ${width} ${height}`}
      xmlns="http://www.w3.org/2000/svg"
      font-family={FONT}
      role={props.role}
      aria-label={props.label}
      onClick={props.onClick}
    >
      {props.children}
    </svg>
  );
}

export function ClusterPicture(props: {
  width: number;
  height: number;
  /** How much of the height is taken by something else, above. */
  inset: number;
  hidden: Set<About>;
  selected: Thing | undefined;
  onSelect?: (thing: Thing | undefined) => void;
  still: boolean;
  svg?: { current: SVGSVGElement | null };
}) {
  void version.value;
  const { width, height, selected } = props;
  const colours = palette();
  const at = places(width, height, props.inset);
  const all = [...members.values()];
  const heights = [...at.values()].map(([, y]) => y);
  const middle = (Math.min(...heights) + Math.max(...heights)) / 2;
  const pairs = all.flatMap((a, i) => all.slice(i + 1).map((b) => [a, b] as const));
  const pick = (thing: Thing) => ({
    role: props.onSelect ? ("button" as const) : undefined,
    tabindex: props.onSelect ? 0 : undefined,
    onClick: (event: Event) => {
      event.stopPropagation();
      props.onSelect?.(thing);
    },
    onKeyDown: (event: KeyboardEvent) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      event.stopPropagation();
      props.onSelect?.(thing);
    },
  });
  return (
    <Sheet {...props} role="group" label={t.live.topology} onClick={() => props.onSelect?.(undefined)}>
      {pairs.map(([a, b]) => {
        const [[ax, ay], [bx, by]] = [at.get(a.name)!, at.get(b.name)!];
        const state = linkState(a, b);
        const chosen = selected?.kind === "link" && selected.a === a.name && selected.b === b.name;
        const colour = state === "cut" ? colours.bad : state === "up" ? colours.faint : colours.line;
        const middle = [(ax + bx) / 2, (ay + by) / 2] as const;
        return (
          <g
            key={`${a.name} ${b.name}`}
            class="live-link"
            aria-label={`${t.live.link(a.name, b.name)}: ${t.live.links[state]}`}
            {...pick({ kind: "link", a: a.name, b: b.name })}
          >
            <line x1={ax} y1={ay} x2={bx} y2={by} stroke="transparent" stroke-width="18" />
            <line
              class="live-line"
              x1={ax}
              y1={ay}
              x2={bx}
              y2={by}
              stroke={chosen ? colours.accent : colour}
              stroke-width={chosen ? 3 : state === "up" ? 1.2 : 1.8}
              stroke-dasharray={state === "up" ? undefined : state === "cut" ? "2 7" : "4 5"}
              stroke-linecap="round"
            />
            {state === "cut" && (
              <g transform={`translate(${middle[0]} ${middle[1]})`}>
                <circle r="10" fill={colours.panel} />
                <path d="M-5 -5L5 5M5 -5L-5 5" stroke={colours.bad} stroke-width="2.4" stroke-linecap="round" />
              </g>
            )}
          </g>
        );
      })}
      <Flights at={at} hidden={props.hidden} still={props.still} colours={colours} />
      {all.map((it) => (
        <Node
          key={it.name}
          it={it}
          at={at.get(it.name)!}
          middle={middle}
          colours={colours}
          chosen={selected?.kind === "member" && selected.name === it.name}
          pick={pick({ kind: "member", name: it.name })}
        />
      ))}
    </Sheet>
  );
}

function Node(props: {
  it: Member;
  at: [number, number];
  middle: number;
  colours: Palette;
  chosen: boolean;
  pick: object;
}) {
  const { it, colours, chosen } = props;
  const [x, y] = props.at;
  const look = looks(it, colours);
  const lease = it.status?.lease_ms ?? 1;
  const left = it.until === undefined || it.state === "gone" ? 0 : Math.max(0, Math.min(1, (it.until - now()) / lease));
  const round = 2 * Math.PI * 31;
  const isLeader = leader() === it.name;
  const roles = [presides.value === it.name && it.state !== "gone" && t.live.presides, isLeader && t.live.leads].filter(Boolean);
  const held = it.locks.filter((span) => span.held && span.to === undefined);
  // Words stand away from the middle, where the links are.
  const above = y < props.middle - 4;
  // Who has a part in it is a member.
  const words = (roles.length > 0 ? roles : [look.word]).join(" · ");
  return (
    <g
      class="live-node"
      data-member={it.name}
      data-state={it.state}
      transform={`translate(${x} ${y})`}
      {...props.pick}
    >
      <circle r="36" fill={colours.panel} />
      {chosen && <circle r="38" fill="none" stroke={colours.accent} stroke-width="2.5" />}
      <circle r="31" fill="none" stroke={colours.line} stroke-width="3.5" />
      {left > 0 && (
        <circle
          r="31"
          fill="none"
          stroke={left < 0.4 ? colours.bad : colours.good}
          stroke-width="3.5"
          stroke-linecap="round"
          stroke-dasharray={`${left * round} ${round}`}
          transform="rotate(-90)"
        />
      )}
      <circle
        r="24"
        fill={look.fill}
        stroke={look.edge}
        stroke-width="2"
        stroke-dasharray={it.state === "gone" ? "3 4" : undefined}
      />
      <text text-anchor="middle" dominant-baseline="central" font-size="17" font-weight="650" fill={look.ink}>
        {it.name}
      </text>
      {it.state === "gone" && (
        <g transform="translate(20 -20)">
          <circle r="10" fill={colours.bad} />
          <path d="M-3.6 -3.6l7.2 7.2m0 -7.2l-7.2 7.2" stroke={colours.panel} stroke-width="2.4" stroke-linecap="round" />
        </g>
      )}
      {it.state === "paused" && (
        <g transform="translate(20 -20)">
          <circle r="10" fill={colours.ink} />
          <path d="M-3 -4v8M3 -4v8" stroke={colours.paper} stroke-width="2.6" />
        </g>
      )}
      <text text-anchor="middle" y={above ? -46 : held.length > 0 ? 76 : 56} font-size="12.5" font-weight="550" fill={colours.soft}>
        {words}
      </text>
      <Pills held={held} colours={colours} />
    </g>
  );
}

/** The first lock that is held at a member and the first role that is led there, below it. */
function Pills({ held, colours }: { held: LockSpan[]; colours: Palette }) {
  const kinds = [held.filter((span) => !span.role), held.filter((span) => span.role)].filter((list) => list.length > 0);
  const most = kinds.length > 1 ? 9 : 16;
  const pills = kinds.map((list) => {
    const { lock, role } = list[0]!;
    const name = lock.length > most ? `${lock.slice(0, most - 1)}…` : lock;
    const text = list.length > 1 ? `${name} +${list.length - 1}` : name;
    return { text, role, width: 22 + text.length * 6.6 };
  });
  const whole = pills.reduce((sum, { width }) => sum + width + 4, -4);
  let left = -whole / 2;
  return (
    <>
      {pills.map(({ text, role, width }) => {
        const x = left + width / 2;
        left += width + 4;
        return (
          <g key={String(role)} transform={`translate(${x} 47)`}>
            <rect
              x={-width / 2}
              y="-10"
              width={width}
              height="20"
              rx="10"
              fill={role ? colours.leading[0] : colours.inside[0]}
              stroke={colours.panel}
              stroke-width="2"
            />
            <text
              text-anchor="middle"
              dominant-baseline="central"
              font-size="11.5"
              font-weight="600"
              fill={role ? "#171b21" : colours.paper}
            >
              {text}
            </text>
          </g>
        );
      })}
    </>
  );
}

/** Who leads the consensus, as most of those who run say. */
export function leader(): string | undefined {
  const votes = new Map<string, number>();
  for (const it of members.values()) {
    const named = it.state === "gone" || it.state === "paused" ? null : it.status?.authority.leader;
    if (named) votes.set(named, (votes.get(named) ?? 0) + 1);
  }
  return [...votes].sort((a, b) => b[1] - a[1])[0]?.[0];
}

/** Messages of the last moment, on their way. They are moved without asking anybody to draw anew. */
function Flights(props: { at: Map<string, [number, number]>; hidden: Set<About>; still: boolean; colours: Palette }) {
  const group = useRef<SVGGElement>(null);
  const latest = useRef(props);
  latest.current = props;
  useEffect(() => {
    let frame = 0;
    let drawn = 0;
    const draw = (passed: number) => {
      frame = requestAnimationFrame(draw);
      // Half of all frames are enough for dots, and leave the machine to the cluster.
      if (passed - drawn < 25) return;
      drawn = passed;
      const { at, hidden, still, colours } = latest.current;
      const dots = group.current?.children;
      if (!dots) return;
      const time = now();
      let used = 0;
      for (let i = messages.length - 1; i >= 0 && used < FLYING && !still; i--) {
        const { at: came, from, to, about } = messages[i]!;
        const part = (time - came) / FLIGHT;
        if (part > 1.2) break;
        const [a, b] = [at.get(from), at.get(to)];
        if (part < 0 || part > 1 || hidden.has(about) || !a || !b) continue;
        const dot = dots[used++]!;
        dot.setAttribute("cx", String(a[0] + (b[0] - a[0]) * part));
        dot.setAttribute("cy", String(a[1] + (b[1] - a[1]) * part));
        dot.setAttribute("fill", aboutColour(colours, about));
        dot.setAttribute("visibility", "visible");
      }
      for (let i = used; i < dots.length; i++) dots[i]!.setAttribute("visibility", "hidden");
    };
    frame = requestAnimationFrame(draw);
    return () => cancelAnimationFrame(frame);
  }, []);
  return (
    <g ref={group} aria-hidden="true">
      {Array.from({ length: FLYING }, (_, i) => (
        <circle key={i} r="4" visibility="hidden" />
      ))}
    </g>
  );
}

/** A time of the story, as minutes and seconds since it began. */
export function clock(at: number, exact = true): string {
  const seconds = Math.max(0, (at - begin()) / 1000);
  const minutes = Math.floor(seconds / 60);
  const rest = seconds - minutes * 60;
  return `${minutes}:${(exact ? rest.toFixed(1) : Math.round(rest).toString()).padStart(exact ? 4 : 2, "0")}`;
}

const NAMES = 44;
const TOP = 30;

/** Views, leases, locks and messages over time: a line for each member. */
export function ViewsPicture(props: {
  width: number;
  height: number;
  /** How much is seen, in milliseconds. */
  window: number;
  /** What is at the right end. */
  end: number;
  /** Does the end move? */
  moves: boolean;
  hidden: Set<About>;
  svg?: { current: SVGSVGElement | null };
}) {
  void version.value;
  const { width, height, window, end } = props;
  const colours = palette();
  const all = [...members.values()];
  const plot = Math.max(60, width - NAMES - 16);
  const future = props.moves ? 0.1 * window : 0;
  const start = end + future - window;
  const x = (time: number) => NAMES + ((time - start) / window) * plot;
  const row = Math.min(64, (height - TOP - 14) / Math.max(1, all.length));
  const lane = new Map(all.map((it, place) => [it.name, TOP + row * (place + 0.5)]));
  const bar = Math.min(22, row * 0.46);
  const right = NAMES + plot;
  const between = (from: number, to: number | undefined) =>
    [Math.max(NAMES, x(from)), Math.min(props.moves ? x(end) : right, x(to ?? end))] as const;
  return (
    <Sheet {...props} role="img" label={t.live.spacetime}>
      <Ticks {...{ start, window, x, right, height, colours }} busy={props.moves ? x(end) : undefined} />
      {(["consensus", "founding", "seat", "lock"] as const)
        .filter((about) => !props.hidden.has(about))
        .map((about) => (
          <path
            key={about}
            d={arrows(about, start, props.moves ? end : end + future, x, lane)}
            stroke={aboutColour(colours, about)}
            stroke-width="1"
            stroke-opacity={(about === "lock" ? 0.6 : 0.22) * (window > 12_000 ? 0.6 : 1.4)}
            fill="none"
          />
        ))}
      {all.map((it) => {
        const y = lane.get(it.name)!;
        const parts: ComponentChildren[] = [];
        for (const span of it.views) {
          // Who stands still is in a view no longer than it may act.
          const [a, b] = between(span.from, span.to ?? Math.min(end, it.until ?? end));
          if (b <= a) continue;
          const colour = viewColour(colours, span.epoch);
          // Signs within the bar are not written upon.
          const signs = it.marks.map(({ at }) => x(at)).filter((place) => place > a - 10 && place < b + 10);
          const begin = a + (signs.some((place) => place < a + 10) ? 16 : 7);
          const room = Math.min(b, ...signs.filter((place) => place >= a + 10).map((place) => place - 6)) - begin;
          const label = room > 74 ? t.live.view(short(span.epoch)) : room > 36 ? short(span.epoch) : "";
          parts.push(
            <g key={`v${span.epoch} ${span.from}`}>
              <rect x={a} y={y - bar / 2} width={b - a} height={bar} rx="4" fill={colours.panel} />
              <rect
                x={a}
                y={y - bar / 2}
                width={b - a}
                height={bar}
                rx="4"
                fill={colour}
                fill-opacity={colours.dark ? 0.34 : 0.2}
                stroke={colour}
                stroke-width="1.2"
              />
              {label && (
                <text x={begin} y={y} dominant-baseline="central" font-size="11.5" font-weight="600" fill={colours.ink}>
                  {label}
                </text>
              )}
            </g>,
          );
        }
        for (const span of it.paused) {
          const [a, b] = between(span.from, span.to);
          if (b > a) parts.push(<Hatch key={`p${span.from}`} x={a} y={y} width={b - a} bar={bar} colours={colours} />);
        }
        for (const span of it.gone) {
          const [a, b] = between(span.from, span.to);
          if (b > a)
            parts.push(
              <g key={`g${span.from}`}>
                <rect x={a} y={y - bar / 2} width={b - a} height={bar} fill={colours.panel} />
                <line x1={a} y1={y} x2={b} y2={y} stroke={colours.bad} stroke-width="1.6" stroke-dasharray="1 6" stroke-linecap="round" />
              </g>,
            );
        }
        parts.push(<Held key="held" it={it} between={between} top={y + bar / 2 + 3} room={row - bar - 6} colours={colours} />);
        for (const { at, what } of it.marks) {
          const place = x(at);
          if (place >= NAMES && place <= right) parts.push(<Sign key={`m${at}`} what={what} x={place} y={y} colours={colours} />);
        }
        const lease = props.moves && it.until !== undefined && it.until > end && it.state !== "gone" ? x(it.until) : undefined;
        return (
          <g key={it.name}>
            <text x={NAMES - 14} y={y} text-anchor="end" dominant-baseline="central" font-size="14" font-weight="650" fill={colours.ink}>
              {it.name}
            </text>
            <line x1={NAMES} y1={y} x2={right} y2={y} stroke={colours.line} stroke-width="1.4" />
            {parts}
            {lease !== undefined && (
              <g>
                <line x1={x(end)} y1={y} x2={Math.min(lease, right + 10)} y2={y} stroke={colours.good} stroke-width="3" stroke-linecap="round" />
                <line x1={Math.min(lease, right + 10)} y1={y - 6} x2={Math.min(lease, right + 10)} y2={y + 6} stroke={colours.good} stroke-width="2.4" stroke-linecap="round" />
              </g>
            )}
          </g>
        );
      })}
      {props.moves && <line x1={x(end)} y1={TOP - 8} x2={x(end)} y2={height - 8} stroke={colours.accent} stroke-width="1.6" />}
      {props.moves && (
        <g transform={`translate(${x(end)} ${TOP - 17})`}>
          <rect x="-21" y="-10" width="42" height="20" rx="10" fill={colours.accent} />
          <text text-anchor="middle" dominant-baseline="central" font-size="11.5" font-weight="650" fill={colours.panel}>
            {t.live.now}
          </text>
        </g>
      )}
    </Sheet>
  );
}

/** Locks and roles under the bar, each in its place as long as it is held or waited for. */
function Held(props: {
  it: Member;
  between: (from: number, to: number | undefined) => readonly [number, number];
  top: number;
  room: number;
  colours: Palette;
}) {
  const { it, colours } = props;
  const ends: number[] = [];
  const bars = it.locks.flatMap((span) => {
    const [a, b] = props.between(span.from, span.to);
    if (b <= a) return [];
    const free = ends.findIndex((end) => end <= a);
    const place = free < 0 ? ends.length : free;
    ends[place] = b;
    return [{ span, a, b, place }];
  });
  const wide = Math.max(3, Math.min(13, props.room / Math.max(1, ends.length) - 2));
  return (
    <>
      {bars.map(({ span, a, b, place }) => {
        const [fill, edge] = !span.held ? colours.wanting : span.role ? colours.leading : colours.inside;
        const ink = !span.held ? colours.ink : span.role ? "#171b21" : colours.paper;
        const fits = wide >= 11 && b - a > 12 + span.lock.length * 6;
        const top = props.top + place * (wide + 2);
        return (
          <g key={`${span.lock}${span.role}${span.owner}${span.from}`}>
            <title>{`${span.lock}, ${span.owner}`}</title>
            <rect x={a} y={top} width={b - a} height={wide} rx={wide / 2} fill={fill} stroke={edge} stroke-width="0.8" />
            {fits && (
              <text x={a + 6} y={top + wide / 2 + 0.5} dominant-baseline="central" font-size="9.5" font-weight="650" fill={ink}>
                {span.lock}
              </text>
            )}
          </g>
        );
      })}
    </>
  );
}

function Ticks(props: { start: number; window: number; x: (time: number) => number; right: number; height: number; colours: Palette; busy?: number }) {
  const { start, window, x, right, height, colours } = props;
  const step = [500, 1000, 2000, 5000, 10_000, 30_000, 60_000, 120_000].find((one) => window / one <= 9) ?? 300_000;
  const zero = begin();
  const list: number[] = [];
  for (let k = Math.ceil((start - zero) / step); zero + k * step < start + window; k++) {
    if (k >= 0) list.push(zero + k * step);
  }
  return (
    <g>
      {list.map((time) => {
        const place = x(time);
        if (place < NAMES || place > right) return null;
        return (
          <g key={time}>
            <line x1={place} y1={TOP - 6} x2={place} y2={height - 10} stroke={colours.line} stroke-width="1" />
            {Math.abs(place - (props.busy ?? Number.NaN)) < 40 || (
              <text x={place} y={TOP - 16} text-anchor="middle" font-size="11.5" fill={colours.soft} dominant-baseline="central">
                {clock(time, step < 1000)}
              </text>
            )}
          </g>
        );
      })}
    </g>
  );
}

function arrows(about: About, start: number, end: number, x: (time: number) => number, lane: Map<string, number>): string {
  const parts: string[] = [];
  // More than a few at the same place cannot be told apart.
  const drawn = new Map<number, number>();
  for (let i = messages.length - 1; i >= 0; i--) {
    const one = messages[i]!;
    if (one.at < start) break;
    if (one.about !== about || one.at > end) continue;
    const [from, to] = [lane.get(one.from), lane.get(one.to)];
    if (from === undefined || to === undefined) continue;
    const place = Math.round(x(one.at) / 2) * 2;
    const already = drawn.get(place) ?? 0;
    if (already === 3) continue;
    drawn.set(place, already + 1);
    const head = to > from ? -4 : 4;
    parts.push(`M${place} ${from.toFixed(1)}V${to.toFixed(1)}m-2.2 ${head}l2.2 ${-head}l2.2 ${head}`);
  }
  return parts.join("");
}

function Hatch(props: { x: number; y: number; width: number; bar: number; colours: Palette }) {
  const { x, y, width, bar, colours } = props;
  const lines: string[] = [];
  for (let place = x + 3; place < x + width; place += 7) lines.push(`M${place.toFixed(1)} ${y + bar / 2}l4 ${-bar}`);
  return (
    <g>
      <rect x={x} y={y - bar / 2} width={width} height={bar} rx="4" fill={colours.panel} fill-opacity="0.55" />
      <path d={lines.join("")} stroke={colours.soft} stroke-width="1.3" />
    </g>
  );
}

function Sign(props: { what: Member["marks"][number]["what"]; x: number; y: number; colours: Palette }) {
  const { what, x, y, colours } = props;
  const common = { "stroke-width": "2.6", "stroke-linecap": "round", fill: "none" } as const;
  switch (what) {
    case "kill":
      return <path d={`M${x - 6} ${y - 6}l12 12m0 -12l-12 12`} stroke={colours.bad} {...common} />;
    case "start":
    case "cont":
      return <path d={`M${x - 4} ${y - 6}v12l9 -6z`} fill={colours.good} />;
    case "stop":
      return <path d={`M${x - 3} ${y - 6}v12m6 -12v12`} stroke={colours.soft} {...common} />;
    case "lost":
      return <circle cx={x} cy={y} r="5" stroke={colours.bad} stroke-width="2.4" fill={colours.panel} />;
    default:
      return <circle cx={x} cy={y} r="4" fill={colours.soft} />;
  }
}
