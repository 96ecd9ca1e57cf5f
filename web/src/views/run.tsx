// Run: an algorithm with all that can be given to it, and the pictures of what comes of it.

import { useComputed, useSignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import type { Target } from "../draw/topology";
import { type Algorithm, algorithm, catalogue, family } from "../model/catalogue";
import { acts, cutsAt, FAULTS, faultWords } from "../model/interfere";
import { all, go, here, ofRun, said, type Word, word } from "../model/link";
import { first, presets } from "../model/presets";
import { Session } from "../model/session";
import { finder } from "../parts/finder";
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
import { Field, Fold, IconButton, Select, Slider, Text } from "../parts/ui";
import { Verdicts } from "../parts/verdicts";
import { t } from "../texts";

const session = new Session();
/** Was the page opened without a link? */
const landing = location.hash.replace(/^#\/?/, "") === "";
/** What the session has been asked for. */
let shown = "";

export const DEFAULT = "mutex/ricart-agrawala";

export function RunView() {
  const place = here.value;
  const name = place.about || DEFAULT;
  const known = catalogue.value;
  const about = algorithm(name);
  const settings = useSignal(false);
  const words = place.words;
  const key = JSON.stringify([name, ofRun(words)]);
  useEffect(() => {
    if (!known || !about) return;
    // A link without a word asks for what is worth seeing first.
    if (words.length === 0) {
      go({ view: "run", about: name, words: first(about) }, true);
      return;
    }
    if (shown === key) return;
    const at = word(words, "at");
    const other = shown === "" || JSON.parse(shown)[0] !== name;
    const landed = shown === "" && landing;
    shown = key;
    const asked = session.run(name, words, at !== undefined ? Number(at) : other ? 0 : undefined);
    // Who comes without a link sees something on its way.
    if (landed) void asked.then(() => session.player.scrub(0.62 * session.player.pace));
  }, [key, known !== undefined]);
  useKeys(session);
  if (known && !about) return <p class="empty">{t.nav.nothing}: {name}</p>;
  const bubble = (target: Target) => <Bubble target={target} words={words} name={name} />;
  return (
    <div class="run" data-busy={session.busy.value}>
      <div class={`sheet${settings.value ? " open" : ""}`}>
        <Settings about={about} words={words} close={() => (settings.value = false)} />
      </div>
      <div class="middle">
        <div class="phone-head">
          <button type="button" class="title-button" onClick={() => (finder.value = true)}>
            {name.split("/")[1]} <Icon name="down" size={16} />
          </button>
          <IconButton icon="settings" label={t.run.settings} onClick={() => (settings.value = true)} />
        </div>
        <Refusal session={session} />
        <Stage
          session={session}
          bubble={bubble}
          cuts={(time) => cutsAt(words, time)}
          footer={<Verdicts session={session} />}
        />
        {Number(session.answer.value?.["left_off"] ?? 0) > 0 && (
          <p class="note">{t.run.leftOff(Number(session.answer.value!["left_off"]))}</p>
        )}
      </div>
      <Inspector session={session} />
    </div>
  );
}

function change(words: Word[], name: string): void {
  go({ view: "run", about: name, words: words.filter(([known]) => known !== "at") }, true);
}

/** What can be done to what is selected. */
function Bubble({ target, words, name }: { target: Target; words: Word[]; name: string }) {
  void session.player.records.value;
  const list = acts(session, target);
  const story = session.story.value;
  const title =
    target.kind === "node"
      ? t.inspect.node(story?.name(target.node) ?? "")
      : target.kind === "link"
        ? t.inspect.link(target.from + 1, target.to + 1)
        : (story?.message(target.arrow) ?? "");
  return (
    <>
      <p class="bubble-title">{title}</p>
      <div class="bubble-acts">
        {list.map((act) => (
          <button
            type="button"
            key={act.name}
            onClick={() => {
              change([...ofRun(words), ...act.words], name);
              session.selected.value = undefined;
            }}
          >
            <Icon name={act.icon} size={16} />
            {t.act[act.name]}
          </button>
        ))}
        {list.length === 0 && <p class="quiet">{t.act.tooLate}</p>}
      </div>
    </>
  );
}

const topology = (names: string[]): [string, string][] =>
  names.map((name) => [name, t.run.topologies[name] ?? name]);

const TOPOLOGIES: Record<string, [string, string][]> = {
  tree: [["", t.run.topologies["tree"]!], ...topology(["tree:3", "random-tree", "path", "star"])],
  graph: topology([
    "",
    "random",
    "grid",
    "torus",
    "two-way-ring",
    "hypercube",
    "complete",
    "binary-tree",
    "random-tree",
    "star",
    "path",
  ]),
};

/** Arguments of families that have a place of their own. */
const SHOWN: Record<string, string[]> = {
  mutex: ["requests", "load", "cs", "quorum"],
  election: ["initiators", "ids", "criterion"],
  group: ["senders", "messages", "order"],
  detector: [],
};

export function Settings(props: { about: Algorithm | undefined; words: Word[]; close?: () => void }) {
  const { about, words } = props;
  if (!about) return <div class="settings" aria-busy="true" />;
  const name = about.name;
  const of = family(name);
  const set = (key: string, text: string | undefined) => change(said(words, key, text), name);
  const error = errorsOf(session);
  const nodes = Number(word(words, "nodes") ?? 5);
  const faults = words.map((one, i) => [one, i] as const).filter(([[key]]) => FAULTS.has(key));
  const over = (word(words, "over") ?? "").split(",").filter((layer) => layer !== "");
  const toggle = (layer: string) => {
    const next = over.includes(layer) ? over.filter((one) => one !== layer) : [...over, layer];
    next.sort((a, b) => rank(a) - rank(b));
    set("over", next.join(","));
  };
  const asksQuorums = about.costs.some((cost) => cost.formula.includes("K"));
  const mine = (catalogue.value?.arguments ?? []).filter((one) => one.family === of);
  const inPlace = (SHOWN[of] ?? []).filter(
    (key) => mine.some((one) => one.name === key) && (key !== "quorum" || asksQuorums),
  );
  const rest = mine.filter((one) => !inPlace.includes(one.name) && one.value !== null && one.name !== "quorum");
  const topologies = TOPOLOGIES[about.shape];
  const given = (list: { name: string }[]) => list.filter((one) => word(words, one.name) !== undefined).length;
  return (
    <div class="settings" tabIndex={0} role="region" aria-label={t.run.settings}>
      {props.close && (
        <div class="sheet-close">
          <IconButton icon="cross" label={t.inspect.close} onClick={props.close} />
        </div>
      )}
      <p class="family">{t.families[of] ?? of}</p>
      <AlgorithmTitle name={name} />
      <p class="summary">
        {about.summary}. <a href={`#/learn/${name}`}>{t.run.about}</a>
      </p>
      <div class="tries">
        <span class="tries-label">{t.run.tries}</span>
        {presets(about).map((preset) => (
          <button
            type="button"
            class="chip"
            key={preset.label}
            onClick={() => {
              props.close?.();
              go({ view: "run", about: name, words: preset.words });
            }}
          >
            {preset.label}
          </button>
        ))}
      </div>
      <Field label={t.run.nodes} error={error("nodes")}>
        {(id) => (
          <Slider
            id={id}
            value={nodes}
            min={1}
            max={Math.max(50, nodes)}
            onChange={(value) => set("nodes", String(value))}
          />
        )}
      </Field>
      {topologies && (
        <Field label={t.run.topology} error={error("topology")}>
          {(id) => (
            <Select
              id={id}
              value={word(words, "topology") ?? ""}
              options={withOwn(topologies, word(words, "topology"))}
              onChange={(value) => set("topology", value)}
            />
          )}
        </Field>
      )}
      <Field label={t.run.latency} error={error("latency")}>
        {(id) => (
          <Select
            id={id}
            value={word(words, "latency") ?? ""}
            options={withOwn(
              [
                ["", t.run.constant],
                ["uniform:0.5..1.5", t.run.varying],
                ["exp:1", t.run.wild],
              ],
              word(words, "latency"),
            )}
            onChange={(value) => set("latency", value)}
          />
        )}
      </Field>
      {inPlace.map((key) => (
        <ArgumentField
          key={key}
          argument={mine.find((one) => one.name === key)!}
          value={word(words, key)}
          error={error(key)}
          onChange={(value) => set(key, value)}
        />
      ))}
      <Field label={t.run.seed} error={error("seed")}>
        {(id) => (
          <span class="with-button">
            <Text id={id} numeric value={word(words, "seed") ?? "1"} onChange={(value) => set("seed", value)} />
            <IconButton
              icon="dice"
              label={t.run.another}
              onClick={() => set("seed", String(1 + Math.floor(Math.random() * 9999)))}
            />
          </span>
        )}
      </Field>
      <fieldset class="toggles">
        <legend>{t.run.over}</legend>
        <label title={t.run.viewsHelp}>
          <input type="checkbox" checked={over.includes("views")} onChange={() => toggle("views")} /> {t.run.views}
        </label>
        <label title={t.run.reliableHelp}>
          <input type="checkbox" checked={over.includes("reliable")} onChange={() => toggle("reliable")} />{" "}
          {t.run.reliable}
        </label>
        {error("over") && (
          <p class="error" role="alert">
            {error("over")}
          </p>
        )}
      </fieldset>
      <Fold title={t.run.faults} open count={faults.length}>
        {faults.length === 0 && <p class="quiet">{t.run.noFaults}</p>}
        <ul class="faults">
          {faults.map(([[key, text], i]) => (
            <li key={`${key}${text}${i}`}>
              <span>{faultWords(key, text)}</span>
              <IconButton
                icon="cross"
                label={`${t.run.remove}: ${faultWords(key, text)}`}
                onClick={() =>
                  change(
                    words.filter((_, place) => place !== i),
                    name,
                  )
                }
              />
            </li>
          ))}
        </ul>
        {faults.length > 1 && (
          <button
            type="button"
            class="link-button"
            onClick={() =>
              change(
                words.filter(([key]) => !FAULTS.has(key)),
                name,
              )
            }
          >
            {t.run.removeAll}
          </button>
        )}
      </Fold>
      <Fold title={t.run.network} count={given([{ name: "loss" }, { name: "duplicate" }, { name: "reorder" }])}>
        {(["loss", "duplicate", "reorder"] as const).map((key) => (
          <Field key={key} label={t.run[key]} error={error(key)}>
            {(id) => (
              <Slider
                id={id}
                value={Number(word(words, key) ?? 0)}
                min={0}
                max={0.5}
                step={0.01}
                show={(value) => `${Math.round(value * 100)} %`}
                onChange={(value) => set(key, value === 0 ? undefined : String(value))}
              />
            )}
          </Field>
        ))}
        <ChannelsField words={words} set={set} error={error} />
        <Field label={t.run.until} error={error("until")}>
          {(id) => <Text id={id} value={word(words, "until") ?? ""} onChange={(value) => set("until", value)} />}
        </Field>
      </Fold>
      {(about.options.length > 0 || rest.length > 0) && (
        <Fold title={t.run.options} count={given(about.options) + given(rest)}>
          <OptionFields about={about} words={words} set={set} error={error} />
          {rest.map((argument) => (
            <ArgumentField
              key={argument.name}
              argument={argument}
              value={argument.repeated ? all(words, argument.name).join(" ") : word(words, argument.name)}
              error={error(argument.name)}
              onChange={(value) => set(argument.name, value)}
            />
          ))}
        </Fold>
      )}
      <Fold title={t.run.costs}>
        <dl class="facts">
          {about.costs.map((cost) => (
            <div key={cost.what + cost.formula}>
              <dt>{cost.what}</dt>
              <dd>{cost.formula}</dd>
            </div>
          ))}
          <div>
            <dt>{t.run.survives}</dt>
            <dd>{about.survives}</dd>
          </div>
        </dl>
        <Figures />
      </Fold>
      <CommandFold task="sim" name={name} words={words} />
    </div>
  );
}

/** What was measured in this run. */
function Figures() {
  const report = useComputed(() => session.answer.value?.["report"] as Record<string, unknown> | undefined);
  const rows = useMemo(() => {
    const hidden = new Set(["algorithm", "nodes", "seed", "unit", "version", "spec", "over", "violations", "unfinished"]);
    return Object.entries(report.value ?? {}).filter(
      ([key, value]) => !hidden.has(key) && (typeof value === "number" || (value !== null && typeof value === "object")),
    );
  }, [report.value]);
  return (
    <dl class="facts figures">
      {rows.map(([key, value]) =>
        typeof value === "number" ? (
          <div key={key}>
            <dt>{key.replaceAll("_", " ")}</dt>
            <dd>{rounded(value)}</dd>
          </div>
        ) : (
          Object.entries(value as Record<string, unknown>)
            .filter(([, part]) => typeof part === "number")
            .map(([part, number]) => (
              <div key={key + part}>
                <dt>
                  {key.replaceAll("_", " ")} · {part.replaceAll("_", " ")}
                </dt>
                <dd>{rounded(number as number)}</dd>
              </div>
            ))
        ),
      )}
    </dl>
  );
}

export function rounded(value: number): string {
  const digits = Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2;
  return Number(value.toFixed(digits)).toLocaleString("en");
}

function rank(layer: string): number {
  return layer === "views" ? 0 : layer === "reliable" ? 1 : 2;
}

/** For those who measure the page. */
export const measured = session;
