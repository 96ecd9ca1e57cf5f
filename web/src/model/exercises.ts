// Exercises that check themselves: a number is predicted, then measured here and now.

import { quick } from "../engine/engine";
import type { Word } from "./link";

export interface Exercise {
  /** Its texts stand under this name. */
  id: string;
  algorithm: string;
  words: Word[];
  /** Where the answer stands in the report. */
  figure: string;
}

const words = (text: string): Word[] => text.split(" ").map((pair) => pair.split("=", 2) as Word);

export const EXERCISES: Record<string, Exercise[]> = {
  "01-central": [
    {
      id: "central-cost",
      algorithm: "mutex/central",
      words: words("nodes=10 bystanders=1"),
      figure: "messages_per_entry",
    },
  ],
  "02-lamport": [
    {
      id: "lamport-cost",
      algorithm: "mutex/lamport",
      words: words("nodes=10"),
      figure: "messages_per_entry",
    },
  ],
  "03-ricart-agrawala": [
    {
      id: "ra-cost",
      algorithm: "mutex/ricart-agrawala",
      words: words("nodes=10"),
      figure: "messages_per_entry",
    },
  ],
  "04-quorums": [
    {
      id: "maekawa-cost",
      algorithm: "mutex/maekawa",
      words: words("nodes=13 quorum=projective-plane load=light"),
      figure: "messages_per_entry",
    },
  ],
  "05-tokens": [
    {
      id: "token-cost",
      algorithm: "mutex/suzuki-kasami",
      words: words("nodes=10 requests=20"),
      figure: "messages_per_entry",
    },
  ],
  "06-raymond": [
    {
      id: "raymond-cost",
      algorithm: "mutex/raymond",
      words: words("nodes=2 requests=50"),
      figure: "messages_per_entry",
    },
  ],
  "07-rings": [
    {
      id: "cr-best",
      algorithm: "election/chang-roberts",
      words: words("nodes=8 ids=ascending"),
      figure: "messages",
    },
    {
      id: "cr-worst",
      algorithm: "election/chang-roberts",
      words: words("nodes=8 ids=descending"),
      figure: "messages",
    },
  ],
  "08-trees-and-graphs": [
    {
      id: "echo-cost",
      algorithm: "election/tree-echo",
      words: words("nodes=7 initiators=one"),
      figure: "messages",
    },
  ],
  "09-bully": [
    {
      id: "bully-worst",
      algorithm: "election/bully",
      words: words("nodes=5 crash=5@0 initiators=nodes:1"),
      figure: "messages",
    },
  ],
  "10-multicast": [
    {
      id: "ack-cost",
      algorithm: "group/ack-multicast",
      words: words("nodes=5 senders=1 messages=10"),
      figure: "messages",
    },
  ],
  "11-virtual-synchrony": [
    {
      id: "views",
      algorithm: "group/virtual-synchrony",
      words: words("nodes=4 messages=1 crash=4@5"),
      figure: "views",
    },
  ],
  "12-for-real": [
    {
      id: "fenced",
      algorithm: "mutex/central",
      words: words("nodes=4 over=views holder=2 cs=20 crash=2@10"),
      figure: "entries",
    },
  ],
};

/** What the engines answer to an exercise. */
export async function answer(exercise: Exercise): Promise<number> {
  const { algorithm, words, figure } = exercise;
  const found = await quick.ask({ do: "run", slot: "exercise", algorithm, words });
  return Number((found["report"] as Record<string, unknown>)[figure]);
}

/** What they answer to all of them. */
export async function answers(): Promise<Record<string, number>> {
  const found: Record<string, number> = {};
  for (const exercise of Object.values(EXERCISES).flat()) found[exercise.id] = await answer(exercise);
  return found;
}
