// Quorums: build a system, look at its quorums, kill nodes, and see what is left.

import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { quick, Refused } from "../engine/engine";
import { catalogue } from "../model/catalogue";
import { go, here, said, word } from "../model/link";
import { Chart, SeriesMark, short } from "../parts/chart";
import { Icon } from "../parts/icons";
import { Field, Menu, Select, Slider, save, savePng, Text } from "../parts/ui";
import { t } from "../texts";

interface System {
  kind: string;
  nodes: number;
  quorums: number[][] | null;
  count: number | null;
  size_min: number;
  size_max: number;
  load: number | null;
  load_exact: string | null;
  load_bounds?: [number, number];
  resilience: number | null;
  availability: number;
  intersecting: boolean;
  coterie: boolean | null;
  symmetric: boolean | null;
  non_dominated: boolean | null;
  ideal: boolean | null;
  witnesses: Record<string, string>;
  strategy: { quorum: number[]; probability: string }[] | null;
  places: [number, number][];
  lines: [number[], string][];
  weights?: number[];
  need?: number;
}

const KINDS: [kind: string, nodes: number | undefined, parameters: string][] = [
  ["grid", 16, ""],
  ["projective-plane", 13, ""],
  ["majority", 7, ""],
  ["crumbling-wall", undefined, "1,2,3,4"],
  ["tree", 15, ""],
  ["weighted", undefined, "3,2,2,1,1"],
  ["singleton", 5, ""],
  ["all", 5, ""],
  ["custom", undefined, "1,2;2,3;1,3"],
];

const PLANES = [3, 7, 13, 21, 31, 57, 73];

export function QuorumsView() {
  const place = here.value;
  const [kindName = "grid", parameters = ""] = (place.about || "grid").split(/:(.*)/s);
  const usual = KINDS.find(([kind]) => kind === kindName);
  const own = usual?.[2] ?? "";
  const about = own !== "" ? `${kindName}:${parameters || own}` : kindName;
  const nodes = own !== "" ? undefined : Number(word(place.words, "nodes") ?? usual?.[1] ?? 9);
  const p = Number(word(place.words, "p") ?? 0.1);
  const system = useSignal<System | undefined>(undefined);
  const curves = useSignal<{ name: string; points: [number, number][] }[]>([]);
  const table = useSignal<Record<string, unknown>[]>([]);
  const wrong = useSignal("");
  const dead = useSignal<Set<number>>(new Set());
  const shown = useSignal<number | undefined>(0);
  const picked = useSignal<number | undefined>(undefined);
  useEffect(() => {
    if (!catalogue.value) return;
    dead.value = new Set();
    shown.value = 0;
    picked.value = undefined;
  }, [about, nodes]);
  useEffect(() => {
    if (!catalogue.value) return;
    let gone = false;
    const load = async () => {
      try {
        const found = (await quick.ask({ do: "quorum", kind: about, nodes: nodes ?? null, p })) as unknown as System;
        if (gone) return;
        system.value = found;
        wrong.value = "";
        const lines: { name: string; points: [number, number][] }[] = [];
        const others = [about, "majority", "singleton"].filter((one, i, all) => all.indexOf(one) === i);
        for (const other of others) {
          const answer = await quick.ask({
            do: "availability",
            kind: other,
            nodes: other === about ? (nodes ?? null) : found.nodes,
          });
          if (gone) return;
          lines.push({ name: t.quorums.names[other.split(":")[0]!] ?? other, points: answer["points"] as [number, number][] });
        }
        curves.value = lines;
        if (found.nodes <= 40) {
          const all = await quick.ask({ do: "quorums", nodes: found.nodes, p });
          if (!gone) table.value = all["rows"] as Record<string, unknown>[];
        } else {
          table.value = [];
        }
      } catch (error) {
        if (!gone) wrong.value = error instanceof Refused ? error.message : String(error);
      }
    };
    void load();
    return () => {
      gone = true;
    };
  }, [about, nodes, p, catalogue.value !== undefined]);
  const set = (name: string, text: string | undefined) =>
    go({ view: "quorums", about: place.about || "grid", words: said(place.words, name, text) }, true);
  const it = system.value;
  const alive = it?.quorums?.filter((quorum) => quorum.every((node) => !dead.value.has(node))) ?? [];
  const votes = it?.weights
    ? it.weights.reduce((sum, weight, i) => sum + (dead.value.has(i + 1) ? 0 : weight), 0) >= it.need!
    : undefined;
  const someAlive = it?.quorums ? alive.length > 0 : votes;
  const highlighted =
    shown.value !== undefined && it?.quorums ? it.quorums[shown.value] : undefined;
  return (
    <div class="quorum-view">
      <div class="settings" tabIndex={0} role="region" aria-label={t.run.settings}>
        <h1>{t.quorums.title}</h1>
        <p class="summary">{t.quorums.lead}</p>
        <Field label={t.quorums.kind}>
          {(id) => (
            <Select
              id={id}
              value={kindName}
              options={KINDS.map(([kind]) => [kind, t.quorums.names[kind] ?? kind])}
              onChange={(kind) => go({ view: "quorums", about: kind, words: p === 0.1 ? [] : [["p", String(p)]] })}
            />
          )}
        </Field>
        {own !== "" ? (
          <Field label={t.quorums.parameters}>
            {(id) => (
              <Text
                id={id}
                value={parameters || own}
                onChange={(value) => go({ view: "quorums", about: `${kindName}:${value}`, words: place.words }, true)}
              />
            )}
          </Field>
        ) : kindName === "projective-plane" ? (
          <Field label={t.quorums.nodes}>
            {(id) => (
              <Select
                id={id}
                value={String(nodes)}
                options={[...new Set([...PLANES, nodes ?? 13])].sort((a, b) => a - b).map((one) => [String(one), String(one)])}
                onChange={(value) => set("nodes", value)}
              />
            )}
          </Field>
        ) : (
          <Field label={t.quorums.nodes}>
            {(id) => (
              <Slider id={id} value={nodes ?? 9} min={1} max={49} onChange={(value) => set("nodes", String(value))} />
            )}
          </Field>
        )}
        <Field label={t.quorums.p}>
          {(id) => (
            <Slider
              id={id}
              value={p}
              min={0}
              max={1}
              step={0.01}
              show={(value) => value.toFixed(2)}
              onChange={(value) => set("p", String(value))}
            />
          )}
        </Field>
        {it && (
          <>
            <dl class="big-facts">
              <div title={t.quorums.loadHelp}>
                <dt>{t.quorums.load}</dt>
                <dd>
                  {it.load !== null ? short(it.load) : it.load_bounds ? `${short(it.load_bounds[0])}–${short(it.load_bounds[1])}` : "?"}
                  {it.load_exact && it.load_exact.length < 9 && <small> {it.load_exact}</small>}
                </dd>
              </div>
              <div title={t.quorums.resilienceHelp}>
                <dt>{t.quorums.resilience}</dt>
                <dd>{it.resilience ?? "?"}</dd>
              </div>
              <div>
                <dt>{t.quorums.availability}</dt>
                <dd>{it.availability.toFixed(4)}</dd>
              </div>
              <div>
                <dt>{t.quorums.count}</dt>
                <dd>{it.count?.toLocaleString("en") ?? "?"}</dd>
              </div>
              <div>
                <dt>{t.quorums.sizes}</dt>
                <dd>{it.size_min === it.size_max ? it.size_min : `${it.size_min}–${it.size_max}`}</dd>
              </div>
            </dl>
            <ul class="properties">
              {(["intersecting", "coterie", "symmetric", "non_dominated", "ideal"] as const).map((name) => (
                <li key={name} title={it.witnesses[name]}>
                  <Icon name={it[name] === true ? "check" : it[name] === false ? "cross" : "help"} size={15} />
                  <span>{t.quorums[name]}</span>
                  {it[name] === false && it.witnesses[name] && <span class="quiet">{it.witnesses[name]}</span>}
                </li>
              ))}
            </ul>
            <a class="button" href={`#/run/mutex/maekawa?nodes=${it.nodes}&requests=1&quorum=${encodeURIComponent(about)}`}>
              {t.quorums.use}
            </a>
          </>
        )}
      </div>
      <div class="quorum-middle">
        {wrong.value && (
          <p class="refused" role="alert">
            {wrong.value}
          </p>
        )}
        {it && (
          <>
            <section class="stage quorum-stage">
              <QuorumPicture
                system={it}
                dead={dead.value}
                quorum={highlighted}
                picked={picked.value}
                onNode={(node) => {
                  const next = new Set(dead.value);
                  if (!next.delete(node)) next.add(node);
                  dead.value = next;
                }}
                onHover={(node) => (picked.value = node)}
              />
              <div class={`alive ${someAlive === false ? "bad" : "good"}`} role="status">
                <Icon name={someAlive === false ? "cross" : "check"} size={16} />
                {it.quorums
                  ? alive.length > 0
                    ? t.quorums.alive(alive.length, it.quorums.length)
                    : t.quorums.noneAlive
                  : someAlive
                    ? t.quorums.someAlive
                    : someAlive === false
                      ? t.quorums.noneAlive
                      : t.quorums.unknown}
                {dead.value.size > 0 && (
                  <button type="button" class="link-button" onClick={() => (dead.value = new Set())}>
                    {t.quorums.revive}
                  </button>
                )}
              </div>
            </section>
            <section class="quorum-list" aria-label={t.quorums.list}>
              <h2>{t.quorums.list}</h2>
              <p class="quiet">{it.quorums ? t.quorums.hover : t.quorums.tooMany}</p>
              <ul tabIndex={0} aria-label={t.quorums.list}>
                {it.quorums?.slice(0, 300).map((quorum, i) => {
                  const isDead = quorum.some((node) => dead.value.has(node));
                  const faded = picked.value !== undefined && !quorum.includes(picked.value);
                  return (
                    <li key={quorum.join(",")}>
                      <button
                        type="button"
                        class={`quorum${isDead ? " dead" : ""}${faded ? " faded" : ""}`}
                        aria-pressed={shown.value === i}
                        onPointerEnter={() => (shown.value = i)}
                        onFocus={() => (shown.value = i)}
                        onClick={() => (shown.value = i)}
                      >
                        {quorum.join(" ")}
                      </button>
                    </li>
                  );
                })}
              </ul>
            </section>
            <section class="quorum-curves">
              <h2>{t.quorums.over}</h2>
              <Chart
                title={t.quorums.over}
                height={300}
                series={curves.value.map((curve, kind) => ({
                  name: curve.name,
                  kind,
                  points: [],
                  theory: curve.points.map(([x, y]): [number, number, number] => [x, y, y]),
                })).map((one, i) => ({ ...one, points: i === 0 ? curves.value[0]!.points.filter((_, j) => j % 2 === 0) : curves.value[i]!.points.filter((_, j) => j % 5 === 0) }))}
                xLabel="p"
                yLabel={t.quorums.availability}
              />
              <ul class="curve-names">
                {curves.value.map((curve, kind) => (
                  <li key={curve.name}>
                    <SeriesMark kind={kind} />
                    {curve.name}
                  </li>
                ))}
              </ul>
            </section>
            {table.value.length > 0 && <SideBySide rows={table.value} />}
          </>
        )}
      </div>
    </div>
  );
}

function QuorumPicture(props: {
  system: System;
  dead: Set<number>;
  quorum: number[] | undefined;
  picked: number | undefined;
  onNode: (node: number) => void;
  onHover: (node: number | undefined) => void;
}) {
  const { system, dead, quorum } = props;
  const svg = useRef<SVGSVGElement>(null);
  const xs = system.places.map(([x]) => x);
  const ys = system.places.map(([, y]) => y);
  const unit = 72;
  const pad = 52;
  const [left, top] = [Math.min(...xs), Math.min(...ys)];
  const width = Math.max(300, (Math.max(...xs) - left) * unit + 2 * pad);
  const height = Math.max(160, (Math.max(...ys) - top) * unit + 2 * pad);
  const shift = (width - ((Math.max(...xs) - left) * unit + 2 * pad)) / 2;
  const drop = (height - ((Math.max(...ys) - top) * unit + 2 * pad)) / 2;
  const at = (i: number): [number, number] => [
    pad + shift + (xs[i]! - left) * unit,
    pad + drop + (ys[i]! - top) * unit,
  ];
  const r = 19;
  const blob = quorum ? joined(quorum.map((node) => at(node - 1))) : "";
  const name = system.kind.replace(/\W+/g, "-");
  return (
    <>
      <svg
        ref={svg}
        xmlns="http://www.w3.org/2000/svg"
        class="quorum-picture"
        viewBox={`0 0 ${width} ${height}`}
        role="group"
        aria-label={`${t.quorums.title}: ${system.kind}`}
      >
        {system.lines.map(([nodes, form]) => {
          const points = nodes.map(at);
          const key = nodes.join("-") + form;
          if (form === "circle" && points.length === 3) {
            const [cx, cy, radius] = circle(points as [Pt, Pt, Pt]);
            return <circle key={key} cx={cx} cy={cy} r={radius} class="structure" />;
          }
          const d = points.map(([x, y], i) => `${i === 0 ? "M" : "L"}${x} ${y}`).join("");
          return <path key={key} d={form === "closed" ? `${d}Z` : d} class="structure" />;
        })}
        {blob && <path d={blob} class="blob" style={{ strokeWidth: r * 2 + 14 }} />}
        {system.places.map((_, i) => {
          const [x, y] = at(i);
          const node = i + 1;
          const inQuorum = quorum?.includes(node) ?? false;
          const isDead = dead.has(node);
          return (
            <g
              key={node}
              class={`quorum-node${inQuorum ? " in" : ""}${isDead ? " dead" : ""}${props.picked === node ? " picked" : ""}`}
              role="button"
              tabindex={0}
              aria-pressed={isDead}
              aria-label={t.inspect.aNode(node)}
              transform={`translate(${x} ${y})`}
              onClick={() => props.onNode(node)}
              onKeyDown={(event) => {
                if (event.key === "Enter" || event.key === " ") {
                  event.preventDefault();
                  props.onNode(node);
                }
              }}
              onPointerEnter={() => props.onHover(node)}
              onPointerLeave={() => props.onHover(undefined)}
            >
              <circle r={r} />
              <text text-anchor="middle" dy="5">
                {node}
              </text>
              {isDead && <path d={`M${-r * 0.6} ${-r * 0.6}L${r * 0.6} ${r * 0.6}M${r * 0.6} ${-r * 0.6}L${-r * 0.6} ${r * 0.6}`} class="x" />}
            </g>
          );
        })}
      </svg>
      <div class="picture-save">
        <Menu
          icon="save"
          label={t.compare.save}
          items={[
            ["SVG", () => save(`${name}.svg`, drawn(svg.current!), "image/svg+xml")],
            ["PNG", () => void savePng(`${name}.png`, drawn(svg.current!))],
          ]}
        />
      </div>
    </>
  );
}

/** The picture with its style written into it, so that it stands alone. */
function drawn(svg: SVGSVGElement): string {
  const copy = svg.cloneNode(true) as SVGSVGElement;
  const [from, to] = [svg.querySelectorAll("*"), copy.querySelectorAll("*")];
  from.forEach((element, i) => {
    const style = getComputedStyle(element);
    for (const name of ["fill", "stroke", "stroke-width", "opacity", "font-size", "font-weight", "stroke-linejoin"]) {
      to[i]!.setAttribute(name, style.getPropertyValue(name));
    }
  });
  const box = svg.viewBox.baseVal;
  copy.setAttribute("width", String(box.width));
  copy.setAttribute("height", String(box.height));
  copy.setAttribute("font-family", "ui-sans-serif, system-ui, sans-serif");
  return copy.outerHTML;
}

type Pt = [number, number];

/** The shortest lines that join some points (Prim's tree): of a row and a column it makes a cross. */
function joined(points: Pt[]): string {
  const left = points.slice(1);
  const inside = points.slice(0, 1);
  const only = inside[0];
  if (!only) return "";
  let path = `M${only[0]} ${only[1]}h0.01`;
  while (left.length > 0) {
    let best: [number, Pt, number] = [Infinity, only, 0];
    for (const from of inside) {
      left.forEach((to, i) => {
        const distance = Math.hypot(from[0] - to[0], from[1] - to[1]);
        if (distance < best[0] - 1e-6) best = [distance, from, i];
      });
    }
    const [to] = left.splice(best[2], 1);
    inside.push(to!);
    path += `M${best[1][0]} ${best[1][1]}L${to![0]} ${to![1]}`;
  }
  return path;
}

/** The circle through three points: its middle and its radius. */
function circle([a, b, c]: [Pt, Pt, Pt]): [number, number, number] {
  const d = 2 * (a[0] * (b[1] - c[1]) + b[0] * (c[1] - a[1]) + c[0] * (a[1] - b[1]));
  const s = (p: Pt) => p[0] * p[0] + p[1] * p[1];
  const x = (s(a) * (b[1] - c[1]) + s(b) * (c[1] - a[1]) + s(c) * (a[1] - b[1])) / d;
  const y = (s(a) * (c[0] - b[0]) + s(b) * (a[0] - c[0]) + s(c) * (b[0] - a[0])) / d;
  return [x, y, Math.hypot(a[0] - x, a[1] - y)];
}

function SideBySide({ rows }: { rows: Record<string, unknown>[] }) {
  const value = (row: Record<string, unknown>, key: string) => {
    const one = row[key];
    if (typeof one === "number") return short(one);
    if (typeof one === "boolean") return one ? t.quorums.yes : t.quorums.no;
    return "–";
  };
  return (
    <section class="table-section quorum-table">
      <h2>{t.quorums.all}</h2>
      <div class="table-scroll" tabIndex={0}>
        <table class="figures-table">
          <thead>
            <tr>
              <th scope="col">{t.quorums.kind}</th>
              <th scope="col">{t.quorums.sizes}</th>
              <th scope="col">{t.quorums.load}</th>
              <th scope="col">{t.quorums.resilience}</th>
              <th scope="col">{t.quorums.availability}</th>
              <th scope="col">{t.quorums.non_dominated}</th>
            </tr>
          </thead>
          <tbody>
            {rows.map((row) => {
              const kind = String(row["kind"]);
              return (
                <tr key={kind}>
                  <th scope="row">
                    <a href={`#/quorums/${encodeURIComponent(kind)}?nodes=${row["nodes"]}`}>{kind}</a>
                  </th>
                  <td class="number">
                    {row["size_min"] === row["size_max"] ? String(row["size_min"]) : `${row["size_min"]}–${row["size_max"]}`}
                  </td>
                  <td class="number">{value(row, "load")}</td>
                  <td class="number">{value(row, "resilience")}</td>
                  <td class="number">{value(row, "availability")}</td>
                  <td>{value(row, "non_dominated")}</td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
    </section>
  );
}
