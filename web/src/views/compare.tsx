// Compare: all algorithms of a family in the same experiments, measured in the page.

import { signal, useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { Cancelled, measuring, Refused } from "../engine/engine";
import { algorithm, catalogue } from "../model/catalogue";
import { go, here, said, type Word, word } from "../model/link";
import { Chart, type Series, SeriesMark, short } from "../parts/chart";
import { Icon } from "../parts/icons";
import { Field, Segments, Select, Slider, Text } from "../parts/ui";
import { t } from "../texts";

type Row = Record<string, unknown> & { algorithm: string };

interface Figure {
  measured: number | null;
  formula: string | null;
  low: number | null;
  high: number | null;
  agrees: boolean | null;
}

const rows = signal<Row[]>([]);
const measuredFor = signal("");
const now = signal("");
const wrong = signal("");

const SIZES: Record<string, string> = {
  mutex: "4,9,16,25,36",
  election: "4,8,16,32,64",
  group: "4,8,16",
  detector: "",
  faults: "",
};
const LOSSES = "0,0.01,0.05,0.1,0.2";

const FIGURES: Record<string, [key: string, label: string][]> = {
  mutex: [
    ["messages_heavy", t.compare.heavy],
    ["messages_light", t.compare.light],
    ["sync_delay", t.compare.sync],
    ["load_max", t.compare.load],
  ],
  election: [
    ["messages", t.compare.messages],
    ["time", t.compare.time],
  ],
  group: [
    ["messages", t.compare.perMulticast],
    ["sendings", t.compare.sendings],
    ["data_messages", t.compare.dataMessages],
    ["latency_max", t.compare.latencyMax],
  ],
  detector: [
    ["detection_time", t.compare.detection],
    ["mistakes_per_hour", t.compare.mistakes],
    ["mistake_duration", t.compare.mistakeLasts],
    ["query_accuracy", t.compare.accuracy],
  ],
};

const TASKS: [string, string][] = [
  ["mutex", t.families["mutex"]!],
  ["election", t.families["election"]!],
  ["group", t.families["group"]!],
  ["detector", t.families["detector"]!],
  ["faults", t.compare.faults],
  ["sweep", t.compare.sweep],
];

async function measure(family: string, sizes: number[], losses: number[]): Promise<void> {
  rows.value = [];
  wrong.value = "";
  const key = JSON.stringify([family, sizes, losses]);
  measuredFor.value = key;
  // Size by size, so that there is something to see early.
  const parts: { sizes: number[]; losses: number[] }[] =
    family === "detector"
      ? losses.map((loss) => ({ sizes: [], losses: [loss] }))
      : family === "faults"
        ? [{ sizes: [], losses: [] }]
        : family === "group"
          ? sizes.flatMap((size) => losses.map((loss) => ({ sizes: [size], losses: [loss] })))
          : sizes.map((size) => ({ sizes: [size], losses: [] }));
  try {
    for (const part of parts) {
      const answer = await measuring.ask({ do: "compare", family, ...part, topology: null }, (progress) => {
        now.value = t.compare.measuring(String(progress["name"]), Number(progress["nodes"]));
      });
      if (measuredFor.value !== key) return;
      rows.value = [...rows.value, ...(answer["rows"] as Row[])];
    }
  } catch (error) {
    if (error instanceof Refused) wrong.value = `${error.argument}: ${error.message}`;
    else if (!(error instanceof Cancelled)) wrong.value = String(error);
  }
  if (measuredFor.value === key) now.value = "";
}

function stop(): void {
  measuring.stop();
  now.value = "";
}

function numbers(text: string): number[] {
  return text
    .split(",")
    .map((part) => Number(part.trim()))
    .filter((value) => Number.isFinite(value));
}

export function CompareView() {
  const place = here.value;
  const family = place.about || "mutex";
  const words = place.words;
  const set = (name: string, text: string | undefined) =>
    go({ view: "compare", about: family, words: said(words, name, text) }, true);
  return (
    <div class="page compare">
      <header class="page-head">
        <h1>{t.compare.title}</h1>
        <p class="lead">{family === "sweep" ? t.compare.sweepLead : t.compare.lead}</p>
        <Segments
          label={t.compare.family}
          value={family}
          options={TASKS}
          onChange={(value) => {
            stop();
            go({ view: "compare", about: value, words: [] });
          }}
        />
      </header>
      {family === "sweep" ? (
        <SweepPanel words={words} set={set} />
      ) : (
        <FamilyPanel key={family} family={family} words={words} set={set} />
      )}
    </div>
  );
}

type Set_ = (name: string, text: string | undefined) => void;

function FamilyPanel({ family, words, set }: { family: string; words: Word[]; set: Set_ }) {
  const sizes = word(words, "sizes") ?? SIZES[family] ?? "";
  const losses = word(words, "losses") ?? (family === "group" ? "0,0.1" : LOSSES);
  const loss = word(words, "loss") ?? "0";
  const figures = FIGURES[family] ?? [];
  const figure = word(words, "figure") ?? figures[0]?.[0] ?? "";
  const hidden = useSignal<Set<string>>(new Set());
  const logY = useSignal(family === "mutex" || family === "election");
  const start = () => void measure(family, numbers(sizes), numbers(losses));
  useEffect(() => {
    if (catalogue.value) start();
  }, [family, catalogue.value !== undefined]);
  const names = [...new Set(rows.value.map(rowName))];
  const all = series(rows.value, family, figure, Number(loss), names);
  const shown = all.filter((one) => !hidden.value.has(one.name));
  const toggle = (name: string) => {
    const next = new Set(hidden.value);
    if (!next.delete(name)) next.add(name);
    hidden.value = next;
  };
  return (
    <>
      <div class="controls">
        {sizes !== "" && (
          <Field label={t.compare.sizes}>
            {(id) => <Text id={id} value={sizes} onChange={(value) => set("sizes", value)} />}
          </Field>
        )}
        {(family === "group" || family === "detector") && (
          <Field label={t.compare.losses}>
            {(id) => <Text id={id} value={losses} onChange={(value) => set("losses", value)} />}
          </Field>
        )}
        {figures.length > 0 && (
          <Field label={t.compare.figure}>
            {(id) => <Select id={id} value={figure} options={figures} onChange={(value) => set("figure", value)} />}
          </Field>
        )}
        {family === "group" && (
          <Field label={t.run.loss}>
            {(id) => (
              <Select
                id={id}
                value={loss}
                options={numbers(losses).map((one) => [String(one), `${one * 100} %`])}
                onChange={(value) => set("loss", value)}
              />
            )}
          </Field>
        )}
        {now.value ? (
          <button type="button" class="button" onClick={stop}>
            {t.compare.stop}
          </button>
        ) : (
          <button type="button" class="button primary" onClick={start}>
            {t.compare.start}
          </button>
        )}
        <span class="quiet progress" role="status">
          {now.value}
        </span>
      </div>
      {wrong.value && (
        <p class="refused" role="alert">
          {wrong.value}
        </p>
      )}
      {figures.length > 0 && (
        <section class="chart-row">
          <Chart
            title={`${figures.find(([key]) => key === figure)?.[1]}`}
            series={shown}
            xLabel={family === "detector" ? t.compare.losses : t.compare.nodes}
            yLabel={figures.find(([key]) => key === figure)?.[1] ?? ""}
            logX={family !== "detector"}
            logY={logY.value}
            joined
          />
          <div class="series" role="group" aria-label={t.compare.pick}>
            <label class="toggle">
              <input type="checkbox" checked={logY.value} onChange={() => (logY.value = !logY.value)} />{" "}
              {t.compare.logarithmic}
            </label>
            {all.map((one) => (
              <button
                type="button"
                key={one.name}
                class="series-name"
                aria-pressed={!hidden.value.has(one.name)}
                onClick={() => toggle(one.name)}
              >
                <SeriesMark kind={one.kind} />
                {one.name}
              </button>
            ))}
            {all.length > 0 && (
              <button
                type="button"
                class="link-button"
                onClick={() => (hidden.value = hidden.value.size > 0 ? new Set() : new Set(names))}
              >
                {hidden.value.size > 0 ? t.compare.showAll : t.compare.hideAll}
              </button>
            )}
          </div>
        </section>
      )}
      {crossings(shown).length > 0 && (
        <ul class="crossings">
          {crossings(shown).map((line) => (
            <li key={line}>{line}</li>
          ))}
        </ul>
      )}
      <FamilyTable family={family} />
    </>
  );
}

function rowName(row: Row): string {
  const short = row.algorithm.split("/")[1] ?? row.algorithm;
  const more = (row["variant"] ?? row["setting"] ?? "") as string;
  return more ? `${short} ${more}` : short;
}

function figureOf(row: Row, key: string): Figure {
  const value = row[key];
  if (typeof value === "number") return { measured: value, formula: null, low: null, high: null, agrees: null };
  if (value === null || value === undefined) return { measured: null, formula: null, low: null, high: null, agrees: null };
  const object = value as Record<string, unknown>;
  if ("mean" in object) {
    const published = key === "messages";
    return {
      measured: object["mean"] as number | null,
      formula: published ? (row["formula"] as string | null) : null,
      low: published ? (row["low"] as number | null) : null,
      high: published ? (row["high"] as number | null) : null,
      agrees: published ? (row["agrees"] as boolean | null) : null,
    };
  }
  return object as unknown as Figure;
}

function series(rows: Row[], family: string, key: string, loss: number, names: string[]): Series[] {
  return names.map((name, kind) => {
    const mine = rows.filter((row) => rowName(row) === name && (family !== "group" || row["loss"] === loss));
    const points: [number, number][] = [];
    const theory: [number, number, number][] = [];
    for (const row of mine) {
      const x = Number(family === "detector" ? row["loss"] : row["nodes"]);
      const { measured, low, high } = figureOf(row, key);
      if (measured !== null) points.push([x, measured]);
      if (low !== null && high !== null) theory.push([x, low, high]);
    }
    return { name, kind, points, theory };
  });
}

/** Where two measured curves cross, for the few that are shown. */
function crossings(series: Series[]): string[] {
  const found: string[] = [];
  if (series.length > 5) return found;
  for (let i = 0; i < series.length; i++) {
    for (let j = i + 1; j < series.length; j++) {
      const [a, b] = [series[i]!, series[j]!];
      const common = a.points.flatMap(([x, y]) => {
        const other = b.points.find(([bx]) => bx === x);
        return other ? [[x, y - other[1]] as const] : [];
      });
      for (let k = 1; k < common.length; k++) {
        const [[x1, d1], [x2, d2]] = [common[k - 1]!, common[k]!];
        if (d1 === 0 || d1 * d2 >= 0) continue;
        const at = Math.exp(Math.log(x1) + (Math.log(x2) - Math.log(x1)) * (d1 / (d1 - d2)));
        found.push(t.compare.crossover(a.name, b.name, short(at)));
      }
    }
  }
  return found.slice(0, 6);
}

const COLUMNS: Record<string, [key: string, label: string][]> = {
  mutex: [
    ["nodes", t.compare.nodes],
    ["messages_light", t.compare.light],
    ["messages_heavy", t.compare.heavy],
    ["sync_delay", t.compare.sync],
    ["load_max", t.compare.load],
    ["bystander_crash", t.compare.bystander],
    ["holder_crash", t.compare.holder],
    ["loss", t.compare.lossy],
  ],
  election: [
    ["nodes", t.compare.nodes],
    ["topology", t.run.topology],
    ["messages", t.compare.messages],
    ["time", t.compare.time],
    ["bystander_crash", t.compare.bystander],
    ["best_crash", t.compare.bestCrash],
    ["initiator_crash", t.compare.starterCrash],
    ["loss", t.compare.lossy],
  ],
  group: [
    ["nodes", t.compare.nodes],
    ["loss", t.run.loss],
    ["messages", t.compare.messages],
    ["sendings", t.compare.sendings],
    ["latency", t.compare.latency],
    ["nacks", t.compare.nacks],
    ["repairs", t.compare.repairs],
    ["buffer_max", t.compare.buffer],
  ],
  detector: [
    ["loss", t.run.loss],
    ["detection_time", t.compare.detection],
    ["mistakes_per_hour", t.compare.mistakes],
    ["mistake_duration", t.compare.mistakeLasts],
    ["query_accuracy", t.compare.accuracy],
  ],
  faults: [
    ["bare_loss", t.compare.bareLoss],
    ["bare_node_1", t.compare.bareFirst],
    ["bare_holder", t.compare.bareHolder],
    ["reliable_rough", t.compare.rough],
    ["views_holder", t.compare.viewsHolder],
    ["views_waiter", t.compare.viewsWaiter],
    ["views_node_1", t.compare.viewsFirst],
  ],
};

function FamilyTable({ family }: { family: string }) {
  const size = useSignal<string>("");
  const columns = COLUMNS[family] ?? [];
  const sizes = [...new Set(rows.value.map((row) => String(row["nodes"] ?? "")))].filter((one) => one !== "");
  const chosen = sizes.includes(size.value) ? size.value : (sizes[sizes.length - 1] ?? "");
  const shown = rows.value.filter((row) => chosen === "" || String(row["nodes"]) === chosen);
  if (rows.value.length === 0) return null;
  return (
    <section class="table-section">
      {sizes.length > 1 && (
        <Segments
          label={t.compare.nodes}
          value={chosen}
          options={sizes.map((one) => [one, `N = ${one}`])}
          onChange={(value) => (size.value = value)}
        />
      )}
      <div class="table-scroll" tabIndex={0}>
        <table class="figures-table">
          <thead>
            <tr>
              <th scope="col">{t.compare.algorithm}</th>
              {columns
                .filter(([key]) => key !== "nodes")
                .map(([key, label]) => (
                  <th scope="col" key={key}>
                    {label}
                  </th>
                ))}
            </tr>
          </thead>
          <tbody>
            {shown.map((row, i) => (
              <tr key={`${rowName(row)}${i}`}>
                <th scope="row">
                  <a href={`#/run/${row.algorithm}`} title={algorithm(row.algorithm)?.summary}>
                    {rowName(row)}
                  </a>
                </th>
                {columns
                  .filter(([key]) => key !== "nodes")
                  .map(([key]) => (
                    <Cell key={key} row={row} name={key} />
                  ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function Cell({ row, name }: { row: Row; name: string }) {
  const value = row[name];
  if (typeof value === "string" || typeof value === "boolean") {
    const text = String(value);
    const good = /^(survives|fine|ok|true)$/i.test(text);
    const bad = /unsafe|false/i.test(text);
    const isWord = good || bad || /^(stops|waits)$/.test(text);
    return (
      <td>
        {isWord ? (
          <span class={`fate ${good ? "good" : bad ? "bad" : "open"}`}>
            <Icon name={good ? "check" : bad ? "cross" : "minus"} size={14} /> {text.toLowerCase()}
          </span>
        ) : (
          text
        )}
      </td>
    );
  }
  const figure = figureOf(row, name);
  if (figure.measured === null) return <td class="number quiet">–</td>;
  return (
    <td class="number">
      {short(figure.measured)}
      {figure.formula && (
        <span
          class={`formula ${figure.agrees === false ? "off" : ""}`}
          title={figure.agrees === false ? t.compare.disagrees : t.compare.agrees}
        >
          {figure.agrees !== null && <Icon name={figure.agrees ? "check" : "cross"} size={12} />} {figure.formula}
        </span>
      )}
    </td>
  );
}

const AXES: [string, string][] = [
  ["nodes", t.run.nodes],
  ["loss", t.run.loss],
  ["requests", t.run.arguments["requests"]!],
  ["load", t.compare.betweenWishes],
  ["cs", t.run.arguments["cs"]!],
  ["latency", t.run.latency],
];
const VALUES: Record<string, string> = {
  nodes: "3,5,9,17,33",
  loss: "0,0.05,0.1,0.2,0.3",
  requests: "1,2,4,8",
  load: "2,5,10,20,50,100",
  cs: "0.5,1,2,4,8",
  latency: "0.5,1,2,4",
};

interface Point {
  at: Record<string, string>;
  report: Record<string, unknown>;
}

function SweepPanel({ words, set }: { words: Word[]; set: Set_ }) {
  const name = word(words, "algorithm") ?? "mutex/suzuki-kasami";
  const axis = word(words, "axis") ?? "load";
  const values = word(words, "values") ?? VALUES[axis] ?? "1,2,4";
  const runs = Number(word(words, "runs") ?? 5);
  const rest = words.filter(([key]) => !["algorithm", "axis", "values", "runs", "figure"].includes(key));
  const points = useSignal<Point[]>([]);
  const names = useSignal<string[]>([]);
  const figure = word(words, "figure") ?? names.value.find((one) => one === "messages_per_entry") ?? names.value[0] ?? "";
  const start = async () => {
    wrong.value = "";
    now.value = name;
    try {
      const answer = await measuring.ask(
        { do: "sweep", algorithm: name, words: rest, axis, values: values.split(",").map((one) => one.trim()), runs },
        (progress) => (now.value = `${progress["done"]} / ${progress["of"]}`),
      );
      points.value = answer["points"] as Point[];
      names.value = (answer["figures"] as string[]).filter((one) => !one.startsWith("by_kind"));
    } catch (error) {
      if (error instanceof Refused) wrong.value = `${error.argument}: ${error.message}`;
      else if (!(error instanceof Cancelled)) wrong.value = String(error);
    }
    now.value = "";
  };
  useEffect(() => {
    if (catalogue.value) void start();
  }, [name, axis, values, runs, catalogue.value !== undefined]);
  const drawn = points.value.flatMap((point): { x: number; mean: number; low: number; high: number }[] => {
    const spread = (point.report["spread"] as Record<string, { min: number; max: number }> | undefined)?.[figure];
    const mean = figure.split(".").reduce<unknown>((part, key) => (part as Record<string, unknown>)?.[key], point.report);
    const x = Number(point.at[axis]);
    if (typeof mean !== "number" || !spread || !Number.isFinite(x)) return [];
    return [{ x, mean, low: spread.min, high: spread.max }];
  });
  return (
    <>
      <div class="controls">
        <Field label={t.compare.algorithm}>
          {(id) => (
            <Select
              id={id}
              value={name}
              options={(catalogue.value?.algorithms ?? []).map((one) => [one.name, one.name])}
              onChange={(value) => set("algorithm", value)}
            />
          )}
        </Field>
        <Field label={t.compare.axis}>
          {(id) => (
            <Select
              id={id}
              value={axis}
              options={AXES}
              onChange={(value) => go({ view: "compare", about: "sweep", words: [["algorithm", name], ["axis", value]] }, true)}
            />
          )}
        </Field>
        <Field label={t.compare.values}>
          {(id) => <Text id={id} value={values} onChange={(value) => set("values", value)} />}
        </Field>
        <Field label={t.compare.runs}>
          {(id) => <Slider id={id} value={runs} min={1} max={20} onChange={(value) => set("runs", String(value))} />}
        </Field>
        <Field label={t.compare.figure}>
          {(id) => (
            <Select
              id={id}
              value={figure}
              options={names.value.map((one) => [one, one.replaceAll("_", " ").replaceAll(".", " · ")])}
              onChange={(value) => set("figure", value)}
            />
          )}
        </Field>
        {now.value && (
          <button type="button" class="button" onClick={stop}>
            {t.compare.stop}
          </button>
        )}
        <span class="quiet progress" role="status">
          {now.value}
        </span>
      </div>
      {wrong.value && (
        <p class="refused" role="alert">
          {wrong.value}
        </p>
      )}
      <Chart
        title={`${name}: ${figure}`}
        series={[
          {
            name: name.split("/")[1]!,
            kind: 0,
            points: drawn.map(({ x, mean }): [number, number] => [x, mean]),
            theory: drawn.map(({ x, low, high }): [number, number, number] => [x, low, high]),
          },
        ]}
        xLabel={AXES.find(([key]) => key === axis)?.[1] ?? axis}
        yLabel={figure.replaceAll("_", " ").replaceAll(".", " · ")}
        joined
      />
    </>
  );
}
