// The stage: topology and space-time diagram under one cursor, with what moves it.

import { useSignal, useSignalEffect } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { Minimap } from "../draw/minimap";
import { kindColour, kindShape, palette, phaseColours } from "../draw/palette";
import { type Spot, SpaceTimeView, shortTime } from "../draw/spacetime";
import { type Marks, type Target, TopologyView } from "../draw/topology";
import { SPEEDS, type Stop, stops } from "../model/player";
import type { Session } from "../model/session";
import { Phase, type Story } from "../model/story";
import { t } from "../texts";
import { phaseName, sentence } from "./inspector";
import { LegendList } from "./legend";
import { theme } from "./theme";
import { IconButton, Menu, Select, save, savePng } from "./ui";

/** Watches how large an element is. */
export function useSize(changed: (width: number, height: number) => void) {
  const element = useRef<HTMLDivElement & HTMLElement>(null);
  useEffect(() => {
    const target = element.current!;
    const observer = new ResizeObserver(() => {
      const { width, height } = target.getBoundingClientRect();
      changed(Math.floor(width), Math.floor(height));
    });
    observer.observe(target);
    return () => observer.disconnect();
  }, []);
  return element;
}

export interface StageProps {
  session: Session;
  /** What stands beside something that is selected. */
  bubble?: (spot: Target) => ComponentChildren;
  /** Links that are cut at a time. */
  cuts?: (time: number) => [number, number][];
  /** Messages that can be picked, as `from.id-to` with places of nodes. */
  choices?: Set<string>;
  /** Somebody picks a message or a node instead of looking at it. */
  onPick?: (target: Target) => boolean;
  small?: boolean;
  footer?: ComponentChildren;
}

export function Stage(props: StageProps) {
  const { session } = props;
  return (
    <section class={`stage${props.small ? " small" : ""}`} data-engine={session.story.value?.engine}>
      <div class="stage-pictures">
        <Topology {...props} />
        <SpaceTime {...props} />
      </div>
      <Transport session={session} small={props.small} />
      <Spoken session={session} />
      {props.footer}
    </section>
  );
}

const views = new WeakMap<Session, { topology?: TopologyView; spacetime?: SpaceTimeView }>();

/** The pictures of a session. */
export function viewsOf(session: Session) {
  let known = views.get(session);
  if (!known) {
    known = {};
    views.set(session, known);
  }
  return known;
}

function target(spot: Spot | undefined): Target | undefined {
  return spot?.kind === "record" ? undefined : spot;
}

function marks(props: StageProps): Marks {
  const { session } = props;
  return {
    selected: target(session.selected.peek()),
    hovered: target(session.hovered.peek()),
    cuts: props.cuts?.(session.player.time) ?? [],
    choices: props.choices,
    focus: session.focus.peek(),
    hidden: session.hidden.peek(),
  };
}

function Topology(props: StageProps) {
  const { session } = props;
  const canvas = useRef<HTMLCanvasElement>(null);
  const view = useRef<TopologyView | undefined>(undefined);
  const bubbleAt = useSignal<[number, number] | undefined>(undefined);
  const pointer = useSignal<[number, number] | undefined>(undefined);
  const latest = useRef(props);
  latest.current = props;
  const holder = useSize((width, height) => {
    view.current?.resize(width, height);
    session.player.refresh();
  });
  useEffect(() => {
    view.current = new TopologyView(canvas.current!, session.player);
    viewsOf(session).topology = view.current;
    const { width, height } = holder.current!.getBoundingClientRect();
    view.current.resize(Math.floor(width), Math.floor(height));
    if (session.story.peek()) view.current.show(session.story.peek()!);
    const stop = session.player.listen(() => {
      const it = view.current!;
      it.marks = marks(latest.current);
      it.draw();
      const selected = target(session.selected.peek());
      const at = selected && it.where(selected);
      const old = bubbleAt.peek();
      if (at?.[0] !== old?.[0] || at?.[1] !== old?.[1]) bubbleAt.value = at;
    });
    session.player.refresh();
    return () => {
      stop();
    };
  }, [session]);
  useSignalEffect(() => {
    const story = session.story.value;
    void session.selected.value;
    void session.hovered.value;
    void session.focus.value;
    void session.hidden.value;
    void theme.value;
    if (story) view.current?.show(story);
    session.player.refresh();
  });
  useEffect(() => session.player.refresh(), [props.choices, props.cuts]);
  const find = (event: PointerEvent | MouseEvent, reach?: number) => {
    const box = canvas.current!.getBoundingClientRect();
    return view.current?.at(event.clientX - box.left, event.clientY - box.top, reach);
  };
  const selected = target(session.selected.value);
  return (
    <div class="picture topology" ref={holder}>
      <canvas
        ref={canvas}
        role="img"
        aria-label={t.stage.topology}
        onPointerMove={(event) => {
          if (event.pointerType !== "mouse") return;
          const found = find(event);
          const box = canvas.current!.getBoundingClientRect();
          pointer.value = found ? [event.clientX - box.left, event.clientY - box.top] : undefined;
          if (JSON.stringify(found) !== JSON.stringify(session.hovered.peek())) session.hovered.value = found;
          canvas.current!.style.cursor = found ? "pointer" : "";
        }}
        onPointerLeave={() => {
          session.hovered.value = undefined;
          pointer.value = undefined;
        }}
        onClick={(event) => {
          const found = find(event, 18);
          pointer.value = undefined;
          if (found && props.onPick?.(found)) return;
          if (found) session.player.pause();
          const again = JSON.stringify(found) === JSON.stringify(session.selected.peek());
          session.selected.value = again ? undefined : found;
        }}
      />
      <Legend
        session={session}
        onInset={(inset) => {
          view.current?.leave(inset);
          session.player.refresh();
        }}
      />
      <Tip session={session} at={pointer.value} holder={holder.current} />
      {selected && bubbleAt.value && props.bubble && (
        <Bubble at={bubbleAt.value} holder={holder.current}>
          {props.bubble(selected)}
        </Bubble>
      )}
    </div>
  );
}

/** Beside something, where there is room for it. */
export function Bubble(props: { at: [number, number]; holder: HTMLElement | null; children: ComponentChildren }) {
  const [x, y] = props.at;
  const width = props.holder?.clientWidth ?? 400;
  const height = props.holder?.clientHeight ?? 300;
  // Away from the middle, where the others are, if there is room.
  const left = x < width / 2 ? x > 220 : x > width - 220;
  const low = y > height * 0.55;
  const style = {
    left: left ? undefined : `${x + 30}px`,
    right: left ? `${width - x + 30}px` : undefined,
    top: low ? undefined : `${Math.max(6, y - 24)}px`,
    bottom: low ? `${Math.max(6, height - y - 24)}px` : undefined,
  };
  return (
    <div class="bubble" style={style}>
      {props.children}
    </div>
  );
}

/** What the pointer is at, in a few words. */
function Tip(props: { session: Session; at: [number, number] | undefined; holder: HTMLElement | null }) {
  const { session, at, holder } = props;
  const story = session.story.value;
  const hovered = session.hovered.value;
  if (!story || !at || !hovered) return null;
  const text = (() => {
    switch (hovered.kind) {
      case "message": {
        const [from, to] = [story.aFrom[hovered.arrow]! + 1, story.aTo[hovered.arrow]! + 1];
        return `${story.message(hovered.arrow)}  ${from} → ${to}`;
      }
      case "node":
        return `${t.inspect.node(story.name(hovered.node))}: ${phaseName(story, hovered.node, session.player.records.value)}`;
      case "link":
        return t.inspect.link(hovered.from + 1, hovered.to + 1);
      case "record": {
        const steps = story.steps(hovered.record);
        const more = steps.length > 0 ? `: ${steps.join(", ")}` : "";
        return `${story.rNode[hovered.record]! + 1} ${sentence(story, hovered.record)}${more}`;
      }
    }
  })();
  const back = at[0] > (holder?.clientWidth ?? 0) * 0.62;
  const low = at[1] > (holder?.clientHeight ?? 0) - 60;
  const shift = `translate(${back ? "calc(-100% - 14px)" : "14px"}, ${low ? "calc(-100% - 10px)" : "16px"})`;
  return (
    <div class="tip" style={{ left: `${at[0]}px`, top: `${at[1]}px`, transform: shift }} role="presentation">
      {text}
    </div>
  );
}

/** What is shown, for those who hear it. */
function Spoken({ session }: { session: Session }) {
  const story = session.story.value;
  const records = session.player.records.value;
  const still = !session.player.playing.value;
  return (
    <p class="spoken" aria-live="polite">
      {story && still && records > 0
        ? `${t.inspect.node(String(story.rNode[records - 1]! + 1))}: ${sentence(story, records - 1)}`
        : ""}
    </p>
  );
}

function SpaceTime(props: StageProps) {
  const { session } = props;
  const { player } = session;
  const canvas = useRef<HTMLCanvasElement>(null);
  const view = useRef<SpaceTimeView | undefined>(undefined);
  const latest = useRef(props);
  latest.current = props;
  const holder = useSize((width, height) => {
    view.current?.resize(width, height);
    player.refresh();
  });
  useEffect(() => {
    const it = new SpaceTimeView(canvas.current!, player);
    view.current = it;
    viewsOf(session).spacetime = it;
    const { width, height } = holder.current!.getBoundingClientRect();
    it.resize(Math.floor(width), Math.floor(height));
    if (session.story.peek()) it.show(session.story.peek()!);
    const stop = player.listen(() => {
      const selected = session.selected.peek();
      const hovered = session.hovered.peek();
      it.marks = {
        ...marks(latest.current),
        record: selected?.kind === "record" ? selected.record : undefined,
        hoveredRecord: hovered?.kind === "record" ? hovered.record : undefined,
      };
      it.draw();
    });
    // A wheel moves time; with the control key, or pinched, it zooms.
    const wheel = (event: WheelEvent) => {
      event.preventDefault();
      const box = canvas.current!.getBoundingClientRect();
      if (event.ctrlKey || event.metaKey) it.zoom(Math.exp(-event.deltaY / 240), event.clientX - box.left);
      else if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) it.pan(-event.deltaX, 0);
      else if (event.shiftKey) it.pan(0, -event.deltaY);
      else it.pan(-event.deltaY, 0);
      player.refresh();
    };
    canvas.current!.addEventListener("wheel", wheel, { passive: false });
    const element = canvas.current!;
    return () => {
      stop();
      element.removeEventListener("wheel", wheel);
    };
  }, [session]);
  useSignalEffect(() => {
    const story = session.story.value;
    if (story) view.current?.show(story);
    player.refresh();
  });
  const pointer = useSignal<[number, number] | undefined>(undefined);
  const pointers = useRef(new Map<number, { x: number; y: number }>());
  const dragged = useRef(false);
  const place = (event: PointerEvent | MouseEvent): [number, number] => {
    const box = canvas.current!.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  return (
    <div class="picture spacetime" ref={holder}>
      <canvas
        ref={canvas}
        role="img"
        aria-label={t.stage.spacetime}
        onPointerDown={(event) => {
          canvas.current!.setPointerCapture(event.pointerId);
          pointers.current.set(event.pointerId, { x: event.clientX, y: event.clientY });
          dragged.current = false;
        }}
        onPointerMove={(event) => {
          const it = view.current!;
          const known = pointers.current.get(event.pointerId);
          if (!known) {
            const found = it.at(...place(event));
            pointer.value = found && event.pointerType === "mouse" ? place(event) : undefined;
            if (JSON.stringify(found) !== JSON.stringify(session.hovered.peek())) session.hovered.value = found;
            canvas.current!.style.cursor = found ? "pointer" : "";
            return;
          }
          const [dx, dy] = [event.clientX - known.x, event.clientY - known.y];
          if (!dragged.current && Math.hypot(dx, dy) < 4) return;
          dragged.current = true;
          const others = [...pointers.current.entries()].filter(([id]) => id !== event.pointerId);
          if (others.length > 0) {
            const other = others[0]![1];
            const before = Math.hypot(known.x - other.x, known.y - other.y);
            const after = Math.hypot(event.clientX - other.x, event.clientY - other.y);
            const box = canvas.current!.getBoundingClientRect();
            if (before > 0) it.zoom(after / before, (event.clientX + other.x) / 2 - box.left);
          } else {
            it.pan(dx, dy);
          }
          pointers.current.set(event.pointerId, { x: event.clientX, y: event.clientY });
          player.refresh();
        }}
        onPointerUp={(event) => pointers.current.delete(event.pointerId)}
        onPointerCancel={(event) => pointers.current.delete(event.pointerId)}
        onPointerLeave={() => {
          session.hovered.value = undefined;
          pointer.value = undefined;
        }}
        onClick={(event) => {
          pointer.value = undefined;
          if (dragged.current) return;
          const it = view.current!;
          const [x, y] = place(event);
          const found = it.at(x, y);
          if (found) {
            player.pause();
            session.selected.value = found;
          } else {
            session.selected.value = undefined;
            player.pause();
            player.scrub(it.timeAt(x));
          }
        }}
      />
      <Tip session={session} at={pointer.value} holder={holder.current} />
      <div class="zoom">
        <IconButton icon="plus" label={t.stage.zoomIn} onClick={() => zoom(session, 1.5)} />
        <IconButton icon="minus" label={t.stage.zoomOut} onClick={() => zoom(session, 1 / 1.5)} />
        <IconButton
          icon="fit"
          label={t.stage.fit}
          onClick={() => {
            view.current?.fitAll();
            player.refresh();
          }}
        />
      </div>
    </div>
  );
}

export function zoom(session: Session, factor: number): void {
  viewsOf(session).spacetime?.zoom(factor);
  session.player.refresh();
}

function Legend({ session, onInset }: { session: Session; onInset: (inset: number) => void }) {
  const story = session.story.value;
  void theme.value;
  if (!story) return null;
  const colours = palette();
  const phases = new Set(Array.from(story.bPhase));
  const names: [Phase, string][] = [
    [Phase.Wanting, t.stage.wanting],
    [Phase.Inside, t.stage.inside],
    [Phase.Leading, t.stage.leading],
    [Phase.Member, t.stage.member],
    [Phase.Still, t.stage.still],
  ];
  return (
    <LegendList onInset={onInset}>
      {names
        .filter(([phase]) => phases.has(phase))
        .map(([phase, name]) => {
          const [fill, edge] = phaseColours(colours, phase);
          return (
            <li key={name}>
              <svg width="14" height="14" aria-hidden="true">
                <circle cx="7" cy="7" r="5" fill={fill} stroke={edge} stroke-width="1.6" />
              </svg>
              {name}
            </li>
          );
        })}
      {story.kinds.slice(0, 10).map((kind, i) => (
        <li key={kind}>
          <button
            type="button"
            aria-pressed={!session.hidden.value.has(i)}
            onClick={() => {
              const next = new Set(session.hidden.value);
              if (!next.delete(i)) next.add(i);
              session.hidden.value = next;
            }}
          >
            <svg width="14" height="14" aria-hidden="true">
              <path d={shapePath(kindShape(i))} fill={kindColour(colours, i)} />
            </svg>
            {kind}
          </button>
        </li>
      ))}
    </LegendList>
  );
}

function shapePath(shape: string): string {
  switch (shape) {
    case "diamond":
      return "M7 1.5L12.5 7 7 12.5 1.5 7z";
    case "square":
      return "M2.8 2.8h8.4v8.4H2.8z";
    case "triangle":
      return "M7 1.8l5.4 9.6H1.6z";
    case "hexagon":
      return "M12 7l-2.5 4.4h-5L2 7l2.5-4.4h5z";
    case "pentagon":
      return "M7 1.6l5.2 3.8-2 6.1H3.8l-2-6.1z";
    case "star":
      return "M7 1l1.8 4 4.3.5-3.2 3 .8 4.3L7 10.7l-3.7 2.1.8-4.3-3.2-3L5.2 5z";
    default:
      return "M7 2a5 5 0 1 0 0 10A5 5 0 0 0 7 2z";
  }
}

function Transport({ session, small }: { session: Session; small?: boolean }) {
  const { player } = session;
  const story = session.story.value;
  const map = useRef<Minimap | undefined>(undefined);
  const canvas = useRef<HTMLCanvasElement>(null);
  const stop = useSignal<Stop>("entry");
  const holder = useSize((width, height) => {
    map.current?.resize(width, height);
    player.refresh();
  });
  useEffect(() => {
    map.current = new Minimap(canvas.current!, player);
    const { width, height } = holder.current!.getBoundingClientRect();
    map.current.resize(Math.floor(width), Math.floor(height));
    if (session.story.peek()) map.current.show(session.story.peek()!);
    return player.listen(() => {
      const window = viewsOf(session).spacetime?.window ?? [0, 0];
      map.current!.draw(window as [number, number]);
    });
  }, [session]);
  useSignalEffect(() => {
    const story = session.story.value;
    if (story) {
      map.current?.show(story);
      const found = stops(story);
      if (!found.includes(stop.peek())) stop.value = found[1] ?? "event";
    }
    player.refresh();
  });
  const scrub = (event: PointerEvent) => {
    const box = canvas.current!.getBoundingClientRect();
    player.pause();
    viewsOf(session).spacetime?.follow();
    player.scrub(map.current!.timeAt(event.clientX - box.left));
  };
  const records = player.records.value;
  const available = story ? stops(story) : [];
  return (
    <div class="transport">
      <div class="minimap" ref={holder}>
        <canvas
          ref={canvas}
          role="slider"
          tabIndex={0}
          aria-label={t.stage.minimap}
          aria-valuemin={0}
          aria-valuemax={story?.recordCount ?? 0}
          aria-valuenow={records}
          onPointerDown={(event) => {
            canvas.current!.setPointerCapture(event.pointerId);
            scrub(event);
          }}
          onPointerMove={(event) => {
            if (event.buttons > 0) scrub(event);
          }}
        />
      </div>
      <div class="controls-row">
        <span class="counter">
          {records}
          <span class="quiet">
            {" "}
            {t.stage.of} {story?.recordCount ?? 0}
          </span>
        </span>
        <div class="buttons">
          <IconButton icon="first" label={t.stage.first} onClick={() => player.jump(0)} />
          <IconButton icon="back" label={t.stage.back} onClick={() => player.step(-1)} />
          <IconButton
            big
            icon={player.playing.value ? "pause" : "play"}
            label={player.playing.value ? t.stage.pause : t.stage.play}
            onClick={() => player.toggle()}
          />
          <IconButton icon="forth" label={t.stage.forth} onClick={() => player.step(1)} />
          <IconButton icon="last" label={t.stage.last} onClick={() => player.jump(story?.recordCount ?? 0)} />
        </div>
        <div class="pace">
          {!small && available.length > 1 && (
            <span class="seek">
              <IconButton
                icon="back"
                label={`${t.stage.previous} ${t.stage.stops[stop.value]}`}
                onClick={() => player.seek(stop.value, -1)}
              />
              <Select
                label={t.stage.next}
                value={stop.value}
                options={available.filter((one) => one !== "event").map((one) => [one, t.stage.stops[one]!])}
                onChange={(value) => (stop.value = value as Stop)}
              />
              <IconButton
                icon="forth"
                label={`${t.stage.next} ${t.stage.stops[stop.value]}`}
                onClick={() => player.seek(stop.value, 1)}
              />
            </span>
          )}
          <Select
            label={t.stage.speed}
            value={String(player.speed.value)}
            options={SPEEDS.map((speed) => [String(speed), speed < 1 ? `1/${1 / speed}×` : `${speed}×`])}
            onChange={(value) => (player.speed.value = Number(value))}
          />
          {story && <Menu icon="save" label={t.stage.save} items={saves(session, story)} />}
        </div>
      </div>
    </div>
  );
}

function saves(session: Session, story: Story): [string, () => void][] {
  const name = story.algorithm.replace(/\W+/g, "-") || "run";
  const title = story.algorithm;
  const exported = async (form: string): Promise<string> => {
    const view = viewsOf(session).spacetime;
    // Of a run that is too long for a drawing, what is in sight.
    const part = story.arrowCount > 4000 && view ? view.window : undefined;
    const answer = await session.engine.ask({
      do: "export",
      slot: session.slot,
      form,
      title,
      from: part ? shortTime(Math.max(0, part[0])) : null,
      to: part ? shortTime(part[1]) : null,
    });
    return answer["text"] as string;
  };
  const items: [string, () => void][] = [
    [t.stage.saves.timeSvg, async () => save(`${name}.svg`, await exported("svg"), "image/svg+xml")],
    [t.stage.saves.timePng, async () => savePng(`${name}.png`, await exported("svg"))],
    [
      t.stage.saves.netSvg,
      () => save(`${name}-topology.svg`, viewsOf(session).topology!.svg(title), "image/svg+xml"),
    ],
    [t.stage.saves.netPng, () => savePng(`${name}-topology.png`, viewsOf(session).topology!.svg(title))],
    [
      t.stage.saves.trace,
      async () => save(`${name}.jsonl`, await exported("trace"), "application/x-ndjson"),
    ],
    [t.stage.saves.shiviz, async () => save(`${name}.shiviz.log`, await exported("shiviz"), "text/plain")],
  ];
  const report = session.answer.peek()?.["report"];
  if (report) {
    items.push([
      t.stage.saves.report,
      () => save(`${name}.json`, JSON.stringify(report, null, 2), "application/json"),
    ]);
  }
  return items;
}

/** The keys of the stage; answers whether one was meant for it. */
export function keys(session: Session, event: KeyboardEvent): boolean {
  const { player } = session;
  const story = session.story.peek();
  if (!story) return false;
  const node = () => {
    const selected = session.selected.peek();
    if (selected?.kind === "node") return selected.node;
    if (selected?.kind === "record") return story.rNode[selected.record];
    const now = player.now - 1;
    return now >= 0 ? story.rNode[now] : undefined;
  };
  const far = (direction: 1 | -1) => {
    const wanted = stops(story).filter((one) => ["entry", "leader", "view", "violation"].includes(one));
    const now = player.now;
    // The nearest one of any of them.
    let best: number | undefined;
    for (const stop of wanted.length > 0 ? wanted : (["told"] as const)) {
      player.jump(now);
      if (player.seek(stop, direction)) {
        const found = player.now;
        if (best === undefined || (direction > 0 ? found < best : found > best)) best = found;
      }
    }
    player.jump(best ?? (direction > 0 ? story.recordCount : 0));
  };
  viewsOf(session).spacetime?.follow();
  switch (event.key) {
    case " ":
      player.toggle();
      return true;
    case "ArrowRight":
      if (event.shiftKey) far(1);
      else player.step(1);
      return true;
    case "ArrowLeft":
      if (event.shiftKey) far(-1);
      else player.step(-1);
      return true;
    case "Home":
      player.jump(0);
      return true;
    case "End":
      player.jump(story.recordCount);
      return true;
    case "]":
      player.seek("event", 1, node());
      return true;
    case "[":
      player.seek("event", -1, node());
      return true;
    case "+":
    case "=":
      zoom(session, 1.5);
      return true;
    case "-":
      zoom(session, 1 / 1.5);
      return true;
    case "p":
    case "f": {
      const record = session.record.peek();
      const side = event.key === "p" ? "past" : "future";
      const cone = session.cone.peek();
      const same = cone?.record === record && cone.side === side;
      session.cone.value = same || record < 0 ? undefined : { record, side };
      return true;
    }
    case "n": {
      const selected = session.selected.peek();
      const next = selected?.kind === "node" ? (selected.node + 1) % story.nodes : 0;
      session.selected.value = { kind: "node", node: next };
      return true;
    }
    case "m": {
      const flying: number[] = [];
      story.inFlight(player.now, (arrow) => flying.push(arrow));
      const selected = session.selected.peek();
      const now = selected?.kind === "message" ? flying.indexOf(selected.arrow) : -1;
      const arrow = flying[(now + 1) % Math.max(1, flying.length)];
      if (arrow !== undefined) session.selected.value = { kind: "message", arrow };
      return true;
    }
    case "Escape":
      session.selected.value = undefined;
      session.cone.value = undefined;
      return true;
    default:
      return false;
  }
}

