// What the reader has solved, kept in the browser and nowhere else.

import { signal } from "@preact/signals";

const KEY = "quorate-solved";

function kept(): Set<string> {
  try {
    return new Set(JSON.parse(localStorage.getItem(KEY) ?? "[]") as string[]);
  } catch {
    return new Set();
  }
}

const done = signal<Set<string>>(kept());

export function solved(name: string): boolean {
  return done.value.has(name);
}

export function solve(name: string): void {
  if (done.value.has(name)) return;
  done.value = new Set([...done.value, name]);
  localStorage.setItem(KEY, JSON.stringify([...done.value]));
}
