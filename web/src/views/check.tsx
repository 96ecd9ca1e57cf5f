// Check: every order of a small system, and the shortest way to what goes wrong.

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { long } from "../engine/engine";
import { type Algorithm, algorithm, catalogue, family } from "../model/catalogue";
import { all, go, here, ofRun, said, type Word, word } from "../model/link";
import { Session } from "../model/session";
import { Icon } from "../parts/icons";
import { Inspector } from "../parts/inspector";
import { useKeys } from "../parts/keyboard";
import {
  AlgorithmTitle,
  ArgumentField,
  ChannelsField,
  CommandFold,
  errorsOf,
  OptionFields,
  Refusal,
  withOwn,
} from "../parts/settings";
import { Stage } from "../parts/stage";
import { Field, Fold, Select, Slider } from "../parts/ui";
import { Verdicts } from "../parts/verdicts";
import { t } from "../texts";

const session = new Session(long);
let shown = "";

interface Sample {
  states: number;
  depth: number;
  frontier: number;
}

const EXAMPLES: [label: string, about: string, words: Word[]][] = [
  [t.check.tries.deadlock, "mutex/maekawa-basic", []],
  [t.check.tries.reordered, "mutex/lamport", [["channels", "unordered"]]],
  [t.check.tries.lost, "mutex/ricart-agrawala", [["losses", "1"]]],
  [
    t.check.tries.leaders,
    "election/bully",
    [
      ["crashes", "1"],
      ["timers", "anytime"],
    ],
  ],
  [t.check.tries.well, "mutex/ricart-agrawala", [["requests", "2"]]],
];

export function CheckView() {
  const place = here.value;
  const name = place.about || "mutex/maekawa-basic";
  const about = algorithm(name);
  const words = place.words;
  const samples = useSignal<Sample[]>([]);
  const elapsed = useSignal(0);
  const key = JSON.stringify([name, ofRun(words)]);
  const start = () => {
    shown = key;
    samples.value = [];
    const begun = performance.now();
    session.story.value = undefined;
    session.answer.value = undefined;
    if (session.busy.peek()) long.stop();
    const asked = session.ask({ do: "check", algorithm: name, words: ofRun(words) }, 0);
    void asked.then((done) => {
      elapsed.value = performance.now() - begun;
      // What went wrong is seen at once; how it came to that, by stepping back.
      const story = session.story.peek();
      if (done && story) session.player.jump(story.recordCount);
    });
  };
  // A link to a check is a check: it begins by itself, unless only a view was asked for.
  useEffect(() => {
    if (catalogue.value && about && place.about !== "" && shown !== key) start();
  }, [key, place.about, catalogue.value !== undefined]);
  useEffect(() => {
    const now = session.progress.value as unknown as Sample | undefined;
    if (now && session.busy.value) samples.value = [...samples.value.slice(-400), now];
  }, [session.progress.value]);
  useKeys(session);
  const report = session.answer.value?.["report"] as Record<string, unknown> | undefined;
  const story = session.story.value;
  return (
    <div class="run check">
      <div class="sheet">
        <CheckSettings about={about} words={words} start={start} />
      </div>
      <div class="middle">
        <Refusal session={session} />
        <div class="check-result" role="status" aria-live="polite">
          {session.busy.value && (
            <Growth
              samples={samples.value}
              stop={() => {
                long.stop();
                session.busy.value = false;
              }}
            />
          )}
          {!session.busy.value && report && <Result report={report} ms={elapsed.value} words={words} name={name} />}
          {!session.busy.value && !report && !session.refused.value && <p class="quiet">{t.check.idle}</p>}
        </div>
        {story && !session.busy.value && (
          <Stage session={session} footer={<Verdicts session={session} />} />
        )}
        {!story && !session.busy.value && report && samples.value.length > 2 && <Growth samples={samples.value} />}
      </div>
      <Inspector session={session} />
    </div>
  );
}

function number(value: unknown): string {
  return Number(value ?? 0).toLocaleString("en");
}

/** How the states grow from level to level. */
function Growth({ samples, stop }: { samples: Sample[]; stop?: () => void }) {
  const last = samples[samples.length - 1];
  const [width, height] = [640, 180];
  const most = Math.max(10, last?.states ?? 10);
  const deep = Math.max(4, last?.depth ?? 4);
  const x = (depth: number) => (depth / deep) * width;
  const y = (states: number) => height - (Math.log10(Math.max(1, states)) / Math.log10(most)) * (height - 10);
  const line = samples.map((one, i) => `${i === 0 ? "M" : "L"}${x(one.depth).toFixed(1)} ${y(one.states).toFixed(1)}`);
  return (
    <div class="growth">
      <dl class="numbers">
        <div>
          <dt>{t.check.states}</dt>
          <dd>{number(last?.states)}</dd>
        </div>
        <div>
          <dt>{t.check.depth}</dt>
          <dd>{number(last?.depth)}</dd>
        </div>
        <div>
          <dt>{t.check.frontier}</dt>
          <dd>{number(last?.frontier)}</dd>
        </div>
      </dl>
      {samples.length > 1 && (
        <svg viewBox={`0 0 ${width} ${height}`} role="img" aria-label={`${t.check.states} / ${t.check.depth}`}>
          <path d={`${line.join("")}L${width} ${height}L0 ${height}Z`} class="growth-area" />
          <path d={line.join("")} class="growth-line" />
        </svg>
      )}
      {stop && (
        <button type="button" class="button" onClick={stop}>
          {t.check.cancel}
        </button>
      )}
    </div>
  );
}

function Result(props: { report: Record<string, unknown>; ms: number; words: Word[]; name: string }) {
  const { report } = props;
  const result = report["result"] as "holds" | "violated" | "deadlock" | "bounded";
  const bad = result === "violated" || result === "deadlock";
  const states = number(report["states"]);
  return (
    <div class={`result ${bad ? "bad" : result === "holds" ? "good" : "open"}`}>
      <p class="result-title">
        <Icon name={bad ? "cross" : result === "holds" ? "check" : "minus"} size={26} />
        {bad ? (result === "deadlock" ? t.check.deadlock : t.check.violated) : t.check[result]}
        {bad && <span class="quiet">{t.check.found(Number(report["steps"]))}</span>}
      </p>
      <p>
        {bad && (
          <>
            <strong>{String(report["property"]).replaceAll("_", " ")}</strong>: {String(report["text"])}
          </>
        )}
        {result === "holds" && t.check.holdsLong(states)}
        {result === "bounded" && t.check.boundedLong(states)}
      </p>
      <p class="quiet small">
        {states} {t.check.states} · {number(report["transitions"])} {t.check.transitions} · {t.check.depth}{" "}
        {number(report["depth"])} · {(props.ms / 1000).toFixed(2)} s
        {bad && (
          <>
            {" · "}
            <button
              type="button"
              class="link-button"
              onClick={() => {
                const moves = (session.answer.value?.["moves"] as string[]).slice(0, -1);
                go({ view: "play", about: props.name, words: [...ofRun(props.words), ["moves", moves.join(",")]] });
              }}
            >
              {t.check.takeOver}
            </button>
          </>
        )}
      </p>
    </div>
  );
}

const HERE = new Set(["requests", "quorum", "initiators", "ids", "criterion", "senders", "messages", "order", "load"]);

function CheckSettings(props: { about: Algorithm | undefined; words: Word[]; start: () => void }) {
  const { about, words } = props;
  if (!about) return <div class="settings" aria-busy="true" />;
  const name = about.name;
  const of = family(name);
  const set = (key: string, text: string | undefined) => {
    shown = "changed";
    const next = said(words, key, text);
    shown = JSON.stringify([name, ofRun(next)]);
    go({ view: "check", about: name, words: next }, true);
  };
  const error = errorsOf(session);
  const mine = (catalogue.value?.arguments ?? []).filter((one) => one.family === of && HERE.has(one.name));
  const asksQuorums = about.costs.some((cost) => cost.formula.includes("K"));
  return (
    <div class="settings" tabIndex={0} role="region" aria-label={t.run.settings}>
      <p class="family">{t.check.title}</p>
      <AlgorithmTitle name={name} />
      <p class="summary">{t.check.lead}</p>
      <div class="tries">
        <span class="tries-label">{t.check.examples}</span>
        {EXAMPLES.map(([label, about, words]) => (
          <button
            type="button"
            class="chip"
            key={label}
            onClick={() => {
              shown = "";
              go({ view: "check", about, words });
            }}
          >
            {label}
          </button>
        ))}
      </div>
      <button type="button" class="button primary" onClick={props.start} disabled={session.busy.value}>
        {session.answer.value ? t.check.again : t.check.start}
      </button>
      <Field label={t.run.nodes} error={error("nodes")}>
        {(id) => (
          <Slider
            id={id}
            value={Number(word(words, "nodes") ?? 3)}
            min={1}
            max={7}
            onChange={(value) => set("nodes", String(value))}
          />
        )}
      </Field>
      {mine
        .filter((one) => one.name !== "quorum" || asksQuorums)
        .map((argument) => (
          <ArgumentField
            key={argument.name}
            argument={argument}
            value={word(words, argument.name)}
            error={error(argument.name)}
            onChange={(value) => set(argument.name, value)}
          />
        ))}
      <Field label={t.run.flaw} error={error("flaw")}>
        {(id) => (
          <Select
            id={id}
            value={word(words, "flaw") ?? ""}
            options={withOwn(
              [["", t.run.noFlaw], ...about.flaws.map((flaw): [string, string] => [flaw.name, flaw.name])],
              word(words, "flaw"),
            )}
            onChange={(value) => set("flaw", value)}
          />
        )}
      </Field>
      <Fold title={t.check.may} open>
        {(["crashes", "recoveries", "losses", "duplicates"] as const).map((key) => (
          <Field key={key} label={t.check[key]} error={error(key)}>
            {(id) => (
              <Slider
                id={id}
                value={Number(word(words, key) ?? 0)}
                min={0}
                max={3}
                onChange={(value) => set(key, value === 0 ? undefined : String(value))}
              />
            )}
          </Field>
        ))}
        <ChannelsField words={words} set={set} error={error} />
        <Field label={t.check.timers} error={error("timers")}>
          {(id) => (
            <Select
              id={id}
              value={word(words, "timers") ?? ""}
              options={[
                ["", t.check.usual],
                ["quiet", t.check.quiet],
                ["anytime", t.check.anytime],
              ]}
              onChange={(value) => set("timers", value)}
            />
          )}
        </Field>
        <label class="toggle">
          <input
            type="checkbox"
            checked={all(words, "over").includes("views")}
            onChange={(event) => set("over", event.currentTarget.checked ? "views" : undefined)}
          />{" "}
          {t.run.over} {t.run.views}
        </label>
      </Fold>
      {about.options.length > 0 && (
        <Fold title={t.run.options}>
          <OptionFields about={about} words={words} set={set} error={error} />
        </Fold>
      )}
      <CommandFold task="check" name={name} words={words} />
    </div>
  );
}

export const checked = session;
