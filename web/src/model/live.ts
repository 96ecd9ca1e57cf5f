// A running cluster, as its members tell it: facts by the kernel's clock, statuses, a sample of messages,
// and who holds which lock. What is drawn follows from this alone.

import { signal } from "@preact/signals";
import { t } from "../texts";
import { go, here, said, word } from "./link";

/** What the page is served over; nothing if it is a page of files. */
export const over = document.querySelector<HTMLMetaElement>('meta[name="live"]')?.content as
  | "agent"
  | "demo"
  | undefined;

/** So long is kept, in milliseconds. */
const KEPT = 10 * 60_000;
/** So many messages are kept. */
const MESSAGES = 20_000;
/** How often locks and roles are asked for, in milliseconds. */
const LOCKS = 1000;
/** Messages that are there because somebody asks for locks and roles, as this page does. */
const ASKING = new Set(["ASK", "TELL"]);

export interface Status {
  cluster_name: string;
  name: string;
  pid: number;
  epoch: number;
  standing: string;
  left_ms: number | null;
  lease_ms: number;
  members: { name: string; address: string; life: number; state: string; unreachable: string[] }[];
  authority: { kind: string; leader: string | null; voters: string[] };
  links: { name: string; state: string; rtt_us: number | null; queued: number }[];
}

/** From when to when, in milliseconds; it goes on if there is no end. */
export interface Span {
  from: number;
  to?: number;
}

export interface ViewSpan extends Span {
  epoch: number;
}

export interface LockSpan extends Span {
  lock: string;
  /** Is it a role, in which somebody leads? */
  role: boolean;
  owner: string;
  held: boolean;
}

export type Mark = "kill" | "start" | "stop" | "cont" | "lost" | "left";

export interface Member {
  name: string;
  pid: number;
  state: "runs" | "paused" | "gone" | "unknown";
  status?: Status;
  /** When the status was made. */
  at: number;
  /** Until when it may act. */
  until?: number;
  views: ViewSpan[];
  locks: LockSpan[];
  gone: Span[];
  paused: Span[];
  marks: { at: number; what: Mark }[];
  /** How many messages have come in at it. */
  count: number;
}

export interface Message {
  at: number;
  from: string;
  to: string;
  about: About;
  kind: string;
}

export const ABOUTS = ["seat", "lock", "consensus", "founding"] as const;
export type About = (typeof ABOUTS)[number];

interface Party {
  member: string;
  owner: string;
}

/** A lock, or a role: whoever leads in one holds it. */
export interface Lock {
  name: string;
  role?: boolean;
  holders: (Party & { fence: string })[];
  waiting: Party[];
}

interface Role {
  role: string;
  leader: Party | null;
  term: string | null;
  candidates: Party[];
}

export interface Line {
  at: number;
  text: string;
  tone: "" | "bad" | "good";
}

export const members = new Map<string, Member>();
export const messages: Message[] = [];
/** What was written down, as it came. */
export const facts: string[] = [];
/** Names of who is in a view. */
export const views = new Map<number, string[]>();
export const cuts = signal<[string, string][]>([]);
export const locks = signal<Lock[] | undefined>(undefined);
export const log = signal<Line[]>([]);
export const connected = signal(false);
/** Counts up when something has changed that is not a matter of time alone, some times a second at most. */
export const version = signal(0);
export const refused = signal<string | undefined>(undefined);
/** Who presides over the view that was decided last, as far as its lease is known. */
export const presides = signal<string | undefined>(undefined);

/** Members tell more than eyes can follow: what comes together is drawn together. */
const TOGETHER = 100;
let isTold = false;

function changed(): void {
  if (isTold) return;
  isTold = true;
  setTimeout(() => {
    isTold = false;
    version.value++;
  }, TOGETHER);
}

const lives = new Map<number, string>();
/** The kernel's clock minus that of the page, in milliseconds: the least delay that was seen. */
let ahead = Number.NEGATIVE_INFINITY;
let first: number | undefined;

/** The kernel's clock, now. */
export function now(): number {
  return Number.isFinite(ahead) ? performance.now() + ahead : 0;
}

/** When the story begins. */
export function begin(): number {
  return first ?? now();
}

function member(name: string): Member {
  let known = members.get(name);
  if (!known) {
    known = {
      name,
      pid: 0,
      state: "unknown",
      at: 0,
      views: [],
      locks: [],
      gone: [],
      paused: [],
      marks: [],
      count: 0,
    };
    members.set(name, known);
    const sorted = [...members].sort(([a], [b]) => a.localeCompare(b));
    members.clear();
    for (const [key, value] of sorted) members.set(key, value);
  }
  return known;
}

function write(at: number, text: string, tone: Line["tone"] = ""): void {
  const last = log.peek()[0];
  if (last?.text === text && at - last.at < 1000) return;
  log.value = [{ at, text, tone }, ...log.peek()].sort((a, b) => b.at - a.at).slice(0, 200);
}

const open = <S extends Span>(list: S[]): S | undefined => {
  const last = list.at(-1);
  return last && last.to === undefined ? last : undefined;
};

function close(list: Span[], at: number): void {
  const last = open(list);
  if (last) last.to = at;
}

/** These are the members of a view: it is written down once all their names are known. */
function decide(epoch: number, names: string[], at: number): void {
  if (names.includes("?") || views.has(epoch)) return;
  views.set(epoch, names);
  write(at, t.live.said.view(short(epoch), names.join(", ")));
}

/** It sits in this view from now on. */
function sit(it: Member, epoch: number, at: number): void {
  const last = open(it.views);
  if (last?.epoch === epoch) return;
  if (last) last.to = at;
  it.views.push({ epoch, from: at });
}

/** It sits in no view any more, and holds nothing. */
function rise(it: Member, at: number): void {
  // Whatever it says later, it sat no longer than it might act.
  const end = Math.min(at, it.until ?? at);
  close(it.views, end);
  for (const span of it.locks) span.to ??= end;
  it.until = undefined;
}

interface Fact {
  t: number;
  clock?: number;
  member: string;
  fact: string;
  whom?: string;
  pid?: number;
  epoch?: number;
  life?: number;
  members?: number[];
  at?: number;
  until?: number;
  links?: [string, string][];
}

function take(fact: Fact): void {
  const at = fact.t / 1e6;
  first = Math.min(first ?? at, at);
  const it = fact.member === "harness" ? undefined : member(fact.member);
  const whom = fact.whom === undefined ? undefined : member(fact.whom);
  switch (fact.fact) {
    case "kill":
    case "died": {
      if (!whom || open(whom.gone)) break;
      rise(whom, at);
      close(whom.paused, at);
      whom.gone.push({ from: at });
      whom.marks.push({ at, what: "kill" });
      write(at, fact.fact === "kill" ? t.live.said.kill(whom.name) : t.live.said.died(whom.name), "bad");
      break;
    }
    case "restart":
      if (!whom) break;
      close(whom.gone, at);
      whom.marks.push({ at, what: "start" });
      write(at, t.live.said.restart(whom.name), "good");
      break;
    case "stop":
      if (!whom) break;
      whom.paused.push({ from: at });
      whom.marks.push({ at, what: "stop" });
      write(at, t.live.said.stop(whom.name), "bad");
      break;
    case "cont":
      if (!whom) break;
      close(whom.paused, at);
      whom.marks.push({ at, what: "cont" });
      write(at, t.live.said.cont(whom.name), "good");
      break;
    case "cut":
      write(at, t.live.said.cut(...fact.links![0]!), "bad");
      break;
    case "mend":
      write(at, t.live.said.heal(...fact.links![0]!), "good");
      break;
    case "start":
      if (it) close(it.gone, at);
      break;
    case "life":
      lives.set(fact.life!, it!.name);
      break;
    case "installed":
      lives.set(fact.life!, it!.name);
      sit(it!, fact.epoch!, at);
      break;
    case "stopped":
      close(it!.views, at);
      break;
    case "decided":
      decide(
        fact.epoch!,
        fact.members!.map((life) => lives.get(life) ?? "?"),
        at,
      );
      break;
    case "presides":
      if (presides.peek() !== it!.name) {
        presides.value = it!.name;
        write(at, t.live.said.presides(it!.name));
      }
      break;
    case "until":
      it!.until = at + ((fact.at ?? 0) - (fact.clock ?? 0)) / 1e6;
      break;
    case "lost":
      rise(it!, at);
      it!.marks.push({ at, what: "lost" });
      write(at, t.live.said.lost(it!.name), "bad");
      break;
    case "left":
    case "exit":
      rise(it!, at);
      it!.marks.push({ at, what: "left" });
      write(at, t.live.said.left(it!.name));
      break;
  }
}

function takeStatus(at: number, status: Status): void {
  const it = member(status.name);
  const older = it.status;
  it.status = status;
  it.at = at;
  it.pid = status.pid;
  if (it.state === "unknown") it.state = "runs";
  const may = status.left_ms !== null && (status.standing === "member" || status.standing === "jeopardy");
  it.until = may ? at + status.left_ms! : undefined;
  for (const { life, name } of status.members) {
    lives.set(life, name);
    member(name);
  }
  const seated = status.members.filter((one) => one.state === "seated").map((one) => one.name);
  if (seated.length > 0) decide(status.epoch, seated, at);
  // Between two views it sits in none, though it may act.
  const last = it.views.at(-1);
  const stopped = last?.epoch === status.epoch && last.to !== undefined && at - last.to < 1000;
  // What the dead said last is not true any more.
  const dead = open(it.gone) !== undefined;
  if (may && !stopped && !dead) sit(it, status.epoch, at);
  else if (open(it.views) && status.standing !== "member") close(it.views, at);
  if (seated.length > 0 && older?.epoch !== status.epoch) presides.value ??= seated[0];
  // Where only one agent tells, the others are as it sees them.
  if (over === "agent") {
    for (const other of members.values()) {
      if (other.name === status.name) continue;
      other.state = "unknown";
      if (seated.includes(other.name)) sit(other, status.epoch, at);
      else close(other.views, at);
    }
    presides.value = seated[0];
  }
}

interface Demo {
  members: { name: string; pid: number; state: "runs" | "paused" | "gone" }[];
  cuts: [string, string][];
}

function takeDemo(demo: Demo): void {
  for (const { name, pid, state } of demo.members) {
    const it = member(name);
    it.pid = pid;
    it.state = state;
  }
  cuts.value = demo.cuts;
}

/** Whom nothing has been told of for long is forgotten; the last view and the last states stay. */
function forget(): void {
  const old = now() - KEPT;
  if (messages.length > MESSAGES || (messages[0] && messages[0].at < old)) {
    messages.splice(0, Math.max(messages.length - MESSAGES, messages.findIndex((one) => one.at >= old), 0));
  }
  if (facts.length > 50_000) facts.splice(0, 10_000);
  for (const it of members.values()) {
    const late = (span: Span) => (span.to ?? Number.POSITIVE_INFINITY) > old;
    it.views = it.views.filter(late);
    it.locks = it.locks.filter(late);
  }
}

function hear(text: string): void {
  const told = JSON.parse(text);
  const at = told.t / 1e6;
  ahead = Math.max(ahead, at - performance.now());
  switch (told.is) {
    case "fact":
      facts.push(text);
      take(told as Fact);
      break;
    case "message": {
      const { from, about, kind, count } = told;
      const it = member(told.member);
      it.count = count;
      if (ASKING.has(kind)) return;
      messages.push({ at, from, to: told.member, about, kind });
      if (messages.length % 256 === 0) forget();
      return;
    }
    case "status":
      takeStatus(at, told.status as Status);
      break;
    case "demo":
      takeDemo(told as Demo);
      break;
  }
  changed();
}

/** Who leads in a role holds it, and its number is the term. */
function asLock({ role, leader, term, candidates }: Role): Lock {
  return { name: role, role: true, holders: leader ? [{ ...leader, fence: term ?? "" }] : [], waiting: candidates };
}

/** Who holds what from one look to the next. */
function takeLocks(list: Lock[]): void {
  const at = now();
  const seen = new Set<LockSpan>();
  for (const lock of list) {
    const role = lock.role ?? false;
    const parties = [
      ...lock.holders.map((one) => ({ ...one, held: true })),
      ...lock.waiting.map((one) => ({ ...one, held: false })),
    ];
    for (const { member: name, owner: said, held } of parties) {
      const owner = said.trim();
      const it = member(name);
      const same = (span: LockSpan) =>
        span.to === undefined &&
        span.lock === lock.name &&
        span.role === role &&
        span.owner === owner &&
        span.held === held &&
        !seen.has(span);
      let span = it.locks.find(same);
      if (!span) {
        span = { from: at, lock: lock.name, role, owner, held };
        it.locks.push(span);
        const said = role ? t.live.said.led : t.live.said.granted;
        if (held) write(at, said(lock.name, owner || t.live.someone, name));
      }
      seen.add(span);
    }
  }
  for (const it of members.values()) {
    for (const span of it.locks) {
      if (span.to !== undefined || seen.has(span)) continue;
      span.to = at;
      const said = span.role ? t.live.said.resigned : t.live.said.released;
      if (span.held) write(at, said(span.lock, it.name));
    }
  }
  locks.value = list;
  changed();
}

let source: EventSource | undefined;
let watchers = 0;

/** Listens while somebody looks; what this returns ends that. */
export function listen(): () => void {
  if (!over) return () => undefined;
  watchers++;
  if (!source) {
    source = new EventSource("live/feed");
    source.onopen = () => (connected.value = true);
    source.onerror = () => (connected.value = false);
    source.onmessage = (event) => hear(event.data as string);
    void askForLocks();
  }
  return () => void watchers--;
}

async function asked<T>(path: string): Promise<T[] | null> {
  return (await fetch(path)).json();
}

async function askForLocks(): Promise<void> {
  for (;;) {
    if (connected.peek() && watchers > 0) {
      try {
        // One after the other: a browser has few connections to a host, and the feed of each page is one.
        const list = await asked<Lock>("live/locks");
        const roles = await asked<Role>("live/roles");
        if (list && roles) takeLocks([...list, ...roles.map(asLock)]);
      } catch {
        // The stream says when the cluster is gone.
      }
    }
    await new Promise((done) => setTimeout(done, LOCKS));
  }
}

const KEY = "quorate-key";

/** The key for orders. It is taken out of the address: links that are shared have none. */
export function key(): string | undefined {
  const words = here.value.words;
  const given = word(words, "key");
  if (given) {
    sessionStorage.setItem(KEY, given);
    queueMicrotask(() => go({ ...here.peek(), words: said(here.peek().words, "key", undefined) }, true));
  }
  return given ?? sessionStorage.getItem(KEY) ?? undefined;
}

/** May this page give orders? */
export function mayAct(): boolean {
  return over === "demo" && key() !== undefined;
}

async function order(path: string): Promise<void> {
  const answer = await fetch(`live/${path}`, { method: "POST", headers: { "x-quorate-key": key() ?? "" } });
  refused.value = answer.ok ? undefined : (await answer.text()).trim();
}

export type Deed = "kill" | "pause" | "continue" | "restart";

/** What can be done to a member. */
export function deeds(it: Member): Deed[] {
  switch (it.state) {
    case "runs":
      return ["kill", "pause"];
    case "paused":
      return ["continue", "kill"];
    case "gone":
      return ["restart"];
    default:
      return [];
  }
}

export const act = (name: string, deed: Deed) => order(`members/${encodeURIComponent(name)}/${deed}`);

export const link = (a: string, b: string, deed: "cut" | "heal") =>
  order(`links/${encodeURIComponent(a)}/${encodeURIComponent(b)}/${deed}`);

export function isCut(a: string, b: string): boolean {
  return cuts.value.some(([one, other]) => (one === a && other === b) || (one === b && other === a));
}

/** How two members reach each other, as they say. */
export function linkState(a: Member, b: Member): "up" | "down" | "cut" {
  if (isCut(a.name, b.name)) return "cut";
  if (a.state === "gone" || b.state === "gone") return "down";
  const said = [a.status?.links.find((one) => one.name === b.name), b.status?.links.find((one) => one.name === a.name)];
  const known = said.filter((one) => one !== undefined);
  return known.length > 0 && known.every((one) => one.state === "up") ? "up" : "down";
}

/** A view by the end of its number, which is long: clusters begin to count at the time of their founding. */
export function short(epoch: number): string {
  return epoch < 10_000 ? String(epoch) : `…${String(epoch).slice(-4)}`;
}

/** A fence by the ends of its numbers. */
export function shortFence(fence: string): string {
  const [epoch = "", counter = ""] = fence.split("-");
  const plain = (text: string) => text.replace(/^0+(?=.)/, "");
  return counter === "" ? fence : `…${epoch.slice(-4)}-${plain(counter)}`;
}

/** The view that was decided last. */
export function epoch(): number {
  return Math.max(0, ...views.keys());
}
