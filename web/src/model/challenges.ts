// Planted mistakes that somebody who picks the order of events can bring to light. The list is made by
// `challenges.mjs`, with the number of moves that the checker needs.

import list from "./challenges.json";
import type { Word } from "./link";

export interface Challenge {
  algorithm: string;
  flaw: string;
  words: Word[];
  steps: number;
  property: string;
}

export const challenges = list as unknown as Challenge[];

/** Some to begin with, from easy to hard. */
const FEATURED = [
  "mutex/central IgnoreHolder",
  "mutex/ricart-agrawala IgnoreTies",
  "mutex/ricart-agrawala NoDeferralInside",
  "mutex/lamport IgnoreQueue",
  "mutex/suzuki-kasami KeepCopy",
  "mutex/maekawa GiveWayInside",
  "election/chang-roberts WorseCountsAsOwn",
  "election/bully AnswerOnly",
  "group/ack-multicast DeliverEarly",
  "mutex/carvalho-roucairol DoNotAskAgain",
];

export const featured = FEATURED.flatMap((name) => {
  const found = challenges.find((one) => `${one.algorithm} ${one.flaw}` === name);
  return found ? [found] : [];
});

export function of(algorithm: string): Challenge[] {
  return challenges.filter((one) => one.algorithm === algorithm);
}
