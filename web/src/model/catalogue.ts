// What there is: algorithms, their options, their families' arguments.

import { signal } from "@preact/signals";
import { quick } from "../engine/engine";

export interface Option {
  name: string;
  values: string;
  default: string;
  help: string;
}

export interface Algorithm {
  name: string;
  summary: string;
  shape: string;
  needs: string;
  fifo: boolean;
  timing: string;
  survives: string;
  kinds: string[];
  options: Option[];
  costs: { what: string; formula: string }[];
  flaws: { name: string; answer: string }[];
  authors: string;
  title: string;
  venue: string;
  year: number;
  doi: string;
}

export interface Argument {
  family: string;
  name: string;
  value: string | null;
  help: string;
  simulated: boolean;
  repeated: boolean;
}

export interface Catalogue {
  version: string;
  families: string[];
  algorithms: Algorithm[];
  arguments: Argument[];
}

export interface Rule {
  rule: string;
  code: string;
  file: string;
}

export interface Explanation {
  text: string;
  rules: Record<string, Rule>;
}

export const catalogue = signal<Catalogue | undefined>(undefined);

let asked: Promise<void> | undefined;

export function learn(): Promise<void> {
  asked ??= quick.ask({ do: "catalogue" }).then((answer) => {
    catalogue.value = answer as unknown as Catalogue;
  });
  return asked;
}

export function algorithm(name: string): Algorithm | undefined {
  return catalogue.value?.algorithms.find((one) => one.name === name);
}

export function family(name: string): string {
  return name.split("/")[0] ?? "";
}

const explanations = new Map<string, Promise<Explanation>>();

export function explain(name: string): Promise<Explanation> {
  let known = explanations.get(name);
  if (!known) {
    known = quick.ask({ do: "explain", algorithm: name }).then((answer) => answer as unknown as Explanation);
    explanations.set(name, known);
    known.catch(() => explanations.delete(name));
  }
  return known;
}
