// Live: a running cluster. Its members, views, leases and locks as they are, and in a demonstration what
// can be done to them.

import { signal, useComputed, useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { aboutColour, ClusterPicture, clock, leader, places, type Thing, ViewsPicture, wordFor } from "../draw/cluster";
import { palette } from "../draw/palette";
import { go, here, said, type Word, word } from "../model/link";
import {
  type About,
  act,
  connected,
  cuts,
  type Deed,
  deeds,
  epoch,
  facts,
  isCut,
  link,
  listen,
  locks,
  log,
  mayAct,
  type Member,
  members,
  now,
  over,
  presides,
  refused,
  short,
  shortFence,
  version,
  views,
} from "../model/live";
import { Icon } from "../parts/icons";
import { isWriting } from "../parts/keyboard";
import { LegendList } from "../parts/legend";
import { Bubble, useSize } from "../parts/stage";
import { theme } from "../parts/theme";
import { Copy, IconButton, Menu, Segments, save, savePng } from "../parts/ui";
import { t } from "../texts";

const WINDOWS: [seconds: string, label: string][] = [
  ["10", "10 s"],
  ["30", "30 s"],
  ["120", "2 min"],
  ["600", "10 min"],
];
const ICONS: Record<Deed, string> = { kill: "bolt", pause: "pause", continue: "play", restart: "up" };
/** The kinds of messages that are in the legend. */
const SHOWN: About[] = ["seat", "lock", "consensus"];

/** Counts up while time is shown passing. */
const beat = signal(0);
/** The moment that is looked at, if time is held. */
const held = signal<number | undefined>(undefined);
const selected = signal<Thing | undefined>(undefined);

export function LiveView() {
  useEffect(() => listen(), []);
  if (!over) return <Nothing />;
  return <Watched />;
}

/** Where no cluster is behind the page. */
function Nothing() {
  return (
    <div class="page live-nothing">
      <header class="page-head">
        <h1>{t.live.title}</h1>
        <p class="lead">{t.live.nothing}</p>
      </header>
      <div class="live-ways">
        {t.live.ways.map(([command, text]) => (
          <section class="card" key={command}>
            <pre class="command" tabIndex={0}>
              <code>{command}</code>
            </pre>
            <p>{text}</p>
            <Copy text={command} />
          </section>
        ))}
      </div>
    </div>
  );
}

/** Draws anew as time passes: seldom where nothing may move. */
function usePassing(): boolean {
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
  useEffect(() => {
    let frame = 0;
    let drawn = 0;
    const pass = (time: number) => {
      frame = requestAnimationFrame(pass);
      if (time - drawn < (still ? 500 : 100)) return;
      drawn = time;
      beat.value++;
    };
    frame = requestAnimationFrame(pass);
    return () => cancelAnimationFrame(frame);
  }, []);
  return still;
}

function change(words: Word[]): void {
  go({ ...here.peek(), words }, true);
}

function hiddenNow(words: Word[]): Set<About> {
  return new Set((word(words, "hide") ?? "consensus").split(",") as About[]);
}

function Watched() {
  void version.value;
  const still = usePassing();
  const words = here.value.words;
  const seconds = word(words, "window") ?? "30";
  const hidden = hiddenNow(words);
  const length = Number(seconds) * 1000 || 30_000;
  const net = useRef<SVGSVGElement>(null);
  const time = useRef<SVGSVGElement>(null);
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      if (isWriting(event) || event.ctrlKey || event.metaKey) return;
      const onButton = (event.target as HTMLElement).closest?.("button, [role=button], a, summary, select");
      if (event.key === " " && !onButton) {
        event.preventDefault();
        held.value = held.peek() === undefined ? now() : undefined;
      } else if (event.key === "ArrowLeft") held.value = (held.peek() ?? now()) - length / 10;
      else if (event.key === "ArrowRight" && held.peek() !== undefined) held.value = Math.min(now(), held.peek()! + length / 10);
      else if (event.key === "Escape") selected.value = undefined;
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, [length]);
  const text = (svg: SVGSVGElement | null) => {
    if (!svg) return "";
    const copy = svg.cloneNode(true) as SVGSVGElement;
    const box = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    box.setAttribute("width", "100%");
    box.setAttribute("height", "100%");
    box.setAttribute("fill", palette().panel);
    copy.prepend(box);
    return new XMLSerializer().serializeToString(copy);
  };
  const setHidden = (about: About) => {
    const next = new Set(hidden);
    if (!next.delete(about)) next.add(about);
    const list = SHOWN.filter((one) => next.has(one)).join(",");
    change(said(words, "hide", list === "consensus" ? undefined : list || "none"));
  };
  return (
    <div class="run live" data-connected={connected.value}>
      <div class="sheet">
        <MembersPanel />
      </div>
      <div class="middle">
        {!connected.value && (
          <p class="note" role="status">
            {members.size === 0 ? t.live.connecting : t.live.gone_}
          </p>
        )}
        {refused.value && (
          <p class="refused" role="alert">
            {refused.value}
          </p>
        )}
        <section class="stage">
          <div class="stage-pictures">
            <Net svg={net} hidden={hidden} still={still} onHide={setHidden} />
            <Time svg={time} hidden={hidden} length={length} />
          </div>
          <div class="transport live-transport">
            <IconButton
              big
              icon={held.value === undefined ? "pause" : "play"}
              label={held.value === undefined ? t.live.hold : t.live.follow}
              onClick={() => (held.value = held.peek() === undefined ? now() : undefined)}
            />
            <Segments
              label={t.live.window}
              value={seconds}
              options={WINDOWS}
              onChange={(value) => change(said(words, "window", value === "30" ? undefined : value))}
            />
            <span class="live-rate quiet">
              <Rate />
            </span>
            <Menu
              icon="save"
              label={t.stage.save}
              items={[
                [t.live.saves.timeSvg, () => save("views.svg", text(time.current), "image/svg+xml")],
                [t.live.saves.timePng, () => void savePng("views.png", text(time.current))],
                [t.live.saves.netSvg, () => save("cluster.svg", text(net.current), "image/svg+xml")],
                [t.live.saves.netPng, () => void savePng("cluster.png", text(net.current))],
                [t.live.saves.facts, () => save("facts.jsonl", `${facts.join("\n")}\n`, "application/x-ndjson")],
              ]}
            />
          </div>
        </section>
      </div>
      <div class="live-right">
        <LocksPanel role={false} />
        <LocksPanel role={true} />
        <LogPanel />
      </div>
    </div>
  );
}

/** Messages per second, over all members. */
function Rate() {
  const last = useRef<{ at: number; counts: Map<string, number>; rate: number }>({ at: 0, counts: new Map(), rate: 0 });
  void beat.value;
  const time = now();
  if (time - last.current.at > 1000) {
    const passed = (time - last.current.at) / 1000;
    let sum = 0;
    for (const it of members.values()) {
      sum += Math.max(0, it.count - (last.current.counts.get(it.name) ?? it.count));
    }
    last.current = { at: time, counts: new Map([...members].map(([name, it]) => [name, it.count])), rate: sum / passed };
  }
  return <>{t.live.rate(Math.round(last.current.rate))}</>;
}

function Net(props: {
  svg: { current: SVGSVGElement | null };
  hidden: Set<About>;
  still: boolean;
  onHide: (about: About) => void;
}) {
  void beat.value;
  void theme.value;
  const size = useSignal<[number, number]>([0, 0]);
  const inset = useSignal(0);
  const holder = useSize((width, height) => (size.value = [width, height]));
  const [width, height] = size.value;
  const colours = palette();
  const thing = selected.value;
  const at = width > 0 ? places(width, height, inset.value) : new Map<string, [number, number]>();
  const spot = (): [number, number] | undefined => {
    if (!thing) return undefined;
    if (thing.kind === "member") return at.get(thing.name);
    const [a, b] = [at.get(thing.a), at.get(thing.b)];
    return a && b ? [(a[0] + b[0]) / 2, (a[1] + b[1]) / 2] : undefined;
  };
  const place = spot();
  return (
    <div class="picture topology" ref={holder}>
      {width > 0 && (
        <ClusterPicture
          width={width}
          height={height}
          inset={inset.value}
          hidden={props.hidden}
          still={props.still || held.value !== undefined}
          selected={thing}
          svg={props.svg}
          onSelect={(next) => (selected.value = JSON.stringify(next) === JSON.stringify(thing) ? undefined : next)}
        />
      )}
      <LegendList onInset={(next) => (inset.value = next)}>
        {SHOWN.map((about) => (
          <li key={about}>
            <button type="button" aria-pressed={!props.hidden.has(about)} onClick={() => props.onHide(about)}>
              <svg width="12" height="12" aria-hidden="true">
                <circle cx="6" cy="6" r="4.5" fill={aboutColour(colours, about)} />
              </svg>
              {t.live.abouts[about]}
            </button>
          </li>
        ))}
        <li>
          <svg width="12" height="12" aria-hidden="true">
            <circle cx="6" cy="6" r="4.5" fill="none" stroke={colours.good} stroke-width="2" />
          </svg>
          {t.live.lease}
        </li>
      </LegendList>
      {thing && place && (
        <Bubble at={place} holder={holder.current}>
          {thing.kind === "member" ? <MemberBubble name={thing.name} /> : <LinkBubble a={thing.a} b={thing.b} />}
        </Bubble>
      )}
    </div>
  );
}

function MemberBubble({ name }: { name: string }) {
  void version.value;
  const it = members.get(name);
  if (!it) return null;
  return (
    <>
      <p class="bubble-title">
        {t.live.member(name)} <span class="quiet">{it.pid > 0 && `pid ${it.pid}`}</span>
      </p>
      <div class="bubble-acts">
        {mayAct() ? (
          <>
            {deeds(it).map((deed) => (
              <button type="button" key={deed} onClick={() => void act(name, deed).then(() => (selected.value = undefined))}>
                <Icon name={ICONS[deed]} size={16} />
                {t.live.deeds[deed]}
              </button>
            ))}
            <button type="button" onClick={() => void isolate(name)}>
              <Icon name="cut" size={16} />
              {isAlone(name) ? t.live.mendAll : t.live.isolate}
            </button>
          </>
        ) : (
          <p class="quiet">{wordFor(it)}</p>
        )}
      </div>
    </>
  );
}

function LinkBubble({ a, b }: { a: string; b: string }) {
  void cuts.value;
  const cut = isCut(a, b);
  const rtt = members.get(a)?.status?.links.find((one) => one.name === b)?.rtt_us;
  return (
    <>
      <p class="bubble-title">{t.live.link(a, b)}</p>
      <div class="bubble-acts">
        {rtt !== null && rtt !== undefined && !cut && <p class="quiet">{t.live.rtt((rtt / 1000).toFixed(2))}</p>}
        {mayAct() && (
          <button type="button" onClick={() => void link(a, b, cut ? "heal" : "cut").then(() => (selected.value = undefined))}>
            <Icon name={cut ? "link" : "cut"} size={16} />
            {cut ? t.live.heal : t.live.cut}
          </button>
        )}
      </div>
    </>
  );
}

const others = (name: string) => [...members.keys()].filter((other) => other !== name);
const isAlone = (name: string) => others(name).every((other) => isCut(name, other));

/** Cuts all links of a member, or heals them. */
async function isolate(name: string): Promise<void> {
  const deed = isAlone(name) ? "heal" : "cut";
  await Promise.all(others(name).map((other) => link(name, other, deed)));
  selected.value = undefined;
}

async function mendAll(): Promise<void> {
  await Promise.all(cuts.peek().map(([a, b]) => link(a, b, "heal")));
  for (const it of members.values()) {
    if (it.state === "paused") await act(it.name, "continue");
    if (it.state === "gone") await act(it.name, "restart");
  }
}

function Time(props: { svg: { current: SVGSVGElement | null }; hidden: Set<About>; length: number }) {
  void theme.value;
  // A long time passes slowly.
  const passing = useComputed(() => (held.value !== undefined ? 0 : props.length > 60_000 ? Math.floor(beat.value / 8) : beat.value));
  void passing.value;
  const size = useSignal<[number, number]>([0, 0]);
  const holder = useSize((width, height) => (size.value = [width, height]));
  const dragged = useRef<[number, number] | undefined>(undefined);
  const [width, height] = size.value;
  return (
    <div
      class="picture spacetime"
      ref={holder}
      onWheel={(event) => {
        const by = Math.abs(event.deltaX) > Math.abs(event.deltaY) ? event.deltaX : 0;
        if (by !== 0) held.value = Math.min(now(), (held.peek() ?? now()) + (by / width) * props.length);
      }}
      onPointerDown={(event) => (dragged.current = [event.clientX, held.peek() ?? now()])}
      onPointerMove={(event) => {
        if (!dragged.current || event.buttons === 0) return;
        const by = event.clientX - dragged.current[0];
        if (Math.abs(by) > 3) held.value = Math.min(now(), dragged.current[1] - (by / width) * props.length);
      }}
      onPointerUp={() => (dragged.current = undefined)}
    >
      {width > 0 && (
        <ViewsPicture
          width={width}
          height={height}
          window={props.length}
          end={held.value ?? now()}
          moves={held.value === undefined}
          hidden={props.hidden}
          svg={props.svg}
        />
      )}
    </div>
  );
}

function MembersPanel() {
  void version.value;
  const all = [...members.values()];
  const running = all.filter((it) => it.state === "runs" || it.state === "unknown");
  const cluster = all.find((it) => it.status)?.status?.cluster_name ?? "";
  const view = epoch();
  const may = mayAct();
  const boss = presides.value;
  const led = leader();
  return (
    <div class="settings live-settings">
      <p class="family">{over === "demo" ? t.live.demo : t.live.agent}</p>
      <h1>{cluster || t.live.title}</h1>
      <p class="summary">
        {view > 0 && t.live.viewOf(short(view), (views.get(view) ?? []).join(", "))}
        {led && <> {t.live.led(led)}</>}
      </p>
      {may && (
        <div class="tries">
          <span class="tries-label">{t.run.tries}</span>
          {boss && members.get(boss)?.state === "runs" && (
            <button type="button" class="chip" onClick={() => void act(boss, "kill")}>
              {t.live.tries.boss}
            </button>
          )}
          {running.length > 1 && (
            <button type="button" class="chip" onClick={() => void act(running.at(-1)!.name, "pause")}>
              {t.live.tries.pause(running.at(-1)!.name)}
            </button>
          )}
          {running.length > 1 && !isAlone(running.at(-1)!.name) && (
            <button type="button" class="chip" onClick={() => void isolate(running.at(-1)!.name)}>
              {t.live.tries.isolate(running.at(-1)!.name)}
            </button>
          )}
          {(cuts.value.length > 0 || running.length < all.length) && (
            <button type="button" class="chip" onClick={() => void mendAll()}>
              {t.live.tries.mend}
            </button>
          )}
        </div>
      )}
      <ul class="live-members">
        {all.map((it) => (
          <MemberRow key={it.name} it={it} may={may} />
        ))}
      </ul>
      {may && cuts.value.length > 0 && (
        <ul class="live-cuts">
          {cuts.value.map(([a, b]) => (
            <li key={`${a} ${b}`}>
              <span>
                {t.live.link(a, b)}: {t.live.links.cut}
              </span>
              <button type="button" class="link-button" onClick={() => void link(a, b, "heal")}>
                {t.live.heal}
              </button>
            </li>
          ))}
        </ul>
      )}
      {over === "demo" && !may && <p class="note">{t.live.noKey}</p>}
    </div>
  );
}

function MemberRow({ it, may }: { it: Member; may: boolean }) {
  void beat.value;
  const lease = it.status?.lease_ms ?? 0;
  const left = it.until !== undefined && it.state !== "gone" ? Math.max(0, it.until - now()) : 0;
  const part = lease > 0 ? Math.min(1, left / lease) : 0;
  const roles = [presides.value === it.name && it.state !== "gone" && t.live.presides, leader() === it.name && t.live.leads].filter(
    Boolean,
  );
  return (
    <li data-member={it.name} data-state={it.state}>
      <div class="live-member-head">
        <strong>{it.name}</strong>
        <span class="quiet">{[wordFor(it), ...roles].join(" · ")}</span>
        {may &&
          deeds(it).map((deed) => (
            <button
              type="button"
              class="icon-button"
              key={deed}
              aria-label={`${t.live.deeds[deed]}: ${it.name}`}
              title={t.live.deeds[deed]}
              onClick={() => void act(it.name, deed)}
            >
              <Icon name={ICONS[deed]} size={17} />
            </button>
          ))}
      </div>
      {(over === "demo" || lease > 0) && (
        <div class="live-lease" title={t.live.leaseLeft(Math.round(left))}>
          <span class={part < 0.4 ? "low" : ""} style={{ width: `${part * 100}%` }} />
        </div>
      )}
    </li>
  );
}

/** What there are of locks or roles, and how to get one where there is none. */
function LocksPanel({ role }: { role: boolean }) {
  const list = (locks.value ?? []).filter((lock) => (lock.role ?? false) === role);
  const [title, nothing, command] = role
    ? [t.live.roles, t.live.noRoles, t.live.leadOne]
    : [t.live.locks, t.live.noLocks, t.live.takeOne];
  const number = role ? t.live.term : t.live.fence;
  return (
    <section class={`live-panel ${role ? "live-roles" : "live-locks"}`}>
      <h2>{title}</h2>
      {list.length === 0 ? (
        <>
          <p class="quiet">{nothing}</p>
          <div class="live-command">
            <pre class="command" tabIndex={0}>
              <code>{command}</code>
            </pre>
            <Copy text={command} />
          </div>
        </>
      ) : (
        <ul class="live-held">
          {list.map((lock) => (
            <li key={lock.name}>
              <p class="live-lock-name">{lock.name}</p>
              {lock.holders.map((one) => (
                <p key={`${one.member} ${one.owner} ${one.fence}`}>
                  <span class={`live-badge ${role ? "led" : "held"}`}>{one.member}</span> {one.owner || t.live.someone}
                  <span class="quiet" title={one.fence}> {number(shortFence(one.fence))}</span>
                </p>
              ))}
              {lock.waiting.map((one, place) => (
                <p key={`${one.member} ${one.owner} ${place}`}>
                  <span class="live-badge">{one.member}</span> {one.owner || t.live.someone}
                  <span class="quiet"> {role ? t.live.stands : t.live.waits}</span>
                </p>
              ))}
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

function LogPanel() {
  return (
    <section class="live-panel live-log">
      <h2 id="live-log">{t.live.log}</h2>
      <div class="live-lines" role="log" aria-labelledby="live-log" tabIndex={0}>
        <ol>
          {log.value.map((line) => (
            <li key={`${line.at} ${line.text}`} class={line.tone}>
              <time>{clock(line.at)}</time>
              <button
                type="button"
                class="live-line-button"
                title={t.live.lookAt}
                onClick={() => (held.value = Math.min(now(), line.at + 2000))}
              >
                {line.text}
              </button>
            </li>
          ))}
        </ol>
      </div>
    </section>
  );
}

/** For tests. */
export const lively = { members, views, log, locks, cuts, connected, held };
