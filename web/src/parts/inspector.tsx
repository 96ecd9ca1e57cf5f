// The inspector: what just happened or what is selected, in words and in the paper's language.

import { useSignal, useSignalEffect } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";
import { shortTime } from "../draw/spacetime";
import { type Explanation, explain } from "../model/catalogue";
import { paperNames, parse, rows } from "../model/debug";
import type { Session } from "../model/session";
import { Fate, Phase, type Story, What } from "../model/story";
import { t } from "../texts";
import { inline } from "./markdown";

export function sentence(story: Story, record: number): string {
  const words = story.words(record);
  const arrow = story.rArrow[record]!;
  const message = arrow >= 0 ? story.message(arrow) : "";
  const from = arrow >= 0 ? story.aFrom[arrow]! + 1 : 0;
  const w = t.inspect.what;
  switch (story.rWhat[record]!) {
    case What.Start:
      return w.start;
    case What.Recover:
      return w.recover;
    case What.Crash:
      return w.crash;
    case What.Pause:
      return w.pause;
    case What.Resume:
      return w.resume;
    case What.Command:
      return w.command(words);
    case What.Refused:
      return w.refused(words);
    case What.Receive:
      return w.receive(message, from);
    case What.Lose:
      return w.lose(message, from);
    case What.Timer:
      return w.timer(words);
    case What.Liveness:
      return w.liveness(words);
    default:
      return w.settle;
  }
}

export function phaseName(story: Story, node: number, records: number): string {
  const doing = story.doing(node, records);
  if (doing.down) return t.stage.down;
  const names: Record<number, string> = {
    [Phase.Idle]: t.stage.idle,
    [Phase.Wanting]: t.stage.wanting,
    [Phase.Inside]: t.stage.inside,
    [Phase.Leading]: t.stage.leading,
    [Phase.Member]: t.stage.member,
    [Phase.Still]: t.stage.still,
  };
  const name = names[doing.phase] ?? t.stage.idle;
  return doing.paused ? `${name}, ${t.stage.pausedNode}` : name;
}

export function Inspector({ session, children }: { session: Session; children?: ComponentChildren }) {
  const story = session.story.value;
  const explanation = useSignal<Explanation | undefined>(undefined);
  const name = story?.algorithm ?? "";
  useEffect(() => {
    explanation.value = undefined;
    if (!name.includes("/")) return;
    let gone = false;
    explain(name).then(
      (found) => {
        if (!gone) explanation.value = found;
      },
      () => {},
    );
    return () => {
      gone = true;
    };
  }, [name]);
  if (!story) return <aside class="inspector" aria-label={t.inspect.now} />;
  const selected = session.selected.value;
  return (
    <aside class="inspector" aria-label={t.inspect.now} tabIndex={0}>
      {selected?.kind === "message" && selected.arrow < story.arrowCount && (
        <MessageCard session={session} story={story} arrow={selected.arrow} />
      )}
      {selected?.kind === "node" && <NodeHead session={session} story={story} node={selected.node} />}
      {selected?.kind === "link" && <h2>{t.inspect.link(selected.from + 1, selected.to + 1)}</h2>}
      {children}
      {selected?.kind !== "link" && selected?.kind !== "message" && selected?.kind !== "node" && (
        <EventCard session={session} story={story} explanation={explanation.value} />
      )}
      {selected?.kind === "message" && story.aEndBy[selected.arrow]! >= 0 && (
        <EventCard
          session={session}
          story={story}
          explanation={explanation.value}
          record={story.aEndBy[selected.arrow]!}
        />
      )}
      {selected?.kind !== "link" && (
        <StateCard session={session} story={story} explanation={explanation.value} />
      )}
    </aside>
  );
}

function NodeHead({ session, story, node }: { session: Session; story: Story; node: number }) {
  return (
    <header class="card-head">
      <h2>{t.inspect.node(story.name(node))}</h2>
      <p class="lead">{phaseName(story, node, session.player.records.value)}</p>
    </header>
  );
}

function MessageCard({ session, story, arrow }: { session: Session; story: Story; arrow: number }) {
  const fate = story.aFate[arrow]!;
  const go = (record: number) => {
    session.selected.value = undefined;
    session.player.pause();
    session.player.jump(record + 1);
  };
  return (
    <header class="card-head">
      <h2>{story.message(arrow)}</h2>
      <dl class="facts">
        <dt>{t.inspect.from}</dt>
        <dd>{story.name(story.aFrom[arrow]!)}</dd>
        <dt>{t.inspect.to}</dt>
        <dd>{story.name(story.aTo[arrow]!)}</dd>
        <dt>{t.inspect.sent}</dt>
        <dd>
          {story.aSentBy[arrow]! >= 0 ? (
            <button type="button" class="link-button" onClick={() => go(story.aSentBy[arrow]!)}>
              {shortTime(story.aSent[arrow]!, true)}
            </button>
          ) : (
            "–"
          )}
        </dd>
        <dt>{fate === Fate.Lost ? t.inspect.lost : t.inspect.arrives}</dt>
        <dd>
          {fate === Fate.InFlight ? (
            t.inspect.never
          ) : (
            <button type="button" class="link-button" onClick={() => go(story.aEndBy[arrow]!)}>
              {shortTime(story.aEnd[arrow]!, true)}
            </button>
          )}
        </dd>
      </dl>
    </header>
  );
}

function EventCard(props: {
  session: Session;
  story: Story;
  explanation: Explanation | undefined;
  record?: number;
}) {
  const { session, story, explanation } = props;
  const record = props.record ?? session.record.value;
  if (record < 0) {
    return (
      <section class="card">
        <h2>{t.inspect.before}</h2>
        <p class="quiet">{t.inspect.beforeHelp}</p>
      </section>
    );
  }
  const steps = story.steps(record);
  const sends = story.sends(record);
  const told = story.told(record);
  const broken = story.broken.find((one) => one.record === record);
  const cone = session.cone.value;
  const look = (side: "past" | "future" | undefined) => {
    session.cone.value = side ? { record, side } : undefined;
  };
  return (
    <section class="card event">
      <p class="when">
        <span>{t.inspect.node(String(story.rNode[record]! + 1))}</span>
        <span class="quiet">
          {story.inSteps ? t.stage.step : "t"} {shortTime(story.rAt[record]!, true)}
        </span>
      </p>
      <h2 class="what">{sentence(story, record)}</h2>
      {steps.map((step) => (
        <StepRule key={step} step={step} explanation={explanation} />
      ))}
      {sends.length > 0 && (
        <>
          <h3>{t.inspect.sends}</h3>
          <ul class="plain">{grouped(story, sends)}</ul>
        </>
      )}
      {told.length > 0 && (
        <>
          <h3>{t.inspect.tells}</h3>
          <p>{told.join(", ")}</p>
        </>
      )}
      {broken && (
        <div class="broken" role="note">
          <strong>{t.inspect.violated(broken.property)}</strong>
          <p>{broken.text}</p>
        </div>
      )}
      <div class="segments cones" role="group" aria-label={t.inspect.past}>
        <button type="button" aria-pressed={!cone} onClick={() => look(undefined)}>
          {t.inspect.all}
        </button>
        <button
          type="button"
          title={t.inspect.pastHelp}
          aria-pressed={cone?.record === record && cone.side === "past"}
          onClick={() => look("past")}
        >
          {t.inspect.past}
        </button>
        <button
          type="button"
          title={t.inspect.futureHelp}
          aria-pressed={cone?.record === record && cone.side === "future"}
          onClick={() => look("future")}
        >
          {t.inspect.future}
        </button>
      </div>
    </section>
  );
}

function StepRule({ step, explanation }: { step: string; explanation: Explanation | undefined }) {
  const rule = explanation?.rules[step];
  return (
    <div class="rule">
      <p class="step-name">{step}</p>
      {rule?.rule && <blockquote>{inline(rule.rule)}</blockquote>}
      {rule?.code && (
        <details>
          <summary>{t.inspect.code}</summary>
          <pre tabIndex={0}>
            <code>{rule.code}</code>
          </pre>
        </details>
      )}
    </div>
  );
}

/** One line for each message, with all of its receivers. */
function grouped(story: Story, sends: number[]) {
  const byText = new Map<string, number[]>();
  for (const arrow of sends) {
    const text = story.message(arrow);
    const list = byText.get(text) ?? [];
    list.push(story.aTo[arrow]! + 1);
    byText.set(text, list);
  }
  return [...byText].map(([text, to]) => (
    <li key={text}>
      <span class="message">{text}</span>{" "}
      <span class="quiet">
        → {to.length > 8 ? `${to.slice(0, 6).join(", ")} … (${to.length})` : to.join(", ")}
      </span>
    </li>
  ));
}

/** The state of a node, its fields by the names that the paper has for them. */
function StateCard(props: { session: Session; story: Story; explanation: Explanation | undefined }) {
  const { session, story, explanation } = props;
  const states = useSignal<(string | null)[] | undefined>(undefined);
  const known = useSignal(true);
  const of = useSignal<Story | undefined>(undefined);
  useSignalEffect(() => {
    const records = session.player.records.value;
    const playing = session.player.playing.value;
    const story = session.story.value;
    if (playing || !story) return;
    // While somebody steps quickly, only the last state is asked for.
    const timer = setTimeout(() => {
      session.engine.ask({ do: "states", slot: session.slot, records }).then(
        (answer) => {
          if (session.player.records.peek() !== records || session.story.peek() !== story) return;
          states.value = answer["states"] as (string | null)[];
          of.value = story;
          known.value = true;
        },
        () => {
          known.value = false;
        },
      );
    }, 60);
    return () => clearTimeout(timer);
  });
  const selected = session.selected.value;
  const record = session.record.value;
  const node =
    selected?.kind === "node"
      ? selected.node
      : selected?.kind === "message"
        ? story.aTo[selected.arrow]
        : record >= 0
          ? story.rNode[record]
          : undefined;
  if (node === undefined) return null;
  const last = lastOf(story, node, session.player.records.value);
  const state = of.value === story ? states.value?.[node] : undefined;
  const names = explanation ? paperNames(explanation.text) : new Map<string, string>();
  return (
    <section class="card state">
      <h3>
        {t.inspect.state(node + 1)}
      </h3>
      {!known.value && <p class="quiet">{t.inspect.noState}</p>}
      {state && <StateRows state={state} names={names} />}
      {last >= 0 && story.nodes <= 64 && (
        <>
          <h3>{t.inspect.clocks}</h3>
          <dl class="facts">
            <dt>{t.inspect.lamport}</dt>
            <dd>{story.lamport(last)}</dd>
            <dt>{t.inspect.vector}</dt>
            <dd class="vector">{vector(story, last)}</dd>
          </dl>
        </>
      )}
    </section>
  );
}

/** What the paper names comes first; the rest is there for whoever wants it. */
function StateRows({ state, names }: { state: string; names: Map<string, string> }) {
  const all = rows(parse(state)).map((row) => ({
    ...row,
    paper: names.get(row.path) ?? names.get(row.path.split(".").pop()!),
  }));
  const named = all.filter((row) => row.paper !== undefined);
  const first = named.length > 0 ? named : all.slice(0, ROWS_MAX);
  const rest = all.filter((row) => !first.includes(row));
  const list = (shown: typeof all) => (
    <dl class="facts wide">
      {shown.map((row) => (
        <div key={row.path}>
          <dt title={row.path}>{row.name}</dt>
          <dd class="value" title={row.text.length > 160 ? row.text : undefined}>
            {row.text}
          </dd>
          {row.paper && <dd class="paper">{inline(row.paper)}</dd>}
        </div>
      ))}
    </dl>
  );
  return (
    <>
      {list(first)}
      {rest.length > 0 && (
        <details class="rest">
          <summary>{t.inspect.everything}</summary>
          {list(rest)}
        </details>
      )}
    </>
  );
}

const ROWS_MAX = 8;
/** Of longer clocks the beginning is shown. */
const CLOCK_MAX = 16;

function vector(story: Story, record: number): string {
  const clock = Array.from(story.vector(record));
  const shown = clock.slice(0, CLOCK_MAX).join(", ");
  return clock.length > CLOCK_MAX ? `(${shown}, …)` : `(${shown})`;
}

/** The last record of a node among the first so many. */
function lastOf(story: Story, node: number, records: number): number {
  const all = story.recordsOf(node);
  let low = 0;
  let high = all.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (all[middle]! < records) low = middle + 1;
    else high = middle;
  }
  return low > 0 ? all[low - 1]! : -1;
}
