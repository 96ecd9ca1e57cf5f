// A run as columns, and what can be asked of it: where it stands after so many records, what is under
// way then, what happened before what.

import type { Answer } from "../engine/engine";

export const enum What {
  Start,
  Recover,
  Crash,
  Pause,
  Resume,
  Command,
  Refused,
  Receive,
  Lose,
  Timer,
  Liveness,
  Settle,
}

export const enum Fate {
  Received,
  Lost,
  InFlight,
}

export const enum Phase {
  Idle = -1,
  Wanting,
  Inside,
  Leading,
  Member,
  Still,
}

export interface Verdict {
  property: string;
  word: string;
  at: number | null;
  text: string;
}

export interface Broken {
  record: number;
  property: string;
  text: string;
}

export interface Outage {
  node: number;
  from: number;
  until: number | null;
  by: number;
  end_by: number | null;
}

export interface Suspicion extends Outage {
  peer: number;
}

export interface Entry {
  view: number;
  node: number;
  at: number;
  members: number[];
  by: number;
}

export interface Split {
  sides: number[][];
  from: number;
  until: number | null;
  text: string;
}

/** What a node is seen to be doing at a moment. */
export interface Doing {
  phase: Phase;
  down: boolean;
  paused: boolean;
  view: number;
  suspects: number[];
}

const BLOCK = 256;

export class Story {
  readonly engine: string;
  readonly algorithm: string;
  readonly nodes: number;
  readonly start: number;
  readonly end: number;
  readonly kinds: string[];
  readonly texts: string[];
  readonly names: string[];
  readonly members: number[];
  readonly links: [number, number][] | undefined;
  readonly shape: string;
  readonly topology: string | null;
  readonly twoWay: boolean;
  readonly inSteps: boolean;
  readonly splits: Split[];
  readonly outages: Outage[];
  readonly entries: Entry[];
  readonly suspicions: Suspicion[];
  readonly broken: Broken[];
  readonly summary: string;

  readonly recordCount: number;
  readonly rAt: Float64Array;
  readonly rNode: Int32Array;
  readonly rWhat: Uint8Array;
  readonly rArrow: Int32Array;
  readonly rWords: Int32Array;
  readonly rSteps: Int32Array;
  readonly rTold: Int32Array;

  readonly arrowCount: number;
  readonly aFrom: Int32Array;
  readonly aTo: Int32Array;
  readonly aId: Int32Array;
  readonly aKind: Uint8Array;
  readonly aSent: Float64Array;
  readonly aSentBy: Int32Array;
  readonly aEnd: Float64Array;
  readonly aEndBy: Int32Array;
  readonly aFate: Uint8Array;
  readonly aCopy: Int32Array;
  readonly aText: Int32Array;
  readonly aShort: Int32Array;

  readonly barCount: number;
  readonly bNode: Int32Array;
  readonly bPhase: Uint8Array;
  readonly bFrom: Float64Array;
  readonly bUntil: Float64Array;
  readonly bBy: Int32Array;
  readonly bEndBy: Int32Array;
  readonly bText: Int32Array;
  readonly bView: Int32Array;

  /** By block of arrows: the last record with which one of them ends. */
  private readonly blockEnd: Int32Array;
  /** By block of arrows: the latest end in time. */
  private readonly blockUntil: Float64Array;
  /** By block of arrows: the first record with which one of them begins, and the earliest time. */
  private readonly blockBegin: Int32Array;
  private readonly blockFrom: Float64Array;
  /** By node: its bars, in order. */
  private readonly barsOf: number[][];
  /** By node: its pauses and ends of pauses. */
  private readonly pausesOf: Map<number, number[]> = new Map();
  private recordsOfNode: Int32Array[] | undefined;
  private sendsOfRecord: Map<number, number[]> | undefined;
  private lamports: Int32Array | undefined;

  constructor(answer: Answer) {
    const c = answer.columns;
    const f = (name: string) => c[name] as Float64Array;
    const i = (name: string) => c[name] as Int32Array;
    const u = (name: string) => c[name] as Uint8Array;
    const get = <T>(name: string) => answer[name] as T;
    this.engine = get("engine");
    this.algorithm = get("algorithm");
    this.nodes = get("nodes");
    this.start = get("start");
    this.end = get("end");
    this.kinds = get("kinds");
    this.texts = get("texts");
    this.names = get("names");
    this.members = get("members");
    this.links = get("links");
    this.shape = get("shape");
    this.topology = get<string | null | undefined>("topology") ?? null;
    this.twoWay = get<boolean | undefined>("two_way") ?? true;
    this.inSteps = get("in_steps");
    this.splits = get("splits");
    this.outages = get("outages");
    this.entries = get("entries");
    this.suspicions = get("suspicions");
    this.broken = get("broken");
    this.summary = get("summary");
    this.rAt = f("r_at");
    this.rNode = i("r_node");
    this.rWhat = u("r_what");
    this.rArrow = i("r_arrow");
    this.rWords = i("r_words");
    this.rSteps = i("r_steps");
    this.rTold = i("r_told");
    this.recordCount = this.rAt.length;
    this.aFrom = i("a_from");
    this.aTo = i("a_to");
    this.aId = i("a_id");
    this.aKind = u("a_kind");
    this.aSent = f("a_sent");
    this.aSentBy = i("a_sent_by");
    this.aEnd = f("a_end");
    this.aEndBy = i("a_end_by");
    this.aFate = u("a_fate");
    this.aCopy = i("a_copy");
    this.aText = i("a_text");
    this.aShort = i("a_short");
    this.arrowCount = this.aFrom.length;
    this.bNode = i("b_node");
    this.bPhase = u("b_phase");
    this.bFrom = f("b_from");
    this.bUntil = f("b_until");
    this.bBy = i("b_by");
    this.bEndBy = i("b_end_by");
    this.bText = i("b_text");
    this.bView = i("b_view");
    this.barCount = this.bNode.length;

    const blocks = Math.ceil(this.arrowCount / BLOCK);
    this.blockEnd = new Int32Array(blocks);
    this.blockUntil = new Float64Array(blocks);
    this.blockBegin = new Int32Array(blocks).fill(0x7fffffff);
    this.blockFrom = new Float64Array(blocks).fill(Infinity);
    for (let a = 0; a < this.arrowCount; a++) {
      const block = Math.floor(a / BLOCK);
      const ends = this.aEndBy[a]! < 0 ? 0x7fffffff : this.aEndBy[a]!;
      const until = this.aEndBy[a]! < 0 ? Infinity : this.aEnd[a]!;
      if (ends > this.blockEnd[block]!) this.blockEnd[block] = ends;
      if (until > this.blockUntil[block]!) this.blockUntil[block] = until;
      const sentBy = this.aSentBy[a]!;
      const sent = sentBy < 0 ? -Infinity : this.aSent[a]!;
      if (sentBy < this.blockBegin[block]!) this.blockBegin[block] = sentBy;
      if (sent < this.blockFrom[block]!) this.blockFrom[block] = sent;
    }
    this.barsOf = Array.from({ length: this.nodes }, () => []);
    for (let b = 0; b < this.barCount; b++) this.barsOf[this.bNode[b]!]!.push(b);
    for (let r = 0; r < this.recordCount; r++) {
      const what = this.rWhat[r]!;
      if (what === What.Pause || what === What.Resume) {
        const node = this.rNode[r]!;
        const list = this.pausesOf.get(node);
        if (list) list.push(r);
        else this.pausesOf.set(node, [r]);
      }
    }
  }

  /** How many records have happened at this time. */
  upTo(time: number): number {
    let low = 0;
    let high = this.recordCount;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.rAt[middle]! <= time) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** Visits the messages under way after so many records. */
  inFlight(records: number, visit: (arrow: number) => void): void {
    const last = this.arrowCount;
    for (let block = 0; block * BLOCK < last; block++) {
      if (this.blockEnd[block]! < records || this.blockBegin[block]! >= records) continue;
      const end = Math.min(last, (block + 1) * BLOCK);
      // Copies stand behind the originals that they were sent with, so no block is the last one.
      for (let a = block * BLOCK; a < end; a++) {
        const sentBy = this.aSentBy[a]!;
        if (sentBy < 0 || sentBy >= records) continue;
        const endBy = this.aEndBy[a]!;
        if (endBy < 0 || endBy >= records) visit(a);
      }
    }
  }

  /** Visits the messages that are under way at some moment between two times. */
  between(from: number, until: number, visit: (arrow: number) => void): void {
    for (let block = 0; block * BLOCK < this.arrowCount; block++) {
      if (this.blockUntil[block]! < from || this.blockFrom[block]! > until) continue;
      const first = block * BLOCK;
      const end = Math.min(this.arrowCount, first + BLOCK);
      for (let a = first; a < end; a++) {
        const sent = this.aSent[a]!;
        const arrives = this.aEndBy[a]! < 0 ? this.end : this.aEnd[a]!;
        if ((Number.isNaN(sent) ? arrives : sent) <= until && arrives >= from) visit(a);
      }
    }
  }

  /** The messages that a record sends. */
  sends(record: number): number[] {
    if (!this.sendsOfRecord) {
      const map = new Map<number, number[]>();
      for (let a = 0; a < this.arrowCount; a++) {
        if (this.aCopy[a]! >= 0 || this.aSentBy[a]! < 0) continue;
        const list = map.get(this.aSentBy[a]!);
        if (list) list.push(a);
        else map.set(this.aSentBy[a]!, [a]);
      }
      this.sendsOfRecord = map;
    }
    return this.sendsOfRecord.get(record) ?? [];
  }

  /** What a node is doing after so many records. */
  doing(node: number, records: number): Doing {
    let phase = Phase.Idle;
    let view = -1;
    const bars = this.barsOf[node] ?? [];
    for (const b of bars) {
      if (this.bBy[b]! >= records) continue;
      const endBy = this.bEndBy[b]!;
      if (endBy < 0 || endBy >= records) {
        phase = this.bPhase[b]! as Phase;
        if (this.bView[b]! >= 0) view = this.bView[b]!;
      }
    }
    const ongoing = (it: Outage) =>
      it.node === node && it.by < records && (it.end_by === null || it.end_by >= records);
    const down = this.outages.some(ongoing);
    let paused = false;
    for (const r of this.pausesOf.get(node) ?? []) {
      if (r >= records) break;
      paused = this.rWhat[r] === What.Pause;
    }
    const suspects = this.suspicions.filter(ongoing).map((it) => it.peer);
    return { phase, down, paused: paused && !down, view, suspects };
  }

  /** The records of a node, in order. */
  recordsOf(node: number): Int32Array {
    if (!this.recordsOfNode) {
      const counts = new Int32Array(this.nodes);
      for (let r = 0; r < this.recordCount; r++) counts[this.rNode[r]!]!++;
      const lists = Array.from(counts, (count) => new Int32Array(count));
      const next = new Int32Array(this.nodes);
      for (let r = 0; r < this.recordCount; r++) {
        const node = this.rNode[r]!;
        lists[node]![next[node]!++] = r;
      }
      this.recordsOfNode = lists;
    }
    return this.recordsOfNode[node]!;
  }

  /** The record that sent what this record receives; -1 if it receives nothing. */
  causeOf(record: number): number {
    if (this.rWhat[record] !== What.Receive) return -1;
    const arrow = this.rArrow[record]!;
    return arrow < 0 ? -1 : this.aSentBy[arrow]!;
  }

  /** All records that happened before this one, with it: by record, is it one of them? */
  past(record: number): Uint8Array {
    const seen = new Uint8Array(this.recordCount);
    // By node: up to which of its records all are in the past.
    const known = new Int32Array(this.nodes).fill(-1);
    seen[record] = 1;
    known[this.rNode[record]!] = record;
    for (let r = record; r >= 0; r--) {
      const node = this.rNode[r]!;
      if (known[node]! < r) continue;
      seen[r] = 1;
      const cause = this.causeOf(r);
      if (cause >= 0) {
        const from = this.rNode[cause]!;
        if (known[from]! < cause) known[from] = cause;
      }
    }
    return seen;
  }

  /** All records that this one happened before, with it. */
  future(record: number): Uint8Array {
    const seen = new Uint8Array(this.recordCount);
    const reached = new Uint8Array(this.nodes);
    for (let r = record; r < this.recordCount; r++) {
      const node = this.rNode[r]!;
      const cause = this.causeOf(r);
      if (r === record || (cause >= 0 && seen[cause])) reached[node] = 1;
      if (reached[node]) seen[r] = 1;
    }
    return seen;
  }

  /** The vector clock of a record: how many records of each node it knows of. */
  vector(record: number): Int32Array {
    const clock = new Int32Array(this.nodes);
    const past = this.past(record);
    for (let r = 0; r <= record; r++) {
      if (past[r] && this.counts(r)) clock[this.rNode[r]!]!++;
    }
    return clock;
  }

  /** The Lamport time of a record: one more than all that it knows of. */
  lamport(record: number): number {
    if (!this.lamports) {
      const all = new Int32Array(this.recordCount);
      const last = new Int32Array(this.nodes);
      for (let r = 0; r < this.recordCount; r++) {
        const node = this.rNode[r]!;
        const cause = this.causeOf(r);
        let time = last[node]!;
        if (cause >= 0) time = Math.max(time, all[cause]!);
        if (this.counts(r)) time += 1;
        all[r] = time;
        last[node] = time;
      }
      this.lamports = all;
    }
    return this.lamports[record] ?? 0;
  }

  /** Is a record a step of its node, and not something that happened to it from outside? */
  private counts(record: number): boolean {
    const what = this.rWhat[record]!;
    return what !== What.Lose && what !== What.Settle;
  }

  words(record: number): string {
    return this.texts[this.rWords[record]!] ?? "";
  }

  steps(record: number): string[] {
    const text = this.texts[this.rSteps[record]!] ?? "";
    return text === "" ? [] : text.split("\u001f");
  }

  told(record: number): string[] {
    const text = this.texts[this.rTold[record]!] ?? "";
    return text === "" ? [] : text.split("\u001f");
  }

  message(arrow: number): string {
    return this.texts[this.aText[arrow]!] ?? "";
  }

  shortMessage(arrow: number): string {
    return this.texts[this.aShort[arrow]!] ?? "";
  }

  /** What a node is called: its number, and what it has beside it. */
  name(node: number): string {
    const more = this.names[node];
    return more ? `${node + 1} · ${more}` : `${node + 1}`;
  }
}
