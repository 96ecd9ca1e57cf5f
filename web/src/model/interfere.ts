// Interference as words: what was clicked at a moment of a run becomes part of what the run is given, and
// so part of its link. Whatever happened before that moment stays as it was.

import type { Target } from "../draw/topology";
import type { Word } from "./link";
import type { Session } from "./session";
import { Fate, type Story } from "./story";

/** A nanosecond, in units: right after what has happened. */
const AFTER = 1e-6;

/** The moment at which one interferes. */
export function moment(session: Session): number {
  const story = session.story.peek();
  const records = session.player.now;
  if (!story || records === 0) return 0;
  const last = story.rAt[records - 1]!;
  return Math.max(session.player.time, last + AFTER);
}

function typed(time: number): string {
  return String(Math.round(time * 1e6) / 1e6);
}

/** How many sendings of a node there have been. */
function sendings(story: Story, node: number, records: number): number {
  let most = 0;
  for (let a = 0; a < story.arrowCount; a++) {
    if (story.aFrom[a] !== node || story.aSentBy[a]! >= records) continue;
    if (story.aId[a]! > most) most = story.aId[a]!;
  }
  return most;
}

export interface Act {
  name: "crash" | "recover" | "pause" | "cut" | "cutOne" | "slow" | "lose" | "delay" | "repeat";
  icon: string;
  words: Word[];
}

/** What can be done to something now. */
export function acts(session: Session, target: Target): Act[] {
  const story = session.story.peek();
  if (!story) return [];
  const now = moment(session);
  const at = typed(now);
  const pace = session.player.pace;
  const records = session.player.now;
  switch (target.kind) {
    case "node": {
      const node = target.node + 1;
      if (story.doing(target.node, records).down) {
        return [{ name: "recover", icon: "up", words: [["recover", `${node}@${at}`]] }];
      }
      const until = typed(now + 5 * pace);
      return [
        { name: "crash", icon: "bolt", words: [["crash", `${node}@${at}`]] },
        { name: "pause", icon: "pause", words: [["pause-node", `${node}@${at}..${until}`]] },
      ];
    }
    case "link": {
      const [from, to] = [target.from + 1, target.to + 1];
      const slow = typed(3 * pace);
      const next = (node: number) => sendings(story, node - 1, records) + 1;
      const delays: Word[] = [["tamper", `delay:${from}.${next(from)}..-${to}+${slow}`]];
      if (story.twoWay) delays.push(["tamper", `delay:${to}.${next(to)}..-${from}+${slow}`]);
      const list: Act[] = [
        { name: "cut", icon: "cut", words: [["cut", `${from}-${to}@${at}..`]] },
        { name: "slow", icon: "delay", words: delays },
      ];
      if (story.twoWay) list.splice(1, 0, { name: "cutOne", icon: "cut", words: [["cut", `${from}>${to}@${at}..`]] });
      return list;
    }
    case "message": {
      const arrow = target.arrow;
      const end = story.aEndBy[arrow]!;
      const flying = story.aSentBy[arrow]! < records && (end < 0 || end >= records);
      if (!flying || story.aFate[arrow] === Fate.Lost) return [];
      const name = `${story.aFrom[arrow]! + 1}.${story.aId[arrow]}-${story.aTo[arrow]! + 1}`;
      const later = typed(3 * pace);
      return [
        { name: "lose", icon: "cross", words: [["tamper", `lose:${name}`]] },
        { name: "delay", icon: "delay", words: [["tamper", `delay:${name}+${later}`]] },
        { name: "repeat", icon: "copies", words: [["tamper", `repeat:${name}+${typed(pace)}`]] },
      ];
    }
  }
}

/** Words that are about something that goes wrong. */
export const FAULTS = new Set([
  "crash",
  "recover",
  "pause-node",
  "cut",
  "partition",
  "clock",
  "restart-all",
  "tamper",
]);

/** The links that are cut at a time, as places of nodes. */
export function cutsAt(words: Word[], time: number): [number, number][] {
  const cuts: [number, number][] = [];
  for (const [name, text] of words) {
    const cut = name === "cut" ? text.match(/^(\d+)[->](\d+)@([\d.]*?)\.\.([\d.]*)$/) : null;
    if (!cut) continue;
    const [from, until] = [Number(cut[3] || 0), cut[4] ? Number(cut[4]) : Infinity];
    if (time >= from && time < until) cuts.push([Number(cut[1]) - 1, Number(cut[2]) - 1]);
  }
  return cuts;
}

/** A fault in words that fit on a line. */
export function faultWords(name: string, text: string): string {
  const round = (number: string) => String(Math.round(Number(number) * 100) / 100);
  const short = text.replace(/\d+\.\d{3,}/g, round);
  if (name === "tamper") {
    const parts = short.match(/^(\w+):(\d+)\.(\d+)(\.\.)?-(\d+)(?:\+(.*))?$/);
    if (parts) {
      const [, how, from, id, on, to, later] = parts;
      const what = on ? `all from ${from} to ${to} on` : `message ${id} of ${from} to ${to}`;
      return `${how} ${what}${later ? `, +${later}` : ""}`;
    }
  }
  return `${name.replace("pause-node", "pause").replace("restart-all", "restart")} ${short}`;
}
