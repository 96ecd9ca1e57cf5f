// Light or dark: as the system is, until somebody says otherwise.

import { effect, signal } from "@preact/signals";

const KEY = "quorate-theme";

function initial(): "light" | "dark" {
  const kept = localStorage.getItem(KEY);
  if (kept === "light" || kept === "dark") return kept;
  return matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}

export const theme = signal<"light" | "dark">(initial());

effect(() => {
  document.documentElement.dataset["theme"] = theme.value;
});

export function turn(): void {
  theme.value = theme.value === "dark" ? "light" : "dark";
  localStorage.setItem(KEY, theme.value);
}
