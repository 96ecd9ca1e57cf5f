// What is worth trying with an algorithm, so that the first click shows something.

import { t } from "../texts";
import { type Algorithm, family } from "./catalogue";
import type { Word } from "./link";

export interface Preset {
  label: string;
  words: Word[];
  /** How many records are shown at first. */
  at?: number;
}

const words = (text: string): Word[] =>
  text
    .split(" ")
    .filter((pair) => pair !== "")
    .map((pair) => pair.split("=", 2) as Word);

/** The run that one sees first of an algorithm. */
export function first(algorithm: Algorithm): Word[] {
  const name = algorithm.name;
  switch (family(name)) {
    case "mutex": {
      const quorums = /maekawa|cao-singhal|sanders/.test(name);
      const nodes = quorums || /raymond/.test(name) ? 7 : 5;
      const more = quorums ? " quorum=projective-plane" : "";
      return words(`nodes=${nodes} requests=1 latency=uniform:0.5..1.5${more}`);
    }
    case "election": {
      const ids = /itai|firewire/.test(name) ? "" : " ids=random";
      return words(`nodes=7${ids}`);
    }
    case "detector":
      return words("nodes=4 crash=3@40 until=120");
    case "group":
      return words("nodes=4 messages=2 latency=uniform:0.5..1.5");
    default:
      return words("nodes=5");
  }
}

export function presets(algorithm: Algorithm): Preset[] {
  const p = t.presets;
  const name = algorithm.name;
  const base = first(algorithm);
  const one = (label: string, text: string, start: Word[] = base): Preset => {
    const more = words(text);
    const kept = start.filter(([known]) => !more.some(([name]) => name === known));
    return { label, words: [...kept, ...more] };
  };
  switch (family(name)) {
    case "mutex": {
      const list = [one(p.heavy, "requests=3"), one(p.light, "requests=2 load=light")];
      if (name === "mutex/maekawa-basic") {
        list.unshift(one(p.deadlock, "nodes=3 requests=1 latency=1", []));
      }
      list.push(
        one(p.holder, "holder=2 crash=2@1"),
        one(p.lossy, "requests=2 loss=0.1 seed=3"),
        one(p.reliable, "requests=2 loss=0.1 seed=3 over=reliable"),
        one(p.views, "holder=2 crash=2@1 over=views"),
        one(p.large(50), "nodes=50 requests=1"),
      );
      return list;
    }
    case "election": {
      const list: Preset[] = [];
      if (!/itai|firewire/.test(name)) {
        list.push(one(p.best, "ids=ascending"), one(p.worst, "ids=descending"));
      }
      list.push(one(p.one, "initiators=one"));
      if (/bully/.test(name)) {
        list.push(
          one(p.crash, "nodes=5 crash=5@0 initiators=nodes:1", []),
          one(p.recover, "nodes=5 crash=5@0 recover=5@20 initiators=nodes:1", []),
        );
      }
      list.push(one(p.varying, "latency=uniform:0.2..2"), one(p.lossy, "loss=0.15 seed=3"));
      list.push(one(p.large(50), "nodes=50"));
      return list;
    }
    case "detector":
      return [
        one(p.lossy, "loss=0.2"),
        one(p.pause, "pause-node=2@40..80 crash=3@200"),
        one(p.cut, "cut=1-2@40..80 crash=3@200"),
      ];
    default:
      return [
        one(p.lossy, "loss=0.15 seed=2"),
        one(p.crash, "crash=2@3"),
        one(p.cut, "partition=1,2|3,4@2..9"),
        one(p.large(30), "nodes=30 messages=1"),
      ];
  }
}
